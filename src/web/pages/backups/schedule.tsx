import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { api, ask } from '../../api.ts'
import { type Loaded, useAction } from '../../state/load.ts'
import { Age, At } from '../../parts/age.tsx'
import { Actions, Field, handleForm, Submit } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card, Facts } from '../../parts/page.tsx'
import { zoneName } from '../../format.ts'
import { t } from '../../strings.ts'
import { backupTexts } from '../../strings/system/backups.ts'

type Settings = InferResponseType<typeof api.system.backup.settings.$get>

/** The schedule of backups, and the result of the last run. */
export function BackupSchedule({ loaded: { data, error, reload } }: { loaded: Loaded<Settings> }) {
  const saving = useAction()
  const isOn = useSignal<boolean | null>(null)
  const settings = data.value
  if (settings === null) {
    return (
      <Card title={backupTexts.schedule}>
        <Failure error={error.value} retry={reload} />
      </Card>
    )
  }
  const submit = handleForm(async (text) => {
    await saving.run(async () => {
      const json = {
        enabled: isOn.value ?? settings.enabled,
        backupTime: text('backupTime'),
        maxBackups: Number(text('maxBackups')),
        keepWeekly: Number(text('keepWeekly')),
        keepMonthly: Number(text('keepMonthly')),
      }
      data.value = await ask(api.system.backup.settings.$put({ json }))
      say(backupTexts.saved)
    })
  })
  const { nextRunAt, lastRun } = settings
  return (
    <Card title={backupTexts.schedule} help={backupTexts.zone(zoneName())}>
      <form onSubmit={submit} class="stack">
        <label class="check">
          <input
            type="checkbox"
            checked={isOn.value ?? settings.enabled}
            onChange={(event) => (isOn.value = event.currentTarget.checked)}
          />
          {backupTexts.enabled}
        </label>
        <div class="four">
          <Field label={backupTexts.time} name="backupTime" type="time" defaultValue={settings.backupTime} required />
          <Field
            label={backupTexts.keep}
            name="maxBackups"
            type="number"
            min={1}
            max={365}
            defaultValue={settings.maxBackups}
            hint={backupTexts.keepUnit}
            required
          />
          <Field
            label={backupTexts.keepWeekly}
            name="keepWeekly"
            type="number"
            min={0}
            max={520}
            defaultValue={settings.keepWeekly}
            hint={backupTexts.keepWeeklyUnit}
            required
          />
          <Field
            label={backupTexts.keepMonthly}
            name="keepMonthly"
            type="number"
            min={0}
            max={240}
            defaultValue={settings.keepMonthly}
            hint={backupTexts.keepMonthlyUnit}
            required
          />
        </div>
        <Facts
          entries={[
            [backupTexts.next, nextRunAt === null ? backupTexts.off : <At at={nextRunAt} />],
            [
              backupTexts.last,
              lastRun === null ? (
                backupTexts.notYet
              ) : (
                <span class={lastRun.ok ? 'good' : 'bad'}>
                  <Age at={lastRun.at} />,{' '}
                  {lastRun.ok ? backupTexts.lastOk : backupTexts.lastFailed(lastRun.error ?? '')}
                </span>
              ),
            ],
          ]}
        />
        <Failure error={saving.error.value} />
        <Actions>
          <Submit busy={saving.busy.value} idle={t.common.save} working={t.common.saving} />
        </Actions>
      </form>
    </Card>
  )
}
