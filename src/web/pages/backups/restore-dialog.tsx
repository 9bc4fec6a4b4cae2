import type { InferResponseType } from 'hono/client'
import { api, ask } from '../../api.ts'
import { dateMinutes, zoneName } from '../../format.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Failure, Loading } from '../../parts/notice.tsx'
import { useAction, useLoad } from '../../state/load.ts'
import { takeover } from '../../state/takeover.ts'
import { t } from '../../strings.ts'
import { backupTexts } from '../../strings/system/backups.ts'
import { restoreTexts } from '../../strings/system/restore.ts'
import { Restarting } from './restarting.tsx'

export type RestoreState = InferResponseType<typeof api.system.restore.$get>
type Preview = InferResponseType<(typeof api.system.backup)[':name']['restore']['$get']>

/** Says what a restore loses and brings back, and begins it. */
export function RestoreDialog(props: {
  name: string
  state: RestoreState
  onClose(): void
  onStaged(): Promise<void>
}) {
  const { name, state, onClose, onStaged } = props
  const param = { name }
  const { data, error, reload } = useLoad(() => ask(api.system.backup[':name'].restore.$get({ param })), [name])
  const staging = useAction()
  const isAutomatic = state.restartBy === 'supervisor'
  const begin = async () => {
    const isDone = await staging.run(async () => {
      const begun = Date.now()
      const answer = await ask(api.system.backup[':name'].restore.$post({ param }))
      if (answer.restartBy === 'supervisor') takeover.value = () => <Restarting name={name} since={begun} />
      else await onStaged()
    })
    if (isDone) onClose()
  }
  return (
    <Dialog title={restoreTexts.title(name)} onClose={onClose}>
      {data.value === null && (error.value === null ? <Loading /> : <Failure error={error.value} retry={reload} />)}
      {data.value !== null && (
        <>
          <Consequences {...data.value} />
          <p class="measure">
            {isAutomatic
              ? restoreTexts.away
              : state.instances > 1
                ? restoreTexts.instances(state.instances)
                : restoreTexts.byHand}
          </p>
          <Failure error={staging.error.value} />
          <div class="form-actions">
            <button type="button" class="button" onClick={onClose}>
              {t.common.cancel}
            </button>
            <button type="button" class="button danger" disabled={staging.busy.value} onClick={() => void begin()}>
              {staging.busy.value ? restoreTexts.working : isAutomatic ? restoreTexts.confirm : restoreTexts.prepare}
            </button>
          </div>
        </>
      )}
    </Dialog>
  )
}

function Consequences({ backup, signature, brings, loses }: Preview) {
  const at = `${dateMinutes(backup.createdAt)} (${zoneName()})`
  return (
    <div class="stack measure">
      <section class="consequences">
        <h3 class="bad">{restoreTexts.lost(at)}</h3>
        <p>{restoreTexts.lostCounts(loses.messages, loses.nodes, loses.users, loses.changes)}</p>
        <p class="faint">{restoreTexts.kept}</p>
      </section>
      <section class="consequences">
        <h3>{restoreTexts.brings(at, backup.appVersion)}</h3>
        <p>{restoreTexts.bringsCounts(brings.users, brings.nodes, brings.messages)}</p>
        <p>{restoreTexts.accounts}</p>
        <p>{restoreTexts.sessions}</p>
      </section>
      {signature !== 'own' && <p class="bad">{backupTexts.signatures[signature]}</p>}
    </div>
  )
}
