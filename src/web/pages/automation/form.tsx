import { Labelled } from '../../parts/form/labelled.tsx'
import { Card } from '../../parts/page.tsx'
import { Switch } from '../../parts/form/switch.tsx'
import { TimeZoneSelect } from '../../parts/form/time-zone-select.tsx'
import { a } from '../../strings/automation.ts'
import type { Draft } from './draft.ts'
import { type Form, Line } from './fields.tsx'
import { type OwnDraft, viewOf } from './kinds/kinds.ts'
import { MAX_RULE_NAME } from '../../../shared/limits.ts'

/** The form of a rule, with the fields of its kind. */
export function RuleFields(props: { form: Form<Draft>; own: Form<OwnDraft>; air: string | null }) {
  const { form, own, air } = props
  const { draft, set } = form
  const { Fields } = viewOf(draft.kind)
  return (
    <>
      <Card title={a.rule}>
        <Line
          form={form}
          label={a.name}
          hint={a.nameHint}
          path="name"
          value={draft.name}
          maxLength={MAX_RULE_NAME}
          onInput={(name) => set({ name })}
        />
        <Switch
          checked={draft.enabled}
          hint={air === null ? undefined : a.enabledHelp(air)}
          onChange={(enabled) => set({ enabled })}
        >
          {a.enabled}
        </Switch>
      </Card>
      <Fields form={own} />
      <Times form={form} />
    </>
  )
}

function Times({ form }: { form: Form<Draft> }) {
  const { draft, set, errorAt } = form
  const error = errorAt('quietHours')
  const time = (label: string, value: string, onInput: (value: string) => void) => (
    <Labelled label={label}>
      {(aria) => <input {...aria} type="time" value={value} onInput={(event) => onInput(event.currentTarget.value)} />}
    </Labelled>
  )
  return (
    <Card title={a.quiet} help={a.quietHelp}>
      <Switch checked={draft.isQuiet} error={error && a.quietMissing} onChange={(isQuiet) => set({ isQuiet })}>
        {a.quietOn}
      </Switch>
      {draft.isQuiet && (
        <div class="two">
          {time(a.quietFrom, draft.quietFrom, (quietFrom) => set({ quietFrom }))}
          {time(a.quietTo, draft.quietTo, (quietTo) => set({ quietTo }))}
        </div>
      )}
      <TimeZoneSelect
        label={a.timeZone}
        hint={a.timeZoneHint}
        error={errorAt('timeZone')}
        value={draft.timeZone}
        onChange={(timeZone) => set({ timeZone })}
      />
    </Card>
  )
}
