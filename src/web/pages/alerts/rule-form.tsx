import { useSignal } from '@preact/signals'
import { MAX_RULE_NAME } from '../../../shared/limits.ts'
import { api, ask } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Field, SaveOrCancel, Select } from '../../parts/form/field.tsx'
import { Group } from '../../parts/form/labelled.tsx'
import { Switch } from '../../parts/form/switch.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { useAction } from '../../state/load.ts'
import { alertTexts, DESTINATION_TEXTS } from '../../strings/alerts.ts'
import { t } from '../../strings.ts'
import type { Destination } from './destinations.tsx'
import { DurationField } from './kinds/duration-field.tsx'
import { offeredKinds, viewOf } from './kinds/kinds.ts'
import { Preview } from './preview.tsx'
import type { NewRule, ShownRule } from './rule.ts'

/** Initially. */
const REPEAT_HOURS = 24
const MAX_REPEAT_HOURS = 168

type Props = {
  /** Null: a new one. */
  saved: ShownRule | null
  initial: NewRule
  destinations: readonly Destination[]
  onDone(): void
}

/** Creates or changes a rule, and previews when it would have fired. */
export function RuleForm({ saved, initial, destinations, onDone }: Props) {
  const draft = useSignal<NewRule>(initial)
  const rule = draft.value
  const view = viewOf(rule.kind)
  const named = () => (draft.value.name.trim() === '' ? { ...draft.value, name: view.name } : draft.value)
  const saving = useAction()
  const save = (event: SubmitEvent) => {
    event.preventDefault()
    void saving.run(async () => {
      const json = named()
      if (saved === null) await ask(api.alerts.rules.$post({ json }))
      else {
        const param = { id: String(saved.id) }
        await ask(api.alerts.rules[':id'].$put({ param, json }, { headers: { 'If-Match': `"${saved.revision}"` } }))
      }
      say(t.common.saved)
      onDone()
    })
  }
  const set = (changes: object) => (draft.value = Object.assign({ ...draft.value }, changes))
  return (
    <Dialog title={saved === null ? alertTexts.newRule : alertTexts.editRule} onClose={onDone}>
      <form class="stack" onSubmit={save}>
        {saved === null && (
          <Select
            label={alertTexts.kind}
            value={rule.kind}
            options={offeredKinds().map((kind) => [kind, viewOf(kind).name] as const)}
            onChange={(kind) => {
              // The name of a preset says what it was about.
              const name = rule.name === initial.name ? '' : rule.name
              draft.value = viewOf(kind).fresh({ name, destinations: rule.destinations ?? [] })
            }}
          />
        )}
        <Preview rule={named()} sentence={view.sentence(rule)} />
        <view.Fields rule={rule} set={set} />
        <Field
          label={alertTexts.name}
          hint={alertTexts.nameHint(view.name)}
          value={rule.name}
          maxLength={MAX_RULE_NAME}
          onInput={(event) => set({ name: event.currentTarget.value })}
        />
        <Group
          legend={alertTexts.destinations}
          hint={destinations.length === 0 ? alertTexts.noDestinations : undefined}
        >
          {destinations.map(({ id, name, kind }) => (
            <label class="check" key={id}>
              <input
                type="checkbox"
                checked={rule.destinations?.includes(id) ?? false}
                onChange={(event) => {
                  const others = (rule.destinations ?? []).filter((other) => other !== id)
                  set({ destinations: event.currentTarget.checked ? [...others, id] : others })
                }}
              />{' '}
              {name} <span class="faint">{DESTINATION_TEXTS[kind]}</span>
            </label>
          ))}
        </Group>
        {rule.kind !== 'sign_in' && (
          <Switch checked={rule.urgent ?? false} onChange={(urgent) => set({ urgent })}>
            {alertTexts.urgent}
          </Switch>
        )}
        {view.isEvent !== true && (
          <>
            <Switch
              checked={rule.repeatHours != null}
              onChange={(repeats) => set({ repeatHours: repeats ? REPEAT_HOURS : null })}
            >
              {alertTexts.repeat}
            </Switch>
            {rule.repeatHours != null && (
              <DurationField
                label={alertTexts.every}
                minutes={rule.repeatHours * 60}
                min={60}
                max={MAX_REPEAT_HOURS * 60}
                shortest="hours"
                set={(minutes) => set({ repeatHours: Math.round(minutes / 60) })}
              />
            )}
            <Switch checked={rule.tellResolved ?? true} onChange={(tellResolved) => set({ tellResolved })}>
              {alertTexts.tellResolved}
            </Switch>
          </>
        )}
        <Failure error={saving.error.value} />
        <SaveOrCancel busy={saving.busy.value} onCancel={onDone} />
      </form>
    </Dialog>
  )
}
