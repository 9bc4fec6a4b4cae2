import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { api, ask, isRecord } from '../../../api.ts'
import { CopyText } from '../../../parts/copy.tsx'
import { Dialog } from '../../../parts/dialog.tsx'
import { Actions } from '../../../parts/form/field.tsx'
import { Group } from '../../../parts/form/labelled.tsx'
import { Switch } from '../../../parts/form/switch.tsx'
import { Failure } from '../../../parts/notice.tsx'
import { QrCode } from '../../../parts/qr-code.tsx'
import { useAction } from '../../../state/load.ts'
import { t } from '../../../strings.ts'
import { c } from '../../../strings/system/configuration.ts'
import { transfer } from '../../../strings/system/transfer.ts'
import { channelsOf, type Section } from '../model.ts'

type Shared = InferResponseType<typeof api.configuration.transfer.channels.share.$post, 200>

type Props = { section: Section; onClose(): void }

/** Chooses channels, and shows their URL as a QR code. */
export function ShareDialog({ section, onClose }: Props) {
  const shared = useSignal<Shared | null>(null)
  return (
    <Dialog title={transfer.share} onClose={onClose}>
      {shared.value === null ? (
        <Choice section={section} onShared={(value) => (shared.value = value)} onClose={onClose} />
      ) : (
        <Result shared={shared.value} onBack={() => (shared.value = null)} onClose={onClose} />
      )}
    </Dialog>
  )
}

function Choice({ section, onShared, onClose }: Props & { onShared(shared: Shared): void }) {
  const used = channelsOf(section).filter(({ role }) => role !== 'DISABLED')
  const primary = used.find(({ role }) => role === 'PRIMARY')
  const chosen = useSignal<readonly number[]>(primary === undefined ? [] : [primary.index])
  const lora = useSignal(true)
  const add = useSignal(false)
  const { busy, error, run } = useAction()
  const share = () =>
    run(async () => {
      const json = { channels: [...chosen.value], lora: lora.value && !add.value, add: add.value }
      const query = { source: section.source }
      onShared(await ask<Shared>(api.configuration.transfer.channels.share.$post({ query, json })))
    })
  const lacksPrimary = !add.value && primary !== undefined && !chosen.value.includes(primary.index)
  return (
    <div class="stack">
      <p class="measure">{transfer.shareHelp}</p>
      <Group legend={transfer.which}>
        {used.map((channel) => (
          <label class="check" key={channel.index}>
            <input
              type="checkbox"
              checked={chosen.value.includes(channel.index)}
              onChange={({ currentTarget: { checked } }) => {
                const others = chosen.value.filter((index) => index !== channel.index)
                chosen.value = checked ? [...others, channel.index] : others
              }}
            />
            <span>
              {c.channel(channel.index)} · <bdi>{nameOf(channel['settings'])}</bdi>
            </span>
          </label>
        ))}
      </Group>
      <Switch checked={add.value} hint={transfer.addingHelp} onChange={(isOn) => (add.value = isOn)}>
        {transfer.adding}
      </Switch>
      <Switch
        checked={lora.value && !add.value}
        disabled={add.value}
        hint={transfer.withLoraHelp}
        onChange={(isOn) => (lora.value = isOn)}
      >
        {transfer.withLora}
      </Switch>
      {lacksPrimary && <div class="notice notice-warn">{transfer.noPrimary}</div>}
      <div class="notice notice-warn">{transfer.shareWarning}</div>
      <Failure error={error.value} />
      <Actions>
        <button type="button" class="button" onClick={onClose}>
          {t.common.cancel}
        </button>
        <button
          type="button"
          class="button primary"
          disabled={busy.value || chosen.value.length === 0}
          onClick={() => void share()}
        >
          {busy.value ? transfer.making : transfer.make}
        </button>
      </Actions>
    </div>
  )
}

function nameOf(settings: unknown): string {
  const name = isRecord(settings) ? settings['name'] : ''
  return typeof name === 'string' && name !== '' ? name : transfer.presetName
}

type ResultProps = { shared: Shared; onBack(): void; onClose(): void }

function Result({ shared: { url, channels }, onBack, onClose }: ResultProps) {
  const names = channels.map(({ name }) => (name === '' ? transfer.presetName : name))
  return (
    <div class="stack">
      <p>
        <bdi>{names.join(', ')}</bdi>
      </p>
      <QrCode text={url} label={transfer.qr} />
      <CopyText text={url} label={transfer.url} />
      <div class="notice notice-warn">{transfer.shareWarning}</div>
      <Actions>
        <button type="button" class="button" onClick={onBack}>
          {transfer.again}
        </button>
        <button type="button" class="button primary" onClick={onClose}>
          {t.common.close}
        </button>
      </Actions>
    </div>
  )
}
