import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, ask } from '../../api.ts'
import { Alone } from '../../parts/alone.tsx'
import { Field, handleForm, Submit } from '../../parts/form/field.tsx'
import { Failure } from '../../parts/notice.tsx'
import { href } from '../../router.ts'
import { useAction } from '../../state/load.ts'
import { status, siteName } from '../../state/session.ts'
import { mailTexts } from '../../strings/people/mail.ts'
import { MAX_EMAIL } from '../../../shared/limits.ts'

/** Asks for a link to a new password. What it says afterwards is the same for every name. */
export function ForgotPage() {
  const { busy, error, run } = useAction()
  const isSent = useSignal(false)
  useEffect(() => {
    document.title = `${mailTexts.forgotTitle} · ${siteName.value}`
  }, [])
  const submit = handleForm(async (text) => {
    await run(async () => {
      await ask(api.auth['password-reset'].$post({ json: { username: text('username').trim() } }))
      isSent.value = true
    })
  })
  const isOn = status.value?.accountMail === true
  return (
    <Alone title={mailTexts.forgotTitle}>
      {!isOn && <p class="measure">{mailTexts.off}</p>}
      {isOn && isSent.value && (
        <p class="measure" role="status">
          {mailTexts.sent}
        </p>
      )}
      {isOn && !isSent.value && (
        <form onSubmit={submit} class="stack">
          <p class="measure">{mailTexts.forgotHelp}</p>
          <Failure error={error.value} />
          <Field
            label={mailTexts.name}
            name="username"
            autocomplete="username"
            autocapitalize="off"
            spellcheck={false}
            maxLength={MAX_EMAIL}
            required
            autofocus
          />
          <Submit busy={busy.value} idle={mailTexts.send} working={mailTexts.sending} />
        </form>
      )}
      <a class="button wide" href={href('/login')}>
        {mailTexts.back}
      </a>
    </Alone>
  )
}
