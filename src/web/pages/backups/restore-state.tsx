import { api, send } from '../../api.ts'
import { Age } from '../../parts/age.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { useAction } from '../../state/load.ts'
import { restoreTexts } from '../../strings/system/restore.ts'
import { RestartCommands } from './restart-commands.tsx'
import type { RestoreState } from './restore-dialog.tsx'

/** The restore that the next start performs, and how the latest one went. */
export function RestoreNotices({ state, reload }: { state: RestoreState; reload(): Promise<void> }) {
  return (
    <>
      {state.staged !== null && <Staged {...state} staged={state.staged} reload={reload} />}
      {state.outcome !== null && <Outcome {...state.outcome} reload={reload} />}
    </>
  )
}

function Staged({
  staged,
  instances,
  reload,
}: RestoreState & { staged: NonNullable<RestoreState['staged']>; reload(): Promise<void> }) {
  const cancelling = useAction()
  const cancel = () =>
    cancelling.run(async () => {
      await send(api.system.restore.$delete())
      say(restoreTexts.cancelled)
      await reload()
    })
  return (
    <section class="notice notice-tall" aria-labelledby="staged-restore">
      <Icon name="warning" />
      <div class="stack">
        <div>
          <h2 id="staged-restore">{restoreTexts.stagedTitle(staged.name)}</h2>
          <span class="faint">
            <Age at={staged.stagedAt} />
          </span>
        </div>
        <p>{restoreTexts.staged(staged.by)}</p>
        {instances > 1 && <p>{restoreTexts.instances(instances)}</p>}
        <RestartCommands />
        <Failure error={cancelling.error.value} />
        <div class="row-actions">
          <button type="button" class="button" disabled={cancelling.busy.value} onClick={() => void cancel()}>
            {restoreTexts.cancel}
          </button>
        </div>
      </div>
    </section>
  )
}

function Outcome({
  name,
  stagedBy,
  at,
  error,
  reload,
}: NonNullable<RestoreState['outcome']> & { reload(): Promise<void> }) {
  const forgetting = useAction()
  const forget = () =>
    forgetting.run(async () => {
      await send(api.system.restore.outcome.$delete())
      await reload()
    })
  return (
    <section class={error === null ? 'notice' : 'notice notice-bad'} role="status">
      <Icon name={error === null ? 'check' : 'warning'} />
      <div>
        <strong>{error === null ? restoreTexts.done(name) : restoreTexts.failed(name)}</strong>{' '}
        <span class="faint">
          <Age at={at} />
        </span>
        <div>{error === null ? restoreTexts.doneHelp(stagedBy) : restoreTexts.failedHelp(stagedBy, error)}</div>
        <Failure error={forgetting.error.value} />
      </div>
      <button type="button" class="button small" disabled={forgetting.busy.value} onClick={() => void forget()}>
        {restoreTexts.seen}
      </button>
    </section>
  )
}
