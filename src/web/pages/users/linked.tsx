import type { InferResponseType } from 'hono/client'
import { api, ask, send } from '../../api.ts'
import { askFirst } from '../../parts/dialog.tsx'
import { Select } from '../../parts/form/field.tsx'
import { addressOf, LinkedRow, type LinkedProvider, providerName } from '../../parts/linked-rows.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useAction, useLoad } from '../../state/load.ts'
import { userName } from '../../state/session.ts'
import { accountTexts } from '../../strings/people/account.ts'
import { userTexts } from '../../strings/people/users.ts'

type Listed = InferResponseType<(typeof api.users)[':id']['$get'], 200>['user']

/** The accounts at providers that sign a user in, and which of them gives rights by its groups. */
export function LinkedToUser({ user, onChanged }: { user: Listed; onChanged(): Promise<void> }) {
  const param = { id: String(user.id) }
  const { data, error } = useLoad(() => ask(api.users[':id']['provider-role'].$get({ param })), [user])
  const action = useAction()
  const { links } = user
  if (links.length === 0) return null
  const unlink = (link: LinkedProvider) =>
    askFirst({
      text: userTexts.unlinkSure(userName(user), providerName(link)),
      confirm: userTexts.unlink,
      isDangerous: true,
      act: async () => {
        await send(api.users[':id'].link.$delete({ param, query: addressOf(link) }))
        say(userTexts.unlinked)
        await onChanged()
      },
    })
  const groupsOf = data.value?.groupsOf ?? null
  const isShown = groupsOf === null || links.some(({ issuer }) => issuer === groupsOf.issuer)
  // It may have been unlinked since, and would decide again after the next link.
  const choices = [...links, ...(isShown ? [] : [groupsOf])].flatMap(({ provider, issuer }) =>
    provider === null ? [] : [[provider, providerName({ provider, issuer })] as const],
  )
  const rule = (provider: string) =>
    action.run(async () => {
      await ask(
        api.users[':id']['provider-role'].$put({ param, json: { provider: provider === '' ? null : provider } }),
      )
      say(userTexts.saved)
      await onChanged()
    })
  return (
    <Card title={accountTexts.link} help={userTexts.unlinkHelp}>
      <Failure error={error.value ?? action.error.value} />
      <ul class="rows">
        {links.map((link) => (
          <LinkedRow key={link.issuer} link={link}>
            <button
              type="button"
              class="button small danger-quiet"
              aria-label={accountTexts.unlinkLabel(providerName(link))}
              onClick={() => unlink(link)}
            >
              {accountTexts.unlink}
            </button>
          </LinkedRow>
        ))}
      </ul>
      {data.value !== null && choices.length > 0 && (
        <Select
          label={userTexts.groupsOf}
          value={groupsOf?.provider ?? ''}
          options={[['', userTexts.groupsOfNone], ...choices]}
          onChange={(chosen) => void rule(chosen)}
        />
      )}
    </Card>
  )
}
