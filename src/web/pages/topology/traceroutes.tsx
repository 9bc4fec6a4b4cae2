import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, askAs, send } from '../../api.ts'
import { humanize, plain } from '../../format.ts'
import { useOfflineCache } from '../../state/offline-cache.ts'
import { useAction } from '../../state/load.ts'
import { nameOf, nameOfId, type Node, nodeByNum, useNames } from '../../state/mesh/nodes.ts'
import { useTraceroutes } from '../../state/mesh/traceroutes.ts'
import { Age } from '../../parts/age.tsx'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { NodePicker } from '../../parts/form/node-picker.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Empty, Failure, say } from '../../parts/notice.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { href, place, queryNode, setQuery } from '../../router.ts'
import { can, has, isAnonymous } from '../../state/session.ts'
import { useSteady } from '../../state/steady.ts'
import { t } from '../../strings.ts'
import { ANSWERED, type Traceroute, type TraceroutePage } from '../../parts/mesh/traceroute.ts'
import { Ways } from '../../parts/mesh/way.tsx'

const PAGE = 50

/** Requested and overheard traceroutes, and a form for a new one. */
export function TraceroutesPage() {
  useNames()
  const node = queryNode(place.value.query, 'node') ?? ''
  const by = { limit: String(PAGE), ...(node !== '' && { node }) }
  const loaded = useTraceroutes(by)
  const { data, error, reload } = loaded
  useOfflineCache(`traceroutes ${node}`, loaded)
  const older = useSignal<readonly Traceroute[]>([])
  const hasMore = useSignal<boolean | null>(null)
  const more = useAction()
  useEffect(() => {
    older.value = []
    hasMore.value = null
  }, [node])
  const newest = data.value?.traceroutes ?? []
  const all = [...new Map([...older.value, ...newest].map((trace) => [trace.id, trace])).values()].toSorted(
    (a, b) => b.id - a.id,
  )
  const steady = useSteady('traceroutes', all, idOf, data.value?.key)
  const loadMore = () =>
    more.run(async () => {
      const page = await askAs<TraceroutePage>(
        api.traceroutes.$get({ query: { ...by, before: String(all.at(-1)?.id ?? 1) } }),
      )
      // Rows that have moved out of the first page meanwhile stay visible.
      older.value = [...older.value, ...newest, ...page.traceroutes]
      hasMore.value = page.traceroutes.length === PAGE
    })
  return (
    <Page title={t.routes.title}>
      {!has('radio') && !isAnonymous.value && <p class="faint measure">{t.routes.noRadioHere}</p>}
      {can('info', 'write') && has('radio') && <Ask preset={node} onAsked={reload} />}
      {node !== '' && (
        <button type="button" class="button" onClick={() => setQuery({ node: '' })}>
          {t.routes.onlyOf(nameOfId(node))} <Icon name="close" />
        </button>
      )}
      <Failure error={more.error.value ?? error.value} retry={reload} />
      {data.value !== null && all.length === 0 && (
        <Empty icon="routes" title={t.routes.none}>
          {!isAnonymous.value && <p>{t.routes.noneHelp}</p>}
          <ConnectHelp />
        </Empty>
      )}
      {steady.rows.length > 0 && (
        <SteadyList steady={steady}>
          <ul class="traces" aria-label={t.routes.list}>
            {steady.rows.map((trace) => (
              <Trace trace={trace} key={trace.id} />
            ))}
          </ul>
        </SteadyList>
      )}
      {(hasMore.value ?? newest.length >= PAGE) && !isAnonymous.value && (
        <button type="button" class="button" disabled={more.busy.value} onClick={() => void loadMore()}>
          {more.busy.value ? t.common.loading : t.common.more}
        </button>
      )}
    </Page>
  )
}

const idOf = ({ id }: Traceroute) => id

/** No routes are traced to radios of this service or to ignored nodes. */
const isTarget = ({ isLocal, isIgnored }: Node) => !isLocal && !isIgnored

function Ask({ preset, onAsked }: { preset: string; onAsked(): Promise<void> }) {
  const chosen = useSignal<string | null>(null)
  const { busy, error, run } = useAction()
  const wanted = chosen.value ?? preset
  const node = wanted === '' ? undefined : nodeByNum(Number.parseInt(wanted.slice(1), 16))
  const to = node !== undefined && isTarget(node) ? wanted : ''
  const trace = () =>
    run(async () => {
      await send(api.traceroutes.$post({ json: { to } }))
      say(t.routes.asked)
      await onAsked()
    })
  return (
    <Card title={t.routes.ask} help={t.routes.askHelp}>
      <Failure error={error.value} />
      <form
        class="ask-route"
        onSubmit={(event) => {
          event.preventDefault()
          void trace()
        }}
      >
        <NodePicker
          label={t.routes.target}
          value={to}
          isOffered={isTarget}
          onChoose={(nodeId) => (chosen.value = nodeId)}
        />
        <button class="button primary" disabled={busy.value || to === ''}>
          {busy.value ? t.common.loading : t.routes.trace}
        </button>
      </form>
    </Card>
  )
}

function Trace({ trace }: { trace: Traceroute }) {
  const isAnswered = trace.state === ANSWERED
  return (
    <li class="card trace">
      <div class="trace-head">
        <div>
          <strong>
            {nameOf(trace.fromNodeNum, trace.fromNodeId)}{' '}
            <span class="arrow" aria-hidden="true">
              →
            </span>{' '}
            <span class="sr-only">{t.routes.to}</span>
            {nameOf(trace.toNodeNum, trace.toNodeId)}
          </strong>
          <div class="faint">
            <Age at={trace.timestamp} />
            {!isAnonymous.value && ' · '}
            {!isAnonymous.value &&
              (trace.requestedBy === null ? t.routes.overheard : t.routes.askedBy(plain(trace.requestedBy)))}
          </div>
        </div>
        <span class={`badge trace-state ${trace.state}`}>{t.routes.state[trace.state]}</span>
      </div>
      {isAnswered ? (
        <Ways trace={trace} />
      ) : (
        <p class="faint">
          {t.routes.stateHelp[trace.state]}
          {trace.routingError !== null && ` (${humanize(trace.routingError)})`}
        </p>
      )}
      {trace.notice !== undefined && <p class={isAnswered ? 'faint' : 'bad'}>{t.common.radioSays(trace.notice)}</p>}
      {isAnswered && can('nodes', 'read') && (
        <a class="trace-map" href={href(`/map?trace=${trace.id}`)}>
          {t.routes.showOnMap}
        </a>
      )}
    </li>
  )
}
