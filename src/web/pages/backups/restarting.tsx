import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, ask } from '../../api.ts'
import { Alone } from '../../parts/alone.tsx'
import { href } from '../../router.ts'
import { restoreTexts } from '../../strings/system/restore.ts'
import { RestartCommands } from './restart-commands.tsx'

const ASK_MS = 1000
const SLOW_MS = 60_000

/**
 * Waits for the service to come back from a restore that began at `since`. If this session still holds, the page Backups
 * says what happened; a restore ends it.
 */
export function Restarting({ name, since }: { name: string; since: number }) {
  const isBack = useSignal(false)
  const isSlow = useSignal(false)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>
    const look = async () => {
      const isHere = await hasStartedSince(since)
      if (isHere === 'signed-in') location.assign(href('/backups'))
      else if (isHere === 'signed-out') isBack.value = true
      else {
        isSlow.value = Date.now() - since > SLOW_MS
        timer = setTimeout(() => void look(), ASK_MS)
      }
    }
    timer = setTimeout(() => void look(), ASK_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <Alone title={isBack.value ? restoreTexts.back : restoreTexts.restarting}>
      <div class="stack" role="status">
        {isBack.value ? (
          <p>{restoreTexts.signedOut}</p>
        ) : (
          <>
            <progress aria-label={restoreTexts.restarting} />
            <p>{restoreTexts.restartingHelp(name)}</p>
          </>
        )}
      </div>
      {isBack.value && (
        <a class="button primary" href={href('/login?returnTo=%2Fbackups')} target="_self">
          {restoreTexts.signIn}
        </a>
      )}
      {isSlow.value && !isBack.value && (
        <>
          <p>{restoreTexts.slow}</p>
          <RestartCommands />
        </>
      )}
    </Alone>
  )
}

/** Null: the service is away, or is still the process from before. */
async function hasStartedSince(since: number): Promise<'signed-in' | 'signed-out' | null> {
  try {
    const answer = await fetch(api.health.$url(), { cache: 'no-store' })
    const { uptime }: { uptime?: unknown } = await answer.json()
    if (typeof uptime !== 'number' || uptime * 1000 > Date.now() - since) return null
    return (await ask(api.auth.status.$get())).authenticated ? 'signed-in' : 'signed-out'
  } catch {
    return null
  }
}
