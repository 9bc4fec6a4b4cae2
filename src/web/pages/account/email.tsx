import { useSignal } from '@preact/signals'
import { api, ask, send } from '../../api.ts'
import { Actions, Field, Submit } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useAction } from '../../state/load.ts'
import { refreshStatus, status, type User } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { mailTexts } from '../../strings/people/mail.ts'
import { MAX_EMAIL } from '../../../shared/limits.ts'

/** The user's own address: changes it, and confirms it by a link. */
export function OwnEmail({ user }: { user: User }) {
  const { busy, error, run } = useAction()
  const again = useAction()
  const typed = useSignal(user.email ?? '')
  const isOn = status.value?.accountMail === true
  const save = async (event: SubmitEvent) => {
    event.preventDefault()
    const email = typed.value.trim() || null
    await run(async () => {
      await ask(api.auth.email.$put({ json: { email } }))
      say(email === null ? mailTexts.removed : mailTexts.saved)
      await refreshStatus()
    })
  }
  const sendAgain = () =>
    again.run(async () => {
      await send(api.auth.email.link.$post())
      say(mailTexts.saved)
    })
  const isUnconfirmed = user.email !== null && !user.emailVerified
  return (
    <Card title={mailTexts.title} help={isOn ? mailTexts.help : mailTexts.off}>
      {isOn && (
        <form onSubmit={save} class="stack">
          {user.email !== null && (
            <p>
              {user.emailVerified ? (
                <span class="good">{mailTexts.isConfirmed}</span>
              ) : (
                mailTexts.isUnconfirmed(user.email)
              )}
            </p>
          )}
          <Failure error={error.value ?? again.error.value} />
          <Field
            label={mailTexts.address}
            name="email"
            type="email"
            value={typed.value}
            onInput={(event) => (typed.value = event.currentTarget.value)}
            maxLength={MAX_EMAIL}
            autocomplete="off"
          />
          <Actions>
            {isUnconfirmed && (
              <button type="button" class="button" disabled={again.busy.value} onClick={() => void sendAgain()}>
                {mailTexts.sendAgain}
              </button>
            )}
            <Submit
              busy={busy.value}
              idle={t.common.save}
              working={t.common.saving}
              disabled={typed.value.trim() === (user.email ?? '')}
            />
          </Actions>
        </form>
      )}
    </Card>
  )
}
