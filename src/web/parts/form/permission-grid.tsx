import './grid.css'
import type { Signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import {
  ACTIONS,
  type Action,
  type Permissions,
  PRESET_NAMES,
  presetOf,
  PRESETS,
  type Resource,
} from '../../../shared/access/resources.ts'
import { namesOf } from '../../../shared/names.ts'
import { t } from '../../strings.ts'
import { userTexts } from '../../strings/people/users.ts'
import { Segments } from './field.tsx'

type Note = (resource: Resource) => ComponentChildren

/**
 * Presets, and one box for each area and action. Ticking write ticks read; clearing read clears write. `note` appears
 * below an area.
 */
export function PermissionGrid({ value, note }: { value: Signal<Permissions>; note?: Note }) {
  const preset = presetOf(value.value)
  const set = (resource: Resource, action: Action, isOn: boolean) => {
    const before = value.value[resource]
    const read = action === 'read' ? isOn : before.read || isOn
    const write = action === 'write' ? isOn : before.write && isOn
    value.value = { ...value.value, [resource]: { read, write } }
  }
  return (
    <div class="stack">
      <Segments
        label={userTexts.preset}
        value={preset}
        options={PRESET_NAMES.map((name) => [name, userTexts.presets[name]] as const)}
        onChange={(name) => (value.value = PRESETS[name])}
      />
      <p class="faint about">{preset === null ? userTexts.presets.custom : userTexts.presetHelp[preset]}</p>
      <table class="grid">
        <thead>
          <tr>
            <th scope="col">{userTexts.resource}</th>
            <th scope="col">{userTexts.read}</th>
            <th scope="col">{userTexts.write}</th>
          </tr>
        </thead>
        <tbody>
          {namesOf(t.resources).map((resource) => (
            <tr key={resource}>
              <th scope="row">
                {t.resources[resource]}
                {note !== undefined && <div class="faint note">{note(resource)}</div>}
              </th>
              {ACTIONS.map((action) => (
                <td key={action}>
                  <label class="box">
                    <input
                      type="checkbox"
                      aria-label={`${t.resources[resource]}: ${t.actions[action]}`}
                      checked={value.value[resource][action]}
                      onChange={(event) => set(resource, action, event.currentTarget.checked)}
                    />
                  </label>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
