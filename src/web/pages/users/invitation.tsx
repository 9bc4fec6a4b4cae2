import { useSignal } from '@preact/signals'
import { api, ask, send } from '../../api.ts'
import { stamp } from '../../format.ts'
import { CopyText } from '../../parts/copy.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Actions } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useAction, useLoad } from '../../state/load.ts'
import type { User } from '../../state/session.ts'
import { userTexts } from '../../strings/people/users.ts'

/** The link to an account that nobody has taken over yet. */
export function InvitationCard({ user }: { user: User }) {
  const param = { id: String(user.id) }
  const { data, error, reload } = useLoad(() => ask(api.users[':id'].invitation.$get({ param })), [user])
  const action = useAction()
  const url = useSignal<string | null>(null)
  const invitation = data.value?.invitation
  const invite = () =>
    action.run(async () => {
      url.value = (await ask(api.users[':id'].invitation.$post({ param, json: {} }))).invitation.url
      await reload()
    })
  const withdraw = () =>
    action.run(async () => {
      await send(api.users[':id'].invitation.$delete({ param }))
      say(userTexts.withdrawn)
      await reload()
    })
  return (
    <Card title={userTexts.link}>
      <Failure error={error.value ?? action.error.value} />
      {invitation !== undefined && (
        <p class="faint">{invitation === null ? userTexts.noLink : userTexts.linkUntil(stamp(invitation.expiresAt))}</p>
      )}
      <Actions>
        {invitation && (
          <button type="button" class="button" disabled={action.busy.value} onClick={() => void withdraw()}>
            {userTexts.withdraw}
          </button>
        )}
        <button type="button" class="button" disabled={action.busy.value} onClick={() => void invite()}>
          {userTexts.newLink}
        </button>
      </Actions>
      {url.value !== null && (
        <Dialog title={userTexts.link} onClose={() => (url.value = null)}>
          <p class="measure">{userTexts.linkOnce}</p>
          <CopyText text={url.value} label={userTexts.link} />
        </Dialog>
      )}
    </Card>
  )
}
