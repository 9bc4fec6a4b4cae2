import { unitTexts } from '../../strings/units.ts'
import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { api, ask } from '../../api.ts'
import { age, dateTime } from '../../format.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { useNames } from '../../state/mesh/nodes.ts'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Age, now } from '../../parts/age.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Empty, explain, Failure, say } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { Switch } from '../../parts/form/switch.tsx'
import { href } from '../../router.ts'
import { can, has } from '../../state/session.ts'
import { a } from '../../strings/automation.ts'
import { t } from '../../strings.ts'
import './automation.css'
import { type Channels, useChannels } from './channels.ts'
import { viewOf } from './kinds/kinds.ts'
import type { Automation } from './rule.ts'
import { Guards } from './try.tsx'
import { deleteFirst, ifMatch } from './version.ts'
import { airADay, summary } from './words.ts'

type List = InferResponseType<typeof api.automation.$get>

const POLL_MS = 10_000

/** The rules that make the radio send automatically. */
export function AutomationPage() {
  useNames()
  const { data, error, reload } = useLoad(() => ask(api.automation.$get()), [], POLL_MS)
  const list = data.value
  return (
    <Page title={a.title} actions={list !== null && <NewRule list={list} />}>
      <Failure error={error.value} retry={reload} />
      {!can('automation', 'write') && <p class="faint">{a.readOnly}</p>}
      {!has('radio') && <p class="faint measure">{a.nothingRunsHere}</p>}
      {list?.automations.length === 0 && list.unreadable.length === 0 && (
        <Empty icon="automation" title={a.none}>
          <p>{a.noneHelp}</p>
          <ConnectHelp />
        </Empty>
      )}
      {list !== null && list.automations.length > 0 && <Rules list={list} reload={reload} />}
      {list !== null && list.unreadable.length > 0 && <Unreadable rules={list.unreadable} reload={reload} />}
      {list !== null && <Guards />}
    </Page>
  )
}

function NewRule({ list: { automations, unreadable, maxAutomations } }: { list: List }) {
  if (!can('automation', 'write') || !has('radio')) return null
  if (automations.length + unreadable.length >= maxAutomations)
    return <span class="faint">{a.full(maxAutomations)}</span>
  return (
    <a class="button primary" href={href('/automation/new')}>
      <Icon name="plus" />
      {a.new}
    </a>
  )
}

function Rules({ list, reload }: { list: List; reload(): Promise<void> }) {
  const channels = useChannels()
  return (
    <>
      <p class="faint">
        {a.count(list.automations.length)} · {a.answered(list.answersLastHour, list.maxAnswersPerHour)}
      </p>
      <div class="table-box">
        <table class="table rules">
          <thead>
            <tr>
              <th scope="col">{a.columns.rule}</th>
              <th scope="col">{a.columns.on}</th>
              <th scope="col" class="phone-hidden">
                {a.columns.next}
              </th>
              <th scope="col" class="phone-hidden">
                {a.columns.last}
              </th>
            </tr>
          </thead>
          <tbody>
            {list.automations.map((automation) => (
              <RuleRow automation={automation} channels={channels} reload={reload} key={automation.id} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function Unreadable({ rules, reload }: { rules: List['unreadable']; reload(): Promise<void> }) {
  return (
    <section class="stack">
      <h2>{a.unreadable}</h2>
      <p class="faint measure">{a.unreadableHelp}</p>
      <ul class="rows">
        {rules.map((rule) => (
          <li key={rule.id}>
            <strong class="grow break">{rule.name}</strong>
            {can('automation', 'write') && (
              <button
                type="button"
                class="button small danger-quiet"
                aria-label={a.deleteLabel(rule.name)}
                onClick={() => deleteFirst(rule, () => void reload(), reload)}
              >
                {t.common.delete}
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

function RuleRow(props: { automation: Automation; channels: Channels; reload(): Promise<void> }) {
  const { automation, channels, reload } = props
  const { id, rule, blockedBy, runs } = automation
  const switching = useAction()
  const air = useSignal<string | null>(null)
  const turn = (enabled: boolean) =>
    switching.run(async () => {
      air.value = await switchRule(id, enabled)
      await reload()
      say(air.value === null ? a.switchedOff(rule.name) : a.switchedOn(rule.name, air.value))
    })
  return (
    <tr>
      <th scope="row">
        <a class="row-link" href={href(`/automation/${id}`)}>
          {rule.name}
        </a>{' '}
        <span class="tag">{viewOf(rule.kind).name}</span>
        <div class="faint break">{summary(rule, channels)}</div>
        {air.value !== null && rule.enabled && <div class="faint">{a.enabledHelp(air.value)}</div>}
        {rule.enabled && !runs && <div class="warn">{a.neverRuns}</div>}
        {runs && blockedBy !== null && <div class="warn">{a.blocked(a.reasons[blockedBy])}</div>}
        {switching.error.value !== null && (
          <div class="bad" role="alert">
            {explain(switching.error.value)}
          </div>
        )}
        <div class="phone-only">
          {rule.enabled && (
            <>
              <Next automation={automation} />
              {' · '}
            </>
          )}
          <Last automation={automation} />
        </div>
      </th>
      <td>
        {can('automation', 'write') ? (
          <Switch
            label={a.switchLabel(rule.name)}
            checked={rule.enabled}
            disabled={switching.busy.value}
            onChange={(enabled) => void turn(enabled)}
          />
        ) : (
          <span class={rule.enabled ? 'tag good' : 'tag'}>{rule.enabled ? a.on : a.off}</span>
        )}
      </td>
      <td class="phone-hidden">
        <Next automation={automation} />
      </td>
      <td class="phone-hidden">
        <Last automation={automation} />
      </td>
    </tr>
  )
}

/** Switches a rule on or off and returns its airtime; null if it is off. The rest of the rule stays as it is now. */
async function switchRule(id: number, enabled: boolean): Promise<string | null> {
  const param = { id: String(id) }
  const { automation } = await ask(api.automation[':id'].$get({ param }))
  const headers = ifMatch(automation.revision)
  await ask(api.automation[':id'].$put({ param, json: { ...automation.rule, enabled } }, { headers }))
  if (!enabled) return null
  const { estimate } = await ask(api.automation[':id']['dry-run'].$post({ param, json: {} }))
  return airADay(estimate)
}

export function Next({ automation: { rule, nextRunAt, runs } }: { automation: Automation }) {
  if (!rule.enabled) return <span class="faint">{a.off}</span>
  if (!runs) return <span class="faint">{a.noRadioHere}</span>
  if (viewOf(rule.kind).sampleOf !== undefined) return <span>{a.whenSaid}</span>
  if (nextRunAt === null) return <span class="faint">{a.noNextRun}</span>
  const text = age(now.value, nextRunAt)
  return (
    <time dateTime={new Date(nextRunAt).toISOString()} title={dateTime(nextRunAt)}>
      {text === unitTexts.now ? a.anyMoment : a.in(text)}
    </time>
  )
}

export function Last({ automation: { lastRun } }: { automation: Automation }) {
  if (lastRun === null) return <span class="faint">{a.lastNever}</span>
  return (
    <>
      <span class={lastRun.outcome === 'failed' ? 'bad' : lastRun.outcome === 'sent' ? 'good' : ''}>
        {a.outcomes[lastRun.outcome]}
      </span>{' '}
      <Age at={lastRun.at} />
      {lastRun.reason !== null && <div class="faint">{a.reasons[lastRun.reason]}</div>}
    </>
  )
}
