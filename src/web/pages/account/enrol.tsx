import { useEffect } from 'preact/hooks'
import { Failure } from '../../parts/notice.tsx'
import { useAction } from '../../state/load.ts'
import { signOut, user, siteName } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { factorTexts } from '../../strings/people/factors.ts'
import { Factors } from './factors.tsx'

/** For users who must set up a second factor before anything else. */
export function EnrolPage() {
  const { busy, error, run } = useAction()
  useEffect(() => {
    document.title = `${factorTexts.required} · ${siteName.value}`
  }, [])
  return (
    <main class="alone">
      <div class="stack">
        <h1>{factorTexts.required}</h1>
        {user.value?.authProvider === 'local' ? (
          <>
            <p class="measure">{factorTexts.requiredHelp}</p>
            <Factors />
          </>
        ) : (
          <p class="measure">{factorTexts.requiredAtProvider}</p>
        )}
        <Failure error={error.value} />
        <button type="button" class="button" disabled={busy.value} onClick={() => void run(signOut)}>
          {t.shell.signOut}
        </button>
      </div>
    </main>
  )
}
