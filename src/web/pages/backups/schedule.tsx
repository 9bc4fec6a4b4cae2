import { useSignal } from '@preact/signals'
import { api, ask } from '../../api.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { Age, At } from '../../parts/age.tsx'
import { Actions, Field, formText, Submit } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card, Facts } from '../../parts/page.tsx'
import { zoneName } from '../../format.ts'
import { t } from '../../strings.ts'

/** When backups are made by themselves, and how the last one went. */
export function BackupSchedule() {
  const { data, error, reload } = useLoad(() => ask(api.system.backup.settings.$get()), [])
  const saving = useAction()
  const isOn = useSignal<boolean | null>(null)
  const settings = data.value
  if (settings === null) {
    return (
      <Card title={t.backups.schedule}>
        <Failure error={error.value} retry={reload} />
      </Card>
    )
  }
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget
    if (!(form instanceof HTMLFormElement)) return
    const text = formText(form)
    await saving.run(async () => {
      const json = {
        enabled: isOn.value ?? settings.enabled,
        backupTime: text('backupTime'),
        maxBackups: Number(text('maxBackups')),
        keepWeekly: Number(text('keepWeekly')),
        keepMonthly: Number(text('keepMonthly')),
      }
      data.value = await ask(api.system.backup.settings.$put({ json }))
      say(t.backups.saved)
    })
  }
  const { nextRunAt, lastRun } = settings
  return (
    <Card title={t.backups.schedule} help={t.backups.zone(zoneName())}>
      <form onSubmit={submit} class="stack">
        <label class="check">
          <input
            type="checkbox"
            checked={isOn.value ?? settings.enabled}
            onChange={(event) => (isOn.value = event.currentTarget.checked)}
          />
          {t.backups.enabled}
        </label>
        <div class="two">
          <Field label={t.backups.time} name="backupTime" type="time" defaultValue={settings.backupTime} required />
          <Field
            label={t.backups.keep}
            name="maxBackups"
            type="number"
            min={1}
            max={365}
            defaultValue={settings.maxBackups}
            hint={t.backups.keepUnit}
            required
          />
          <Field
            label={t.backups.keepWeekly}
            name="keepWeekly"
            type="number"
            min={0}
            max={520}
            defaultValue={settings.keepWeekly}
            hint={t.backups.keepWeeklyUnit}
            required
          />
          <Field
            label={t.backups.keepMonthly}
            name="keepMonthly"
            type="number"
            min={0}
            max={240}
            defaultValue={settings.keepMonthly}
            hint={t.backups.keepMonthlyUnit}
            required
          />
        </div>
        <Facts
          entries={[
            [t.backups.next, nextRunAt === null ? t.backups.off : <At at={nextRunAt} />],
            [
              t.backups.last,
              lastRun === null ? (
                t.backups.notYet
              ) : (
                <span class={lastRun.ok ? 'good' : 'bad'}>
                  <Age at={lastRun.at} />, {lastRun.ok ? t.backups.lastOk : t.backups.lastFailed(lastRun.error ?? '')}
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
