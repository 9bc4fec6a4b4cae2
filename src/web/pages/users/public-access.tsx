import './users.css'
import { useSignal } from '@preact/signals'
import { PUBLIC_RESOURCES, type PublicAccess, type PublicResource } from '../../../shared/access/public-access.ts'
import { MAX_RETENTION_DAYS } from '../../../shared/limits.ts'
import { api, ask, BASE, seeAs } from '../../api.ts'
import { distance } from '../../measure.ts'
import { CopyText } from '../../parts/copy.tsx'
import { Actions, Field, Select, Submit } from '../../parts/form/field.tsx'
import { Switch } from '../../parts/form/switch.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { useAction, useLoad } from '../../state/load.ts'
import { precisionMeters } from '../../state/mesh/nodes.ts'
import { publicTexts } from '../../strings/people/public-access.ts'
import { t } from '../../strings.ts'
import { EmbedProfiles } from './embed-profiles.tsx'

const AS_SENT = 'as-sent'
const BITS = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]

export function PublicAccessPage() {
  const { data, error, reload } = useLoad(async () => {
    const [access, { channels }] = await Promise.all([ask(api['public-access'].$get()), ask(api.channels.$get())])
    return { access, channels: channels.filter(({ role }) => role !== 'DISABLED') }
  }, [])
  return (
    <Page title={publicTexts.title}>
      <Failure error={error.value} retry={reload} />
      {data.value !== null && (
        <>
          <AccessForm {...data.value} key={JSON.stringify(data.value.access)} onSaved={reload} />
          <EmbedProfiles isOn={data.value.access.enabled && data.value.access.permissions.nodes.read} />
        </>
      )}
    </Page>
  )
}

type Known = { readonly index: number; readonly name: string }

function AccessForm(props: { access: PublicAccess; channels: readonly Known[]; onSaved(): Promise<void> }) {
  const { busy, error, run } = useAction()
  const draft = useSignal(props.access)
  const { enabled, permissions, channels, positionPrecisionBits: bits, hideSilentAfterDays } = draft.value
  const set = (changes: Partial<PublicAccess>) => (draft.value = { ...draft.value, ...changes })
  const named = new Map(props.channels.map(({ index, name }) => [index, name || t.messages.channel(index)]))
  const listed = [...new Set([...named.keys(), ...channels])].toSorted((a, b) => a - b)
  const body = () => ({ json: { ...draft.value, permissions: readOnly(permissions), channels: [...channels] } })
  const save = (event: SubmitEvent) => {
    event.preventDefault()
    void run(async () => {
      await ask(api['public-access'].$put(body()))
      say(publicTexts.saved)
      await props.onSaved()
    })
  }
  const preview = async () => {
    const { seeAs: ticket } = await ask(api['public-access'].preview.$post(body()))
    seeAs({ ticket, name: null, back: '/public-access' })
  }
  return (
    <form onSubmit={save} class="stack">
      <div class="cards">
        <div class="stack">
          <Card title={publicTexts.what}>
            <div class="stack">
              <Switch
                checked={enabled}
                hint={enabled ? publicTexts.onHelp : publicTexts.offHelp}
                onChange={(isOn) => set({ enabled: isOn })}
              >
                {publicTexts.on}
              </Switch>
              <fieldset class="group">
                {PUBLIC_RESOURCES.map((resource) => (
                  <Check
                    key={resource}
                    label={publicTexts.areas[resource]}
                    checked={permissions[resource].read}
                    onChange={(read) => set({ permissions: { ...permissions, [resource]: { read, write: false } } })}
                  />
                ))}
              </fieldset>
              <fieldset class="group">
                <legend>{publicTexts.channels}</legend>
                {listed.length === 0 && <p class="faint">{publicTexts.noChannels}</p>}
                {listed.map((index) => (
                  <Check
                    key={index}
                    label={named.get(index) ?? t.messages.channel(index)}
                    checked={channels.includes(index)}
                    onChange={(isOn) =>
                      set({ channels: isOn ? [...channels, index] : channels.filter((one) => one !== index) })
                    }
                  />
                ))}
                <p class="faint about">{publicTexts.channelsHelp}</p>
              </fieldset>
              <Select
                label={publicTexts.precision}
                value={bits === null ? AS_SENT : String(bits)}
                options={precisionOptions(bits)}
                onChange={(value) => set({ positionPrecisionBits: value === AS_SENT ? null : Number(value) })}
              />
              <p class="faint about">{publicTexts.precisionHelp}</p>
              <Field
                label={publicTexts.silent}
                name="hideSilentAfterDays"
                type="number"
                min={1}
                max={MAX_RETENTION_DAYS}
                hint={publicTexts.silentHelp}
                value={hideSilentAfterDays === null ? '' : String(hideSilentAfterDays)}
                onInput={({ currentTarget: { value } }) =>
                  set({ hideSilentAfterDays: value === '' ? null : Number(value) })
                }
              />
            </div>
          </Card>
        </div>
        <div class="stack">
          <Card title={publicTexts.never}>
            <ul class="bullets">
              {publicTexts.neverList.map((line) => (
                <li key={line}>{line}</li>
              ))}
            </ul>
          </Card>
          <Card title={publicTexts.preview} help={publicTexts.previewHelp}>
            <Actions>
              <button type="button" class="button" disabled={busy.value} onClick={() => void run(preview)}>
                {publicTexts.preview}
              </button>
            </Actions>
          </Card>
          <Card title={publicTexts.link}>
            <CopyText text={siteAddress('map')} label={publicTexts.link} />
          </Card>
        </div>
      </div>
      <Failure error={error.value} />
      <Actions>
        <Submit busy={busy.value} idle={t.common.save} working={t.common.saving} />
      </Actions>
    </form>
  )
}

function siteAddress(path: string): string {
  return new URL(BASE + path, location.origin).href
}

function readOnly(permissions: PublicAccess['permissions']) {
  const grant = (resource: PublicResource) => ({ read: permissions[resource].read, write: false as const })
  return { dashboard: grant('dashboard'), nodes: grant('nodes'), messages: grant('messages'), info: grant('info') }
}

function precisionOptions(current: number | null): [string, string][] {
  const all = current === null || BITS.includes(current) ? BITS : [...BITS, current]
  const named = all.map((bits): [string, string] => {
    const meters = precisionMeters(bits)
    return [String(bits), meters === null ? publicTexts.asSent : publicTexts.within(distance(meters))]
  })
  return [...named, [AS_SENT, publicTexts.asSent]]
}

function Check(props: { label: string; checked: boolean; onChange(isOn: boolean): void }) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={props.checked}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
      <span>{props.label}</span>
    </label>
  )
}
