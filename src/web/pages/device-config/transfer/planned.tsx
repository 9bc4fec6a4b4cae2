import { type Signal, useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import type { api, ApiError } from '../../../api.ts'
import { Actions } from '../../../parts/form/field.tsx'
import { Failure } from '../../../parts/notice.tsx'
import { c } from '../../../strings/system/configuration.ts'
import { transfer } from '../../../strings/system/transfer.ts'
import { precisionName } from '../field.tsx'
import { fullName, optionName, sectionName } from '../words.ts'

type Routes = typeof api.configuration.transfer
export type FilePlan = InferResponseType<Routes['file']['preview']['$post'], 200>
export type ChannelPlan = InferResponseType<Routes['channels']['preview']['$post'], 200>
type Plan = Pick<FilePlan, 'sections' | 'slots' | 'confirm'>
type Planned = Plan['sections'][number]

export type Agreed = {
  readonly sections: readonly string[]
  readonly confirm: string[]
  readonly revisions: Record<string, string>
}

type Props = {
  plan: Plan
  /** Whether sections can be left out. */
  isOptional: boolean
  busy: Signal<boolean>
  error: Signal<ApiError | null>
  onBack(): void
  onApply(agreed: Agreed): void
}

/** What an import would change: section by section, with what must be confirmed. */
export function PlannedChanges({ plan, isOptional, busy, error, onBack, onApply }: Props) {
  const able = plan.sections.filter(({ issues }) => issues.length === 0).map(({ section }) => section)
  const left = useSignal<readonly string[]>([])
  const confirmed = useSignal<readonly string[]>([])
  const chosen = able.filter((section) => !left.value.includes(section))
  const needed = plan.confirm.filter((each) => chosen.includes(sectionOf(each)))
  const isConfirmed = needed.every((each) => confirmed.value.includes(each))
  const isStuck = !isOptional && able.length < plan.sections.length
  const apply = () =>
    onApply({
      sections: chosen,
      confirm: [...needed],
      revisions: Object.fromEntries(plan.sections.map(({ section, revision }) => [section, revision])),
    })
  return (
    <div class="stack">
      {plan.sections.length === 0 && <p>{transfer.nothing}</p>}
      {plan.sections.map((each) => (
        <section class="planned" key={each.section} aria-label={sectionName(each.section)}>
          {isOptional && each.issues.length === 0 ? (
            <label class="check">
              <input
                type="checkbox"
                checked={chosen.includes(each.section)}
                onChange={({ currentTarget: { checked } }) => {
                  const others = left.value.filter((section) => section !== each.section)
                  left.value = checked ? others : [...others, each.section]
                }}
              />
              <strong>{transfer.takeSection(sectionName(each.section))}</strong>
            </label>
          ) : (
            <strong>{sectionName(each.section)}</strong>
          )}
          {each.section === 'channels' && each.issues.length === 0 ? (
            <Slots slots={plan.slots} />
          ) : (
            <Changes planned={each} />
          )}
        </section>
      ))}
      {plan.sections.every(({ section }) => section !== 'channels') && <Slots slots={plan.slots} />}
      {chosen.length > 0 && !isStuck && <p class="faint">{c.restart}</p>}
      {needed.length > 0 && !isStuck && (
        <fieldset class="confirms">
          <legend>{c.confirmTitle}</legend>
          {needed.map((each) => (
            <label class="confirm" key={each}>
              <input
                type="checkbox"
                checked={confirmed.value.includes(each)}
                onChange={({ currentTarget: { checked } }) => {
                  const others = confirmed.value.filter((one) => one !== each)
                  confirmed.value = checked ? [...others, each] : others
                }}
              />
              <span>{confirmationOf(each, plan)}</span>
            </label>
          ))}
        </fieldset>
      )}
      <Failure error={error.value} />
      <Actions>
        <button type="button" class="button" onClick={onBack}>
          {transfer.back}
        </button>
        {chosen.length > 0 && !isStuck && (
          <button
            type="button"
            class={needed.length > 0 ? 'button danger' : 'button primary'}
            disabled={busy.value || !isConfirmed}
            onClick={apply}
          >
            {busy.value ? c.sending : transfer.apply}
          </button>
        )}
      </Actions>
    </div>
  )
}

/** `channels` and `admin` are about channels; the others are section and path. */
function sectionOf(confirmation: string): string {
  return confirmation === 'admin' ? 'channels' : (confirmation.split('.')[0] ?? '')
}

function confirmationOf(confirmation: string, { sections }: Plan): string {
  if (confirmation === 'channels' || confirmation === 'admin') return transfer.confirms[confirmation]
  const section = sectionOf(confirmation)
  const path = confirmation.slice(section.length + 1)
  const field = sections.find((each) => each.section === section)?.fields.find((each) => each.path === path)
  const name = fullName(section, namedBy(path))
  return c.confirms[field?.risk ?? 'mesh'](name)
}

function namedBy(path: string) {
  const channel = /^channels\.(\d+)\./.exec(path)?.[1]
  return {
    field: { path: path.replace(/^channels\.\d+\./, 'channels.*.') },
    channel: channel === undefined ? null : Number(channel),
  }
}

function Slots({ slots }: Pick<Plan, 'slots'>) {
  if (slots.length === 0) return null
  return (
    <ul class="slots">
      {slots.map((slot, at) => (
        <li key={at}>
          <bdi>{tellSlot(slot)}</bdi>
          {slot.positionPrecision > 0 && slot.change !== 'removed' && slot.change !== 'skipped' && (
            <div class="about">{transfer.position(precisionName(slot.positionPrecision))}</div>
          )}
        </li>
      ))}
    </ul>
  )
}

function tellSlot({ change, index, name, former }: Plan['slots'][number]): string {
  const [now, then] = [name, former ?? ''].map((each) => (each === '' ? transfer.noName : `“${each}”`))
  return transfer.slots[change](now ?? '', index ?? 0, then ?? '')
}

function Changes({ planned: { section, fields, issues } }: { planned: Planned }) {
  return (
    <>
      {issues.length > 0 && (
        <div class="notice notice-warn">
          <div>
            {transfer.blocked}
            {issues.map(({ path, message }) => (
              <div key={`${path} ${message}`}>
                {fullName(section, namedBy(path.replace(/^(?:values|secrets)\./, '')))}: {message}
              </div>
            ))}
          </div>
        </div>
      )}
      {fields.length > 0 && (
        <table class="changes differences">
          <thead>
            <tr>
              <th scope="col">{c.setting}</th>
              <th scope="col">{c.before}</th>
              <th scope="col">{c.after}</th>
            </tr>
          </thead>
          <tbody>
            {fields.map(({ path, before, after, secret }) => (
              <tr key={path}>
                <th scope="row">{fullName(section, namedBy(path))}</th>
                {secret ? (
                  <td colSpan={2}>
                    <ins>{transfer.secretChanges}</ins>
                  </td>
                ) : (
                  <>
                    <td>
                      <del>{shown(path, before)}</del>
                    </td>
                    <td>
                      <ins>{shown(path, after)}</ins>
                    </td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  )
}

function shown(path: string, value: unknown): string {
  if (typeof value === 'boolean') return value ? c.on : c.off
  if (Array.isArray(value)) return value.length === 0 ? c.empty : value.map((each) => shown(path, each)).join(', ')
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string' || value === '') return c.empty
  return /^[A-Z][A-Z0-9_]+$/.test(value) ? optionName({ path, type: 'enum' }, value) : value
}
