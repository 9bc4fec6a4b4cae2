import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { useEffect } from 'preact/hooks'
import { DAY_MS } from '../../../shared/time.ts'
import { api, ask } from '../../api.ts'
import { age, dateTime, stamp } from '../../format.ts'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Age, now } from '../../parts/age.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Empty, Failure, say } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { href, place, setQuery } from '../../router.ts'
import { noteFiring } from '../../state/firing.ts'
import { useOfflineCache } from '../../state/offline-cache.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { isAdmin } from '../../state/session.ts'
import { isDeaf } from '../../state/mesh/links.ts'
import { useNames } from '../../state/mesh/nodes.ts'
import { alertTexts } from '../../strings/alerts.ts'
import { needTexts } from '../../strings/mesh/needs.ts'
import { t } from '../../strings.ts'
import { changeRule, quietNodes } from './change-rule.ts'
import { Destinations } from './destinations.tsx'
import { Everybody } from './everybody.tsx'
import type { ShownRule } from './rule.ts'
import { Rules } from './rules.tsx'
import { Watched, WATCHED_ROWS } from './watched.tsx'

type Alert = InferResponseType<typeof api.alerts.$get, 200>['alerts'][number]

type RuleList = InferResponseType<typeof api.alerts.rules.$get, 200>

const POLL_MS = 15_000

/** Firing alerts, their history, and the rules. */
export function AlertsPage() {
  useNames()
  const alerts = useLoad(() => ask(api.alerts.$get({ query: { limit: '100' } })), [], POLL_MS, ['alert'])
  const rules = useLoad(() => ask(api.alerts.rules.$get({ query: {} })), [], POLL_MS, ['alert'])
  const destinations = useLoad(() => ask(api.alerts.destinations.$get({ query: {} })), [])
  const about = useLoad(() => ask(api.alerts['push-key'].$get()), [])
  const failed = useLoad(
    () => ask(api.alerts.deliveries.$get({ query: { state: 'failed', limit: '20' } })),
    [],
    POLL_MS,
  )
  const offset = useSignal(0)
  const watched = useLoad(
    () => ask(api.alerts.watched.$get({ query: { limit: String(WATCHED_ROWS), offset: String(offset.value) } })),
    [offset.value],
    POLL_MS,
    ['alert'],
  )
  useOfflineCache('alerts', alerts)
  useOfflineCache('watched nodes', watched)
  useOfflineCache('alert rules', rules)
  useOfflineCache('destinations', destinations)
  useOfflineCache('failed deliveries', failed)
  const page = alerts.data.value
  useEffect(() => {
    if (page !== null) noteFiring(page)
  }, [page])
  const own = destinations.data.value?.destinations ?? []
  // The cards appear together, because a later one would push the others down.
  const isLoaded = [alerts, rules, destinations, failed, watched].every(
    ({ data, error }) => data.value !== null || error.value !== null,
  )
  const failures = [alerts, rules, destinations, watched].filter(({ error }) => error.value !== null)
  return (
    <Page title={t.nav.alerts}>
      <Confirmation onConfirmed={destinations.reload} />
      <Failure
        error={failures[0]?.error.value ?? null}
        retry={async () => {
          await Promise.all(failures.map(({ reload }) => reload()))
        }}
      />
      {isLoaded && page !== null && (
        <Firing
          alerts={page.alerts.filter(({ state }) => state !== 'resolved')}
          isFull={page.full}
          rules={rules.data.value?.rules ?? []}
          watching={rules.data.value?.watching ?? null}
          reload={async () => {
            await Promise.all([alerts.reload(), rules.reload()])
          }}
        />
      )}
      {isLoaded && watched.data.value !== null && <Watched page={watched.data.value} offset={offset} />}
      {isLoaded && rules.data.value !== null && destinations.data.value !== null && (
        <Rules
          rules={rules.data.value.rules}
          destinations={own}
          hasMail={about.data.value?.email ?? false}
          reload={async () => {
            await Promise.all([rules.reload(), destinations.reload(), watched.reload()])
          }}
        />
      )}
      {isLoaded && destinations.data.value !== null && (
        <Destinations destinations={own} hasMail={about.data.value?.email ?? false} reload={destinations.reload} />
      )}
      {isLoaded && (failed.data.value?.deliveries.length ?? 0) > 0 && (
        <Card title={alertTexts.failed}>
          <ul class="rows">
            {failed.data.value?.deliveries.map(({ id, destination, result, createdAt }) => (
              <li key={id}>
                <span class="grow break">
                  {destination.name}: {result}
                </span>
                <Age at={createdAt} />
              </li>
            ))}
          </ul>
        </Card>
      )}
      {isLoaded && isAdmin.value && <Everybody />}
      {isLoaded && page !== null && <History alerts={page.alerts.filter(({ state }) => state === 'resolved')} />}
    </Page>
  )
}

/** The link of a confirmation e-mail leads here. */
function Confirmation({ onConfirmed }: { onConfirmed(): Promise<void> }) {
  const confirming = useAction()
  const wanted = /^(\d{1,15})\.([0-9a-f]{64})$/.exec(place.value.query.get('confirm') ?? '')
  useEffect(() => {
    const [, id = '', token = ''] = wanted ?? []
    if (wanted === null) return
    void confirming.run(async () => {
      await ask(api.alerts.destinations[':id'].confirm.$post({ param: { id }, json: { token } }))
      setQuery({ confirm: '' })
      say(alertTexts.confirmed)
      await onConfirmed()
    })
  }, [])
  return <Failure error={confirming.error.value} />
}

type FiringProps = {
  alerts: readonly Alert[]
  isFull: boolean
  rules: readonly ShownRule[]
  /** Null: unknown. */
  watching: RuleList['watching'] | null
  reload(): Promise<void>
}

function Firing({ alerts, isFull, rules, watching, reload }: FiringProps) {
  if (alerts.length === 0) return <Calm hasRules={rules.length > 0} watching={watching} />
  return (
    <Card title={alertTexts.firing}>
      {isFull && <p class="warn">{alertTexts.full}</p>}
      <ul class="rows">
        {alerts.map((alert) => (
          <FiringRow
            alert={alert}
            rule={rules.find(({ id }) => id === alert.ruleId) ?? null}
            reload={reload}
            key={alert.id}
          />
        ))}
      </ul>
    </Card>
  )
}

/** No alert is open. All is well only if something is watched, something is heard, and the rules are checked. */
function Calm({ hasRules, watching }: { hasRules: boolean; watching: RuleList['watching'] | null }) {
  if (watching === null) return null
  if (watching.rules === 0) {
    return (
      <Empty icon="bell" title={alertTexts.unwatched}>
        <p>{hasRules ? alertTexts.allOff : alertTexts.unwatchedHelp}</p>
        <ConnectHelp />
      </Empty>
    )
  }
  const { rules, nodes, evaluatedAt, isLate } = watching
  const check =
    evaluatedAt === null ? alertTexts.notChecked : needTexts.lastCheck(t.common.ago(age(evaluatedAt, now.value)))
  const isWell = !isDeaf.value && !isLate && evaluatedAt !== null
  const title = isDeaf.value ? alertTexts.deaf : isLate ? alertTexts.late : isWell ? alertTexts.nothing : null
  return (
    <section class="card watch-state">
      <Icon name={isWell ? 'check' : 'bell'} />
      <div>
        {title !== null && <h2 class={isWell ? 'good' : 'warn'}>{title}</h2>}
        <p>{`${needTexts.watches(rules, nodes)}, ${check}.`}</p>
        <ConnectHelp />
      </div>
    </section>
  )
}

type FiringRowProps = { alert: Alert; rule: ShownRule | null; reload(): Promise<void> }

function FiringRow({ alert, rule, reload }: FiringRowProps) {
  const { id, state, startedAt, acknowledgedAt, held, heldUntil, inhibited, notifiedAt, nodeNum } = alert
  const action = useAction()
  const acknowledge = () =>
    void action.run(async () => {
      await ask(api.alerts[':id'].acknowledge.$post({ param: { id: String(id) } }))
      await reload()
    })
  const isQuiet = rule !== null && quietNodes(rule).some(({ node }) => node === nodeNum)
  const silence = (about: ShownRule, node: number) =>
    void action.run(async () => {
      await changeRule(about, { silencedNodes: [...quietNodes(about), { node, until: Date.now() + DAY_MS }] })
      await reload()
    })
  return (
    <li>
      <span class="grow break">
        <span class={state === 'firing' ? 'tag bad' : 'tag'}>{alertTexts.states[state]}</span> <What alert={alert} />
        <div class="faint">
          {alert.ruleName} · {alertTexts.since} {dateTime(startedAt)}
          {acknowledgedAt !== null && ` · ${alertTexts.acknowledged}`}
          {inhibited && ` · ${alertTexts.inhibited}`}
          {heldUntil !== null && ` · ${alertTexts.heldUntil(stamp(heldUntil))}`}
          {held ? ` · ${alertTexts.held}` : state === 'firing' && notifiedAt === null && ` · ${alertTexts.silent}`}
        </div>
        <Failure error={action.error.value} />
      </span>
      {state === 'firing' && acknowledgedAt === null && (
        <button type="button" class="button small" disabled={action.busy.value} onClick={acknowledge}>
          {alertTexts.acknowledge}
        </button>
      )}
      {rule !== null && nodeNum !== null && !isQuiet && (
        <button type="button" class="button small" disabled={action.busy.value} onClick={() => silence(rule, nodeNum)}>
          {alertTexts.silenceNode}
        </button>
      )}
    </li>
  )
}

function What({ alert: { what, nodeId } }: { alert: Alert }) {
  return nodeId === null ? <strong>{what}</strong> : <a href={href(`/nodes/${nodeId}`)}>{what}</a>
}

function History({ alerts }: { alerts: readonly Alert[] }) {
  return (
    <Card title={alertTexts.history}>
      {alerts.length === 0 && <p class="faint">{alertTexts.noHistory}</p>}
      <ul class="rows">
        {alerts.map((alert) => (
          <li key={alert.id}>
            <span class="grow break">
              <What alert={alert} />
              <div class="faint">
                {alert.ruleName}
                {alert.heldUntil !== null && ` · ${alertTexts.heldUntil(stamp(alert.heldUntil))}`}
              </div>
            </span>
            <Age at={alert.firedAt} />
          </li>
        ))}
      </ul>
    </Card>
  )
}
