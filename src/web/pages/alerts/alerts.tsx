import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { useEffect } from 'preact/hooks'
import { namesOf } from '../../../shared/names.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { api, ask, send } from '../../api.ts'
import { age, dateTime, stamp } from '../../format.ts'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Age, now } from '../../parts/age.tsx'
import { askFirst } from '../../parts/dialog.tsx'
import { Switch } from '../../parts/form/switch.tsx'
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
import { t } from '../../strings.ts'
import { type Destination, Destinations } from './destinations.tsx'
import { Everybody } from './everybody.tsx'
import { shownName } from './kinds/fields.tsx'
import { sentence, viewOf } from './kinds/kinds.ts'
import { PRESETS } from './presets.ts'
import type { NewRule, ShownRule } from './rule.ts'
import { RuleForm } from './rule-form.tsx'

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
  useOfflineCache('alerts', alerts)
  useOfflineCache('alert rules', rules)
  useOfflineCache('destinations', destinations)
  useOfflineCache('failed deliveries', failed)
  const page = alerts.data.value
  useEffect(() => {
    if (page !== null) noteFiring(page.firing)
  }, [page])
  const own = destinations.data.value?.destinations ?? []
  // The cards appear together, because a later one would push the others down.
  const isLoaded = [alerts, rules, destinations, failed].every(
    ({ data, error }) => data.value !== null || error.value !== null,
  )
  const failures = [alerts, rules, destinations].filter(({ error }) => error.value !== null)
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
          rules={rules.data.value?.rules ?? []}
          watching={rules.data.value?.watching ?? null}
          reload={async () => {
            await Promise.all([alerts.reload(), rules.reload()])
          }}
        />
      )}
      {isLoaded && rules.data.value !== null && destinations.data.value !== null && (
        <Rules rules={rules.data.value.rules} destinations={own} reload={rules.reload} />
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
  rules: readonly ShownRule[]
  /** Null: unknown. */
  watching: RuleList['watching'] | null
  reload(): Promise<void>
}

function Firing({ alerts, rules, watching, reload }: FiringProps) {
  if (alerts.length === 0) return <Calm hasRules={rules.length > 0} watching={watching} />
  return (
    <Card title={alertTexts.firing}>
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
    evaluatedAt === null ? alertTexts.notChecked : alertTexts.lastCheck(t.common.ago(age(evaluatedAt, now.value)))
  const isWell = !isDeaf.value && !isLate && evaluatedAt !== null
  const title = isDeaf.value ? alertTexts.deaf : isLate ? alertTexts.late : isWell ? alertTexts.nothing : undefined
  return (
    <Empty icon={isWell ? 'check' : 'bell'} {...(title !== undefined && { title })}>
      <p>{alertTexts.nothingHelp}</p>
      <p>
        {alertTexts.watches(rules, nodes)}, {check}.
      </p>
      <ConnectHelp />
    </Empty>
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

/** The nodes for which a rule is muted now. */
function quietNodes({ rule }: ShownRule) {
  return rule.silencedNodes.filter(({ until }) => until > Date.now())
}

/** Changes how a rule notifies, not what it watches. Throws `ApiError`. */
async function changeRule(
  { id, rule, revision }: ShownRule,
  changes: Partial<Pick<ShownRule['rule'], 'enabled' | 'silencedUntil' | 'silencedNodes'>>,
): Promise<void> {
  const json = Object.assign({ ...rule }, changes)
  const headers = { 'If-Match': `"${revision}"` }
  await ask(api.alerts.rules[':id'].$put({ param: { id: String(id) }, json }, { headers }))
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

type Editing = { saved: ShownRule | null; initial: NewRule }
type RulesProps = { rules: readonly ShownRule[]; destinations: readonly Destination[]; reload(): Promise<void> }

function Rules({ rules, destinations, reload }: RulesProps) {
  const editing = useSignal<Editing | null>(null)
  const all = destinations.filter(({ confirmed }) => confirmed).map(({ id }) => id)
  return (
    <Card
      title={alertTexts.rules}
      help={alertTexts.rulesHelp}
      actions={
        <button
          type="button"
          class="button primary"
          onClick={() =>
            (editing.value = { saved: null, initial: viewOf('node_silent').fresh({ name: '', destinations: all }) })
          }
        >
          <Icon name="plus" />
          {alertTexts.newRule}
        </button>
      }
    >
      {rules.length === 0 && (
        <div class="stack">
          <p>{alertTexts.noRules}</p>
          <div class="actions">
            {namesOf(PRESETS).map((preset) => (
              <button
                type="button"
                class="button"
                key={preset}
                onClick={() => (editing.value = { saved: null, initial: PRESETS[preset](all) })}
              >
                {alertTexts.presets[preset]}
              </button>
            ))}
          </div>
        </div>
      )}
      <ul class="rows">
        {rules.map((rule) => (
          <RuleRow
            shown={rule}
            reload={reload}
            onEdit={() => (editing.value = { saved: rule, initial: rule.rule })}
            key={rule.id}
          />
        ))}
      </ul>
      {editing.value !== null && (
        <RuleForm
          {...editing.value}
          destinations={destinations}
          onDone={() => {
            editing.value = null
            void reload()
          }}
        />
      )}
    </Card>
  )
}

function RuleRow({ shown, reload, onEdit }: { shown: ShownRule; reload(): Promise<void>; onEdit(): void }) {
  const { id, rule, revision, sees, firing } = shown
  const action = useAction()
  const param = { id: String(id) }
  const headers = { 'If-Match': `"${revision}"` }
  const change = (changes: Parameters<typeof changeRule>[1]) =>
    void action.run(async () => {
      await changeRule(shown, changes)
      await reload()
    })
  const remove = () =>
    askFirst({
      text: `${t.common.delete} “${rule.name}”?`,
      confirm: t.common.delete,
      isDangerous: true,
      act: async () => {
        await send(api.alerts.rules[':id'].$delete({ param }, { headers }))
        await reload()
      },
    })
  const isQuiet = rule.silencedUntil !== null && rule.silencedUntil > Date.now()
  return (
    <li>
      <Switch
        label={rule.name}
        checked={rule.enabled}
        disabled={action.busy.value}
        onChange={(enabled) => change({ enabled })}
      />
      <span class="grow break">
        <strong>{rule.name}</strong> <span class="tag">{viewOf(rule.kind).name}</span>{' '}
        {firing > 0 && <span class="tag bad">{firing}</span>}
        <div class="faint">{sentence(rule)}.</div>
        {!sees && <div class="warn">{alertTexts.blind}</div>}
        {isQuiet && (
          <div class="faint">
            {alertTexts.silencedUntil} {dateTime(rule.silencedUntil ?? 0)}
          </div>
        )}
        {quietNodes(shown).map(({ node, until }) => (
          <div class="faint" key={node}>
            {alertTexts.quietNode(shownName(node), dateTime(until))}{' '}
            <button
              type="button"
              class="text-button"
              onClick={() => change({ silencedNodes: quietNodes(shown).filter((each) => each.node !== node) })}
            >
              {alertTexts.unsilence}
            </button>
          </div>
        ))}
        <Failure error={action.error.value} />
      </span>
      <button
        type="button"
        class="button small"
        onClick={() => change({ silencedUntil: isQuiet ? null : Date.now() + DAY_MS })}
      >
        {isQuiet ? alertTexts.unsilence : alertTexts.silence}
      </button>
      <button type="button" class="button small" onClick={onEdit}>
        {t.common.edit}
      </button>
      <button type="button" class="button small danger-quiet" onClick={remove}>
        {t.common.delete}
      </button>
    </li>
  )
}
