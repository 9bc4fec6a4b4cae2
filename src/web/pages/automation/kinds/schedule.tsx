import { catalog } from '../../../language.ts'
import { Segments } from '../../../parts/form/field.tsx'
import { Labelled } from '../../../parts/form/labelled.tsx'
import { Card } from '../../../parts/page.tsx'
import { nameOfId } from '../../../state/mesh/nodes.ts'
import { a } from '../../../strings/automation.ts'
import { TOKEN_NAMES } from '../../../../shared/automation/tokens.ts'
import { CronField, type Form, NodeSelect, TemplateField, tidy } from '../fields.tsx'
import { nodeIdOf } from '../rule.ts'
import { type KindView, type RuleOf, STAND_IN } from './kind.ts'

type Draft = {
  readonly cron: string
  readonly action: 'text' | 'traceroute'
  readonly text: string
  readonly channel: number
  /** Node ID; empty: broadcast. */
  readonly to: string
}

export const scheduleKind = catalog('scheduleKind', {
  name: 'Schedule',
  help: 'Sends a text or a traceroute at set times.',
})

export const schedule: KindView<RuleOf<'schedule'>, Draft> = {
  ...scheduleKind,
  tokens: TOKEN_NAMES,
  empty: { cron: '0 8 * * *', action: 'text', text: '', channel: 0, to: '' },
  draftOf({ action, cron }) {
    const to = action.to === null ? '' : nodeIdOf(action.to)
    const what = action.kind === 'text' ? { text: action.text, channel: action.channel } : {}
    return { cron, action: action.kind, to, ...what }
  },
  ruleOf: ({ cron, action, text, channel, to }, common) => ({
    kind: 'schedule',
    ...common,
    cron: tidy(cron),
    action:
      action === 'traceroute' ? { kind: 'traceroute', to } : { kind: 'text', text, channel, to: to === '' ? null : to },
  }),
  isWhole: ({ action, text, to }) => (action === 'text' ? text.trim() !== '' : to !== ''),
  standIn: { action: 'text', text: STAND_IN },
  Fields,
  summary({ cron, action }, channels) {
    const whom = action.to === null ? null : nameOfId(nodeIdOf(action.to))
    return [cron, action.kind === 'traceroute' ? a.routeTo(whom ?? '') : (whom ?? channels.name(action.channel))]
  },
  facts: ({ action }) =>
    action.kind === 'text'
      ? [
          [a.text, action.text],
          [a.to, action.to === null ? a.everybody : nameOfId(nodeIdOf(action.to))],
        ]
      : [],
}

function Fields({ form }: { form: Form<Draft> }) {
  const { draft, set } = form
  return (
    <>
      <Card title={a.when}>
        <CronField form={form} path="cron" value={draft.cron} help={a.cronSchedule} onInput={(cron) => set({ cron })} />
      </Card>
      <ActionCard form={form} />
    </>
  )
}

function ActionCard({ form }: { form: Form<Draft> }) {
  const { draft, set, errorAt } = form
  const isText = draft.action === 'text'
  return (
    <Card title={a.action}>
      <Segments
        label={a.action}
        value={draft.action}
        options={[
          ['text', a.actions.text],
          ['traceroute', a.actions.traceroute],
        ]}
        onChange={(action) => set({ action })}
      />
      {isText && <TemplateField form={form} path="action.text" value={draft.text} onInput={(text) => set({ text })} />}
      <div class="two names">
        <NodeSelect
          label={a.to}
          value={draft.to}
          none={isText ? a.everybody : a.chooseNode}
          error={errorAt('action.to') && a.toNeeded}
          onChange={(to) => set({ to })}
        />
        {isText && <ChannelSelect form={form} />}
      </div>
    </Card>
  )
}

function ChannelSelect({ form: { draft, set, channels } }: { form: Form<Draft> }) {
  const offered = [...new Set([0, ...channels.used, draft.channel])].toSorted((x, y) => x - y)
  return (
    <Labelled label={a.onChannel}>
      {(aria) => (
        <select
          {...aria}
          value={String(draft.channel)}
          onChange={(event) => set({ channel: Number(event.currentTarget.value) })}
        >
          {offered.map((index) => (
            <option key={index} value={String(index)}>
              {channels.name(index)}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  )
}
