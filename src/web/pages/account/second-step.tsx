import { useSignal } from '@preact/signals'
import { api, ask } from '../../api.ts'
import { useAction } from '../../state/load.ts'
import { CODE_FIELD, RECOVERY_FIELD } from '../../parts/form/code-field.ts'
import { Field, handleForm, Submit } from '../../parts/form/field.tsx'
import { Failure, Problem } from '../../parts/notice.tsx'
import { signInByPasskey } from '../../passkeys.ts'
import { t } from '../../strings.ts'
import { factorTexts } from '../../strings/people/factors.ts'
import type { SecondFactor } from '../../../shared/access/factors.ts'

type Props = { factors: readonly SecondFactor[]; onEntered(): Promise<void>; onBack(): void }

/** The step after the correct password: a code of the app, a passkey, or a recovery code. */
export function SecondStep({ factors, onEntered, onBack }: Props) {
  const typed = factors.filter((factor) => factor !== 'passkey')
  const chosen = useSignal(typed[0] ?? 'recovery')
  const isTyping = useSignal(false)
  const { busy, error, run } = useAction()
  const byPasskey = () =>
    run(async () => {
      await signInByPasskey('second')
      await onEntered()
    })
  const hasPasskey = factors.includes('passkey')
  if (hasPasskey && typed.every((factor) => factor === 'recovery') && !isTyping.value) {
    return (
      <div class="stack">
        <p>{factorTexts.stepPasskeyHelp}</p>
        <Failure error={error.value} />
        <button type="button" class="button primary" disabled={busy.value} onClick={() => void byPasskey()}>
          {factorTexts.usePasskey}
        </button>
        {typed.length > 0 && (
          <button type="button" class="button wide" onClick={() => (isTyping.value = true)}>
            {factorTexts.useRecovery}
          </button>
        )}
        <button type="button" class="button wide" onClick={onBack}>
          {factorTexts.back}
        </button>
      </div>
    )
  }
  const submit = handleForm(async (text) => {
    const json = { code: text('code').trim() }
    await run(async () => {
      await ask(chosen.value === 'totp' ? api.auth.login.totp.$post({ json }) : api.auth.login.recovery.$post({ json }))
      await onEntered()
    })
  })
  const other = typed.find((factor) => factor !== chosen.value)
  return (
    <form onSubmit={submit} class="stack" key={chosen.value}>
      <p>{chosen.value === 'totp' ? factorTexts.stepHelp : factorTexts.recoveryHelp}</p>
      {chosen.value === 'recovery' && error.value?.code === 'invalid_code' ? (
        <Problem>{factorTexts.wrongRecovery}</Problem>
      ) : (
        <Failure error={error.value} />
      )}
      <Field {...fieldOf(chosen.value)} name="code" required autofocus />
      <Submit busy={busy.value} idle={t.signIn.submit} working={t.signIn.working} />
      {hasPasskey && (
        <button type="button" class="button wide" disabled={busy.value} onClick={() => void byPasskey()}>
          {factorTexts.usePasskey}
        </button>
      )}
      {other !== undefined && (
        <button type="button" class="button wide" onClick={() => (chosen.value = other)}>
          {other === 'totp' ? factorTexts.useTotp : factorTexts.useRecovery}
        </button>
      )}
      <button type="button" class="button wide" onClick={onBack}>
        {factorTexts.back}
      </button>
    </form>
  )
}

/** The properties of the field of each factor. */
function fieldOf(factor: 'totp' | 'recovery') {
  return factor === 'totp' ? CODE_FIELD : RECOVERY_FIELD
}
