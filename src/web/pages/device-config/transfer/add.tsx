import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, ask } from '../../../api.ts'
import { Dialog } from '../../../parts/dialog.tsx'
import { Actions, Field, Segments } from '../../../parts/form/field.tsx'
import { Switch } from '../../../parts/form/switch.tsx'
import { Failure, say } from '../../../parts/notice.tsx'
import { useAction } from '../../../state/load.ts'
import { t } from '../../../strings.ts'
import { MAX_CHANNEL_URL } from '../../../../shared/limits.ts'
import { transfer } from '../../../strings/system/transfer.ts'
import { type Agreed, type ChannelPlan, PlannedChanges } from './planned.tsx'
import { FileButton } from './file-button.tsx'
import { findDetector, readPicture } from './scan.ts'

type Props = { source: string; onClose(): void; onSent(): void }
type Asked = { readonly url: string; readonly mode?: 'add' | 'replace'; readonly lora: boolean }

/** Adds the channels of a URL or QR code, after showing what changes. */
export function AddDialog({ source, onClose, onSent }: Props) {
  const asked = useSignal<Asked>({ url: '', lora: false })
  const plan = useSignal<ChannelPlan | null>(null)
  const { busy, error, run } = useAction()
  const preview = (next: Asked) =>
    run(async () => {
      const json = { ...next }
      plan.value = await ask<ChannelPlan>(
        api.configuration.transfer.channels.preview.$post({ query: { source }, json }),
      )
      asked.value = next
    })
  const apply = ({ confirm, revisions }: Agreed) =>
    run(async () => {
      const json = { ...asked.value, mode: plan.value?.mode ?? 'add', confirm, revisions }
      await ask(api.configuration.transfer.channels.$put({ query: { source }, json }))
      say(transfer.applied)
      onSent()
      onClose()
    })
  return (
    <Dialog title={transfer.add} onClose={onClose}>
      {plan.value === null ? (
        <div class="stack">
          <p class="measure">{transfer.addHelp}</p>
          <Field
            label={transfer.paste}
            hint={transfer.pasteHint}
            value={asked.value.url}
            maxLength={MAX_CHANNEL_URL}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            autofocus
            onInput={({ currentTarget }) => (asked.value = { ...asked.value, url: currentTarget.value })}
          />
          <Scanner onFound={(url) => void preview({ url, lora: false })} />
          <Failure error={error.value} />
          <Actions>
            <button type="button" class="button" onClick={onClose}>
              {t.common.cancel}
            </button>
            <button
              type="button"
              class="button primary"
              disabled={busy.value || asked.value.url.trim() === ''}
              onClick={() => void preview({ url: asked.value.url.trim(), lora: false })}
            >
              {busy.value ? transfer.previewing : transfer.preview}
            </button>
          </Actions>
        </div>
      ) : (
        <div class="stack">
          <Segments
            label={transfer.mode}
            value={plan.value.mode}
            options={[
              ['add', transfer.modes.add],
              ['replace', transfer.modes.replace],
            ]}
            onChange={(mode) => void preview({ ...asked.value, mode })}
          />
          {plan.value.hasLora && (
            <Switch
              checked={asked.value.lora}
              hint={asked.value.lora && plan.value.keepsRegion ? transfer.keepsRegion : undefined}
              onChange={(lora) => void preview({ ...asked.value, mode: plan.value?.mode ?? 'add', lora })}
            >
              {transfer.takeLora}
            </Switch>
          )}
          <PlannedChanges
            key={`${plan.value.mode} ${asked.value.lora}`}
            plan={plan.value}
            isOptional={false}
            busy={busy}
            error={error}
            onBack={() => (plan.value = null)}
            onApply={(agreed) => void apply(agreed)}
          />
        </div>
      )}
    </Dialog>
  )
}

/** Reads a QR code from a picture, if the browser can. Phones offer to take one. */
function Scanner({ onFound }: { onFound(url: string): void }) {
  const detector = useSignal<Awaited<ReturnType<typeof findDetector>> | undefined>(undefined)
  const hasNone = useSignal(false)
  useEffect(() => {
    void findDetector().then((found) => (detector.value = found))
  }, [])
  const reader = detector.value
  if (reader === undefined) return null
  if (reader === null) return <p class="faint">{transfer.noReader}</p>
  const take = async (file: Blob | undefined) => {
    if (file === undefined) return
    const found = await readPicture(reader, file)
    hasNone.value = found === null
    if (found !== null) onFound(found)
  }
  return (
    <>
      <FileButton label={transfer.picture} accept="image/*" onFile={(file) => void take(file)} />
      <div role="status">{hasNone.value && <span class="bad">{transfer.noCode}</span>}</div>
    </>
  )
}
