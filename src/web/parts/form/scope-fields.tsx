import './grid.css'
import type { Signal } from '@preact/signals'
import { useSignal } from '@preact/signals'
import { ACTIONS, type Action, type Grant } from '../../../shared/access/resources.ts'
import { canReadChannel, canWriteChannel, type Channels, type Scope } from '../../../shared/access/scope.ts'
import { api, ask } from '../../api.ts'
import { useLoad } from '../../state/load.ts'
import { t } from '../../strings.ts'
import { scopeTexts } from '../../strings/people/scope.ts'
import { Failure } from '../notice.tsx'
import { Segments } from './field.tsx'

/** Which contents of the mesh somebody sees: channels by name, and direct messages. Writing requires reading. */
export function ScopeFields({ value }: { value: Signal<Scope> }) {
  const { data, error, reload } = useLoad(async () => (await ask(api.channels.$get())).channels, [])
  const known = (data.value ?? []).filter(({ role }) => role !== 'DISABLED')
  const { channels, direct } = value.value
  // Kept while all channels are chosen, so that trying the other choice loses nothing.
  const chosen = useSignal<Exclude<Channels, 'all'> | null>(null)
  const used = [...new Set(known.map(({ index }) => index))]
  const listed = [...new Set([...used, ...(channels === 'all' ? [] : channels.read)])].toSorted((a, b) => a - b)
  const setChannels = (next: Channels) => (value.value = { channels: next, direct: value.peek().direct })
  const choose = (mode: 'all' | 'chosen') => {
    if (mode === 'all') {
      if (channels !== 'all') chosen.value = channels
      setChannels('all')
    } else if (channels === 'all') setChannels(chosen.peek() ?? { read: used, write: used })
  }
  const set = (index: number, next: Grant) => {
    if (channels === 'all') return
    const put = (action: Action) =>
      listed.filter((one) => (one === index ? next[action] : channels[action].includes(one)))
    setChannels({ read: put('read'), write: put('write') })
  }
  const nameOf = (index: number) =>
    known.find((one) => one.index === index && one.name !== '')?.name ?? t.messages.channel(index)
  return (
    <div class="stack">
      <Segments
        label={scopeTexts.channels}
        value={channels === 'all' ? 'all' : 'chosen'}
        options={[
          ['all', scopeTexts.all],
          ['chosen', scopeTexts.chosen],
        ]}
        onChange={choose}
      />
      <p class="faint about">{channels === 'all' ? scopeTexts.allHelp : scopeTexts.chosenHelp}</p>
      <Failure error={error.value} retry={reload} />
      <div class="channel-rights">
        <table class="rights">
          <thead>
            <tr>
              <th scope="col">{scopeTexts.what}</th>
              <th scope="col">{scopeTexts.read}</th>
              <th scope="col">{scopeTexts.write}</th>
            </tr>
          </thead>
          <tbody>
            {channels !== 'all' &&
              listed.map((index) => (
                <RightsRow
                  key={index}
                  name={nameOf(index)}
                  grant={{ read: canReadChannel(value.value, index), write: canWriteChannel(value.value, index) }}
                  onChange={(next) => set(index, next)}
                />
              ))}
            <RightsRow
              name={scopeTexts.direct}
              note={scopeTexts.directHelp}
              grant={direct}
              onChange={(next) => (value.value = { channels, direct: next })}
            />
          </tbody>
        </table>
      </div>
    </div>
  )
}

function RightsRow(props: { name: string; note?: string; grant: Grant; onChange(next: Grant): void }) {
  const { name, note, grant } = props
  const after = (action: Action, isOn: boolean): Grant =>
    action === 'read' ? { read: isOn, write: isOn && grant.write } : { read: isOn || grant.read, write: isOn }
  return (
    <tr>
      <th scope="row">
        {name}
        {note !== undefined && <div class="faint note">{note}</div>}
      </th>
      {ACTIONS.map((action) => (
        <td key={action}>
          <label class="box">
            <input
              type="checkbox"
              aria-label={`${name}: ${t.actions[action]}`}
              checked={grant[action]}
              onChange={(event) => props.onChange(after(action, event.currentTarget.checked))}
            />
          </label>
        </td>
      ))}
    </tr>
  )
}
