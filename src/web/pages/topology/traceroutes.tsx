import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, askAs, send } from '../../api.ts'
import { useOfflineCache } from '../../state/offline-cache.ts'
import { useAction } from '../../state/load.ts'
import { maySend } from '../../state/mesh/links.ts'
import { nameOfId, type Node, nodeByNum, useNames } from '../../state/mesh/nodes.ts'
import { type TracerouteQuery, useTraceroutes } from '../../state/mesh/traceroutes.ts'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Select } from '../../parts/form/field.tsx'
import { NodePicker } from '../../parts/form/node-picker.tsx'
import { RangeControl } from '../../parts/form/range-control.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Empty, Failure, say } from '../../parts/notice.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { place, queryNode, setQuery } from '../../router.ts'
import { can, has, isAnonymous } from '../../state/session.ts'
import { rangeKey, readRange, timesOf } from '../../state/range.ts'
import { useSteady } from '../../state/steady.ts'
import { directTexts } from '../../strings/mesh/direct-range.ts'
import { t } from '../../strings.ts'
import type { Traceroute, TraceroutePage } from '../../parts/mesh/traceroute.ts'
import '../../parts/mesh/ways.css'
import { TraceRow } from './trace-row.tsx'

const PAGE = 50

const ORIGINS = ['', 'own', 'overheard'] as const
const ANSWERS = ['', 'true', 'false'] as const

/** The limits of the list, as in the address. People without an account see no requests, so they choose among ends. */
function readWanted(query: URLSearchParams) {
  const node = queryNode(query, 'node') ?? ''
  const other = node === '' || isAnonymous.value ? '' : (queryNode(query, 'with') ?? '')
  const choose = <K extends string>(names: readonly K[], name: string, none: K): K =>
    isAnonymous.value ? none : (names.find((known) => known === query.get(name)) ?? none)
  return { node, other, origin: choose(ORIGINS, 'origin', ''), answered: choose(ANSWERS, 'answered', '') }
}

/** Requested and overheard traceroutes, and a form for a new one. */
export function TraceroutesPage() {
  useNames()
  const { node, other, origin, answered } = readWanted(place.value.query)
  const by: TracerouteQuery = {
    limit: String(PAGE),
    ...(node !== '' && { node }),
    ...(other !== '' && { with: other }),
    ...(origin !== '' && { origin }),
    ...(answered !== '' && { answered }),
  }
  // People without an account get the latest ones only.
  const range = isAnonymous.value ? null : readRange(place.value.query, null).range
  const loaded = useTraceroutes(by, range)
  const { data, error, reload } = loaded
  const key = JSON.stringify(by) + rangeKey(range)
  useOfflineCache(`traceroutes ${key}`, loaded)
  const older = useSignal<readonly Traceroute[]>([])
  /** `before` of the next page; undefined: no later page was loaded yet. */
  const later = useSignal<number | null | undefined>(undefined)
  const isAsking = useSignal(node !== '' && other === '')
  const more = useAction()
  useEffect(() => {
    older.value = []
    later.value = undefined
  }, [key])
  const isOfKey = data.value?.key === key
  const newest = isOfKey ? (data.value?.traceroutes ?? []) : []
  const all = [...new Map([...older.value, ...newest].map((trace) => [trace.id, trace])).values()].toSorted(
    (a, b) => b.id - a.id,
  )
  const steady = useSteady('traceroutes', all, idOf, data.value?.key)
  const next = later.value === undefined ? (isOfKey ? (data.value?.nextBefore ?? null) : null) : later.value
  const loadMore = () =>
    more.run(async () => {
      const page = await askAs<TraceroutePage>(
        api.traceroutes.$get({ query: { ...by, ...timesOf(range), before: String(next) } }),
      )
      // Rows that have moved out of the first page meanwhile stay visible.
      older.value = [...older.value, ...newest, ...page.traceroutes]
      later.value = page.nextBefore
    })
  const mayAsk = can('info', 'write') && maySend('traceroutes')
  const isLimited = range !== null || node !== '' || origin !== '' || answered !== ''
  return (
    <Page
      title={t.routes.title}
      actions={
        mayAsk && (
          <button
            type="button"
            class="button"
            aria-expanded={isAsking.value}
            onClick={() => (isAsking.value = !isAsking.value)}
          >
            {t.routes.ask}
          </button>
        )
      }
    >
      {!maySend('traceroutes') && !isAnonymous.value && <p class="faint measure">{t.messages.noCollector}</p>}
      {mayAsk && isAsking.value && (
        <>
          <Ask preset={node} onAsked={reload} />
          {node === '' && has('radio') && <AskAll onAsked={reload} />}
        </>
      )}
      {(node !== '' || !isAnonymous.value) && (
        <div class="toolbar">
          {!isAnonymous.value && (
            <>
              <Select
                label={t.routes.origin}
                value={origin}
                options={ORIGINS.map((name) => [name, t.routes.origins[name]] as const)}
                onChange={(name) => setQuery({ origin: name })}
              />
              <Select
                label={t.routes.answer}
                value={answered}
                options={ANSWERS.map((name) => [name, t.routes.answers[name]] as const)}
                onChange={(name) => setQuery({ answered: name })}
              />
              <RangeControl fallback={null} />
            </>
          )}
          {node !== '' && (
            <button type="button" class="button" onClick={() => setQuery({ node: '', with: '' })}>
              {other === '' ? t.routes.onlyOf(nameOfId(node)) : t.routes.onlyBetween(nameOfId(node), nameOfId(other))}{' '}
              <Icon name="close" />
            </button>
          )}
        </div>
      )}
      <Failure error={more.error.value ?? error.value} retry={reload} />
      {isOfKey && all.length === 0 && next === null && (
        <Empty icon="routes" title={isLimited ? t.routes.noMatch : t.routes.none}>
          {!isAnonymous.value && !isLimited && <p>{t.routes.noneHelp}</p>}
          {!isLimited && <ConnectHelp />}
        </Empty>
      )}
      {steady.rows.length > 0 && (
        <SteadyList steady={steady}>
          <ul class="card traces" aria-label={t.routes.list}>
            {steady.rows.map((trace) => (
              <TraceRow trace={trace} key={trace.id} />
            ))}
          </ul>
        </SteadyList>
      )}
      {next !== null && !isAnonymous.value && (
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

/** A traceroute to all nodes in direct range. */
function AskAll({ onAsked }: { onAsked(): Promise<void> }) {
  const { busy, error, run } = useAction()
  const askAll = () =>
    run(async () => {
      await send(api.traceroutes.direct.$post({ json: {} }))
      say(directTexts.asked)
      await onAsked()
    })
  return (
    <Card title={directTexts.title} help={directTexts.help}>
      <Failure error={error.value} />
      <div>
        <button type="button" class="button" disabled={busy.value} onClick={() => void askAll()}>
          {busy.value ? t.common.loading : directTexts.ask}
        </button>
      </div>
    </Card>
  )
}
