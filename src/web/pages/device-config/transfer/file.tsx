import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { useId } from 'preact/hooks'
import { api, ask } from '../../../api.ts'
import { Dialog } from '../../../parts/dialog.tsx'
import { Actions } from '../../../parts/form/field.tsx'
import { Failure, say } from '../../../parts/notice.tsx'
import { useAction, useLoad } from '../../../state/load.ts'
import { can } from '../../../state/session.ts'
import { t } from '../../../strings.ts'
import { MAX_CONFIGURATION_FILE } from '../../../../shared/limits.ts'
import { transfer } from '../../../strings/system/transfer.ts'
import { fullName, sectionName } from '../words.ts'
import { FileButton } from './file-button.tsx'
import { type Agreed, type FilePlan, PlannedChanges } from './planned.tsx'

type ExportProps = { source: string; onClose(): void }
type Exported = InferResponseType<typeof api.configuration.transfer.file.$get, 200>

/** Shows a radio's settings as a file, and saves it: without secrets, or with the chosen ones. */
export function ExportDialog({ source, onClose }: ExportProps) {
  const plain = useLoad(() => ask<Exported>(api.configuration.transfer.file.$get({ query: { source } })), [source])
  const chosen = useSignal<readonly string[]>([])
  const full = useSignal<Exported | null>(null)
  const { busy, error, run } = useAction()
  const id = useId()
  const file = full.value ?? plain.data.value
  const exportSecrets = () =>
    run(async () => {
      const json = { secrets: [...chosen.value] }
      full.value = await ask<Exported>(api.configuration.transfer.file.export.$post({ query: { source }, json }))
    })
  return (
    <Dialog title={transfer.export} onClose={onClose}>
      <div class="stack">
        <p class="measure">
          {transfer.exportHelp} {transfer.notIncluded}
        </p>
        <Failure error={plain.error.value} retry={plain.reload} />
        {file !== null && (
          <div class="field">
            <label for={id}>{transfer.fileText}</label>
            <textarea id={id} class="mono file-text" rows={12} readOnly spellcheck={false} value={file.yaml} />
          </div>
        )}
        {can('configuration', 'write') && full.value === null && (plain.data.value?.leftOut.length ?? 0) > 0 && (
          <details>
            <summary>{transfer.secrets}</summary>
            <div class="stack tight">
              <div class="notice notice-warn">{transfer.secretsWarning}</div>
              {plain.data.value?.leftOut.map((name) => (
                <label class="check" key={name}>
                  <input
                    type="checkbox"
                    checked={chosen.value.includes(name)}
                    onChange={({ currentTarget: { checked } }) => {
                      const others = chosen.value.filter((one) => one !== name)
                      chosen.value = checked ? [...others, name] : others
                    }}
                  />
                  {secretName(name)}
                </label>
              ))}
              <div>
                <button
                  type="button"
                  class="button"
                  disabled={busy.value || chosen.value.length === 0}
                  onClick={() => void exportSecrets()}
                >
                  {transfer.exportSecrets}
                </button>
              </div>
            </div>
          </details>
        )}
        {full.value !== null && <div class="notice notice-warn">{transfer.secretsWarning}</div>}
        <Failure error={error.value} />
        <Actions>
          <button type="button" class="button" onClick={onClose}>
            {t.common.close}
          </button>
          <button
            type="button"
            class="button primary"
            disabled={file === null}
            onClick={() => file !== null && save(file.yaml)}
          >
            {transfer.save}
          </button>
        </Actions>
      </div>
    </Dialog>
  )
}

function secretName(name: string): string {
  if (name === 'channels') return transfer.secretChannels
  const section = name.split('.')[0] ?? ''
  const path = name.slice(section.length + 1)
  return `${sectionName(section)}: ${fullName(section, { field: { path }, channel: null })}`
}

function save(yaml: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([yaml], { type: 'application/yaml' }))
  link.download = 'meshtastic.yaml'
  link.click()
  URL.revokeObjectURL(link.href)
}

type ImportProps = ExportProps & { onSent(): void }

/** Applies a file to a radio, after showing what changes. */
export function ImportDialog({ source, onClose, onSent }: ImportProps) {
  const yaml = useSignal('')
  const plan = useSignal<FilePlan | null>(null)
  const isTooLarge = useSignal(false)
  const { busy, error, run } = useAction()
  const id = useId()
  const preview = () =>
    run(async () => {
      const json = { yaml: yaml.value }
      plan.value = await ask<FilePlan>(api.configuration.transfer.file.preview.$post({ query: { source }, json }))
    })
  const apply = ({ sections, confirm, revisions }: Agreed) =>
    run(async () => {
      const json = { yaml: yaml.value, sections: [...sections], confirm, revisions }
      await ask(api.configuration.transfer.file.$put({ query: { source }, json }))
      say(transfer.applied)
      onSent()
      onClose()
    })
  const take = async (file: Blob | undefined) => {
    isTooLarge.value = file !== undefined && file.size > MAX_CONFIGURATION_FILE
    if (file !== undefined && !isTooLarge.value) yaml.value = await file.text()
  }
  return (
    <Dialog title={transfer.import} onClose={onClose}>
      {plan.value === null ? (
        <div class="stack">
          <p class="measure">{transfer.importHelp}</p>
          <FileButton
            label={transfer.choose}
            accept=".yaml,.yml,application/yaml,text/plain"
            onFile={(file) => void take(file)}
          />
          <div class="field">
            <label for={id}>{transfer.text}</label>
            <textarea
              id={id}
              class="mono file-text"
              rows={12}
              maxLength={MAX_CONFIGURATION_FILE}
              spellcheck={false}
              autocapitalize="off"
              value={yaml.value}
              onInput={({ currentTarget }) => (yaml.value = currentTarget.value)}
            />
          </div>
          <div role="status">{isTooLarge.value && <span class="bad">{transfer.tooLarge}</span>}</div>
          <Failure error={error.value} />
          <Actions>
            <button type="button" class="button" onClick={onClose}>
              {t.common.cancel}
            </button>
            <button
              type="button"
              class="button primary"
              disabled={busy.value || yaml.value.trim() === ''}
              onClick={() => void preview()}
            >
              {busy.value ? transfer.previewing : transfer.preview}
            </button>
          </Actions>
        </div>
      ) : (
        <div class="stack">
          <LeftOut leftOut={plan.value.leftOut} />
          <PlannedChanges
            plan={plan.value}
            isOptional
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

function LeftOut({ leftOut }: Pick<FilePlan, 'leftOut'>) {
  if (leftOut.length === 0) return null
  return (
    <div class="notice">
      <div>
        <strong>{transfer.leftOut}</strong>
        <ul>
          {leftOut.map(({ key, why }) => (
            <li key={key}>
              <code>{key}</code>: {transfer.leftOutReasons[why]}
            </li>
          ))}
        </ul>
      </div>
    </div>
  )
}
