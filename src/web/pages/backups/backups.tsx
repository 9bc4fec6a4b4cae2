import './backups.css'
import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { useEffect } from 'preact/hooks'
import { api, ask, send } from '../../api.ts'
import { bytes } from '../../format.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { At } from '../../parts/age.tsx'
import { CopyText } from '../../parts/copy.tsx'
import { askFirst } from '../../parts/dialog.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Empty, explain, Failure, say } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { href } from '../../router.ts'
import { has } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { backupTexts } from '../../strings/system/backups.ts'
import { copyTexts } from '../../strings/system/copies.ts'
import { auditTexts } from '../../strings/system/audit.ts'
import { restoreTexts } from '../../strings/system/restore.ts'
import { RestoreDialog } from './restore-dialog.tsx'
import { RestoreNotices } from './restore-state.tsx'
import { BringHistory, useImportReport } from './bring-history.tsx'
import { BackupSchedule } from './schedule.tsx'

type List = InferResponseType<typeof api.system.backup.$get>
type Backup = List['backups'][number]

/** The backup, or the progress of one that goes on after the answer. */
type Made = InferResponseType<typeof api.system.backup.$post>

const PROGRESS_MS = 700
/** On the edge a backup goes on every second minute. */
const SLOW_PROGRESS_MS = 10_000

export function BackupsPage() {
  return has('backups') ? <KnownBackups /> : <Unsupported />
}

function KnownBackups() {
  const { data, error, reload } = useLoad(() => ask(api.system.backup.$get()), [])
  const schedule = useLoad(() => ask(api.system.backup.settings.$get()), [])
  // On the edge only the console restores, and nothing is imported.
  const isRestoring = has('radio')
  const restore = useLoad(async () => (isRestoring ? await ask(api.system.restore.$get()) : null), [])
  const imported = useImportReport()
  // List and cards appear together, because a later one would push the others down.
  const isLoaded =
    (data.value !== null || error.value !== null) &&
    (schedule.data.value !== null || schedule.error.value !== null) &&
    (!isRestoring || restore.data.value !== null || restore.error.value !== null) &&
    (imported.data.value !== null || imported.error.value !== null)
  const making = useAction()
  const chosen = useSignal<string | null>(null)
  const running = data.value?.running ?? null
  const isRunning = making.busy.value || running !== null
  useEffect(() => {
    if (!isRunning) return
    const timer = setInterval(() => void reload(), has('radio') ? PROGRESS_MS : SLOW_PROGRESS_MS)
    return () => clearInterval(timer)
  }, [isRunning])
  const make = () =>
    making.run(async () => {
      const made = await ask<Made>(api.system.backup.$post())
      if ('backup' in made) say(backupTexts.made(made.backup.name))
      await reload()
    })
  return (
    <Page
      title={backupTexts.title}
      actions={
        <>
          {isRestoring && (
            <a class="button" href={href('/backups/copies')}>
              {copyTexts.open}
            </a>
          )}
          <button type="button" class="button primary" disabled={isRunning} onClick={() => void make()}>
            {isRunning ? backupTexts.making : backupTexts.make}
          </button>
        </>
      }
    >
      <Failure error={making.error.value ?? error.value} retry={reload} />
      {isLoaded && restore.data.value !== null && <RestoreNotices state={restore.data.value} reload={restore.reload} />}
      <div class="sr-only" role="status">
        {isRunning && backupTexts.running}
      </div>
      {isRunning && (
        <div class="notice">
          <progress aria-label={backupTexts.running} />
          {running === null ? backupTexts.running : backupTexts.progress(running.tables, running.rows)}
        </div>
      )}
      {isLoaded && data.value?.backups.length === 0 && <p class="faint measure">{backupTexts.none}</p>}
      {isLoaded && data.value !== null && data.value.backups.length > 0 && (
        <BackupTable
          backups={data.value.backups}
          onDeleted={reload}
          onRestore={isRestoring ? (name) => (chosen.value = name) : null}
        />
      )}
      {isLoaded && (
        <div class="cards of-fields">
          <BackupSchedule loaded={schedule} />
          {isRestoring && <HowToRestore name={data.value?.backups[0]?.name ?? backupTexts.anyBackup} />}
        </div>
      )}
      {isLoaded && isRestoring && <BringHistory loaded={imported} />}
      {chosen.value !== null && restore.data.value !== null && (
        <RestoreDialog
          name={chosen.value}
          state={restore.data.value}
          onClose={() => (chosen.value = null)}
          onStaged={restore.reload}
        />
      )}
    </Page>
  )
}

function Unsupported() {
  return (
    <Page title={backupTexts.title}>
      <Empty icon="backups" title={backupTexts.unsupported}>
        <p>{backupTexts.unsupportedHelp}</p>
      </Empty>
    </Page>
  )
}

function BackupTable(props: {
  backups: readonly Backup[]
  onDeleted(): Promise<void>
  onRestore: ((name: string) => void) | null
}) {
  return (
    <div class="table-box">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">{backupTexts.name}</th>
            <th scope="col" class="wide-only">
              {backupTexts.content}
            </th>
            <th scope="col" class="phone-hidden">
              {backupTexts.size}
            </th>
            <th scope="col">
              <span class="sr-only">{auditTexts.action}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {props.backups.map((backup) => (
            <BackupRow backup={backup} key={backup.name} {...props} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function BackupRow(props: { backup: Backup; onDeleted(): Promise<void>; onRestore: ((name: string) => void) | null }) {
  const { backup, onRestore } = props
  const checking = useAction()
  const result = useSignal<{ ok: boolean; isOwn: boolean; text: string; signature: string } | null>(null)
  const param = { name: backup.name }
  const verify = () =>
    checking.run(async () => {
      const { ok, rows, signature, problems } = await ask(api.system.backup[':name'].verify.$post({ param }))
      const text = ok ? backupTexts.verified(rows) : `${backupTexts.broken} ${problems.join('; ')}`
      result.value = { ok, text, isOwn: signature === 'own', signature: backupTexts.signatures[signature] }
    })
  const remove = () =>
    askFirst({
      text: backupTexts.deleteSure(backup.name),
      confirm: t.common.delete,
      isDangerous: true,
      act: async () => {
        await send(api.system.backup[':name'].$delete({ param }))
        say(backupTexts.deleted)
        await props.onDeleted()
      },
    })
  const address = href(`/api/system/backup/download/${backup.name}`)
  // A plain link could not ask for a proof.
  const download = (event: MouseEvent) => {
    event.preventDefault()
    return checking.run(async () => {
      await send(api.auth.reauthenticate.$get())
      location.assign(address)
    })
  }
  const label = (verb: string) => `${verb} ${backup.name}`
  return (
    <tr>
      <th scope="row">
        <span class="mono nowrap">{backup.name}</span> <span class="tag">{backupTexts.kinds[backup.kind]}</span>
        <div class="faint">
          <At at={backup.createdAt} />
        </div>
        <div role="status">
          {result.value !== null && (
            <>
              <div class={result.value.ok ? 'good' : 'bad'}>{result.value.text}</div>
              <div class={result.value.isOwn ? 'good' : 'bad'}>{result.value.signature}</div>
            </>
          )}
          {checking.error.value !== null && <div class="bad">{explain(checking.error.value)}</div>}
        </div>
      </th>
      <td class="wide-only">{backupTexts.contents(backup.tables, backup.rows)}</td>
      <td class="nowrap phone-hidden">{bytes(backup.sizeBytes)}</td>
      <td>
        <div class="row-actions">
          <button
            type="button"
            class="button small"
            disabled={checking.busy.value}
            aria-label={label(backupTexts.verify)}
            onClick={() => void verify()}
          >
            {checking.busy.value ? backupTexts.verifying : backupTexts.verify}
          </button>
          <a
            class="button small"
            href={address}
            download
            onClick={(event) => void download(event)}
            aria-label={label(backupTexts.download)}
          >
            <Icon name="download" />
          </a>
          {onRestore !== null && (
            <button
              type="button"
              class="button small"
              aria-label={restoreTexts.restoreOf(backup.name)}
              onClick={() => onRestore(backup.name)}
            >
              {restoreTexts.restore}
            </button>
          )}
          <button type="button" class="button small danger-quiet" aria-label={label(t.common.delete)} onClick={remove}>
            {t.common.delete}
          </button>
        </div>
      </td>
    </tr>
  )
}

function HowToRestore({ name }: { name: string }) {
  const [stop, start, after, remove] = backupTexts.how
  return (
    <Card title={backupTexts.howTitle}>
      <ol class="steps">
        <li>{stop}</li>
        <li>
          {start}
          <CopyText text={`RESTORE_FROM_BACKUP=${name}`} label={backupTexts.howTitle} />
        </li>
        <li>{after}</li>
        <li>{remove}</li>
      </ol>
    </Card>
  )
}
