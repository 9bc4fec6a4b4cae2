import { useSignal } from '@preact/signals'
import { api, send } from '../../api.ts'
import { useAction } from '../../state/load.ts'
import { status } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { Field, handleForm, Submit } from './field.tsx'
import { Failure } from '../notice.tsx'
import { MAX_TYPED_PASSWORD } from '../../../shared/limits.ts'

type Props = {
  username: string
  /** Known right after a sign-in with it. */
  current: string | null
  /** Whether to ask about API tokens, which a new account has not. */
  hasTokens?: boolean
  onDone(): Promise<void> | void
}

/** Changes one's own password. */
export function PasswordForm({ hasTokens = true, ...props }: Props) {
  const { busy, error, run } = useAction()
  const differ = useSignal(false)
  const submit = handleForm(async (text, form) => {
    const currentPassword = props.current ?? text('current')
    const newPassword = text('new')
    differ.value = newPassword !== text('repeat')
    if (differ.value) return
    await run(async () => {
      const revokeTokens = form.querySelector<HTMLInputElement>('[name=tokens]')?.checked ?? false
      await send(api.auth['change-password'].$post({ json: { currentPassword, newPassword, revokeTokens } }))
      form.reset()
      await props.onDone()
    })
  })
  return (
    <form onSubmit={submit} class="stack">
      <Failure error={error.value} />
      <input type="text" name="username" autocomplete="username" value={props.username} readOnly hidden />
      {props.current === null && (
        <Field label={t.password.current} name="current" type="password" autocomplete="current-password" required />
      )}
      <Field
        label={t.password.new}
        name="new"
        type="password"
        autocomplete="new-password"
        hint={t.password.hint(status.value?.passwordMinLength ?? null)}
        maxLength={MAX_TYPED_PASSWORD}
        required
      />
      <Field
        label={t.password.repeat}
        name="repeat"
        type="password"
        autocomplete="new-password"
        error={differ.value ? t.password.differ : null}
        maxLength={MAX_TYPED_PASSWORD}
        required
      />
      {hasTokens && (
        <label class="check">
          <input type="checkbox" name="tokens" />
          {t.password.revokeTokens}
        </label>
      )}
      <Submit busy={busy.value} idle={t.password.submit} working={t.common.saving} />
    </form>
  )
}
