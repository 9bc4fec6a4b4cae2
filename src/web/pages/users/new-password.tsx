import { useEffect } from 'preact/hooks'
import { Alone } from '../../parts/alone.tsx'
import { say } from '../../parts/notice.tsx'
import { PasswordForm } from '../../parts/form/password-form.tsx'
import { refreshStatus, signOut, temporaryPassword, user, siteName } from '../../state/session.ts'
import { t } from '../../strings.ts'

/** Until the temporary password is replaced, nothing else is possible. */
export function NewPasswordPage() {
  useEffect(() => {
    document.title = `${t.password.title} · ${siteName.value}`
  }, [])
  const done = async () => {
    temporaryPassword.value = null
    say(t.password.changed)
    await refreshStatus()
  }
  return (
    <Alone title={t.password.title}>
      <p class="faint">{t.password.why}</p>
      <PasswordForm
        username={user.value?.username ?? ''}
        current={temporaryPassword.value}
        hasTokens={false}
        onDone={done}
      />
      <button type="button" class="button quiet wide" onClick={() => void signOut().catch(refreshStatus)}>
        {t.shell.signOut}
      </button>
    </Alone>
  )
}
