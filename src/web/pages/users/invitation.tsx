import { useSignal } from '@preact/signals'
import { api, ask, send } from '../../api.ts'
import { stamp } from '../../format.ts'
import { CopyText } from '../../parts/copy.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Actions } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useAction, useLoad } from '../../state/load.ts'
import { status, type User } from '../../state/session.ts'
import { userTexts } from '../../strings/people/users.ts'

/** The link to an account that nobody has taken over yet: handed over, or sent by e-mail to a local user. */
export function InvitationCard({ user }: { user: User }) {
  const param = { id: String(user.id) }
  const { data, error, reload } = useLoad(() => ask(api.users[':id'].invitation.$get({ param })), [user])
  const action = useAction()
  const url = useSignal<string | null>(null)
  const isLocal = user.authProvider === 'local'
  const invitation = data.value?.invitation
  const invite = () =>
    action.run(async () => {
      const made = await ask(api.users[':id'].invitation.$post({ param, json: {} }))
      url.value = made.invitation.url
      if (isLocal) say(userTexts.invited)
      await reload()
    })
  const withdraw = () =>
    action.run(async () => {
      await send(api.users[':id'].invitation.$delete({ param }))
      say(userTexts.withdrawn)
      await reload()
    })
  // A local user who has a password needs no invitation.
  if (isLocal && data.value?.byMail !== true) return null
  const canInvite = !isLocal || status.value?.accountMail === true
  return (
    <Card title={isLocal ? userTexts.invitation : userTexts.link}>
      <Failure error={error.value ?? action.error.value} />
      {invitation !== undefined && <p class="faint">{stateOf(invitation, isLocal)}</p>}
      <Actions>
        {invitation && (
          <button type="button" class="button" disabled={action.busy.value} onClick={() => void withdraw()}>
            {isLocal ? userTexts.withdrawInvitation : userTexts.withdraw}
          </button>
        )}
        {canInvite && (
          <button type="button" class="button" disabled={action.busy.value} onClick={() => void invite()}>
            {isLocal ? (invitation ? userTexts.inviteAgain : userTexts.inviteByMail) : userTexts.newLink}
          </button>
        )}
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

function stateOf(invitation: { sentTo: string | null; expiresAt: number } | null, isLocal: boolean): string {
  if (invitation === null) return isLocal ? userTexts.notInvited : userTexts.noLink
  const time = stamp(invitation.expiresAt)
  return invitation.sentTo === null ? userTexts.linkUntil(time) : userTexts.mailedUntil(invitation.sentTo, time)
}
