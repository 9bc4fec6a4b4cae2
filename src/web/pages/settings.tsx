import type { InferResponseType } from 'hono/client'
import { api, ask } from '../api.ts'
import { useAction, useLoad } from '../load.ts'
import { Actions, Field, formText, Submit } from '../parts/field.tsx'
import { Failure, say } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { can } from '../session.ts'
import { t } from '../strings.ts'

type Settings = InferResponseType<typeof api.settings.$get>

const MINUTE_SECONDS = 60

export function SettingsPage() {
  const { data, error, reload } = useLoad(() => ask(api.settings.$get()), [])
  return (
    <Page title={t.settings.title}>
      <Failure error={error.value} retry={reload} />
      {data.value !== null && <SettingsForm settings={data.value} onSaved={(next) => (data.value = next)} />}
    </Page>
  )
}

function SettingsForm({ settings, onSaved }: { settings: Settings; onSaved(settings: Settings): void }) {
  const { busy, error, run } = useAction()
  const isFixed = !can('settings', 'write')
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget
    if (!(form instanceof HTMLFormElement)) return
    const text = formText(form)
    const json = {
      telemetryRetentionDays: Number(text('telemetryRetentionDays')),
      positionRetentionDays: Number(text('positionRetentionDays')),
      messageRetentionDays: Number(text('messageRetentionDays')),
      nodeActiveSeconds: Math.round(Number(text('nodeActiveSeconds')) * MINUTE_SECONDS),
    }
    await run(async () => {
      onSaved(await ask(api.settings.$put({ json })))
      say(t.settings.saved)
    })
  }
  const days = (name: 'telemetryRetentionDays' | 'positionRetentionDays' | 'messageRetentionDays') => (
    <Field
      label={t.settings.names[name]}
      name={name}
      type="number"
      min={1}
      max={36_500}
      hint={t.settings.days}
      defaultValue={settings[name]}
      readOnly={isFixed}
      required
    />
  )
  return (
    <form onSubmit={submit} class="stack">
      {isFixed && <p class="faint">{t.settings.readOnly}</p>}
      <div class="cards">
        <Card title={t.settings.retention} help={t.settings.retentionHelp}>
          <div class="stack">
            {days('telemetryRetentionDays')}
            {days('positionRetentionDays')}
            {days('messageRetentionDays')}
          </div>
        </Card>
        <Card title={t.settings.activity}>
          <Field
            label={t.settings.names.nodeActiveSeconds}
            name="nodeActiveSeconds"
            type="number"
            min={1}
            max={43_200}
            step="any"
            hint={t.settings.minutes}
            defaultValue={settings.nodeActiveSeconds / MINUTE_SECONDS}
            readOnly={isFixed}
            required
          />
        </Card>
      </div>
      <Failure error={error.value} />
      {!isFixed && (
        <Actions>
          <Submit busy={busy.value} idle={t.common.save} working={t.common.saving} />
        </Actions>
      )}
    </form>
  )
}
