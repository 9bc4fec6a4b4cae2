import { api, ask } from '../../api.ts'
import { Age } from '../../parts/age.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useLoad } from '../../state/load.ts'
import type { User } from '../../state/session.ts'
import { userTexts } from '../../strings/people/users.ts'

/**
 * Shows what the groups at the provider set for a user, and that they will do so again; nothing if they set nothing.
 */
export function FromProvider({ user }: { user: User }) {
  const param = { id: String(user.id) }
  const { data, error } = useLoad(() => ask(api.users[':id']['provider-role'].$get({ param })), [user])
  const role = data.value?.role ?? null
  if (role === null || (role.isAdmin === null && role.permissions === null)) return <Failure error={error.value} />
  const what =
    role.isAdmin === null
      ? userTexts.permissionsAlone
      : role.permissions === null
        ? userTexts.roleAlone
        : userTexts.roleAndPermissions
  const text = role.isInForce ? userTexts.fromProviderHelp : userTexts.noLongerFromProvider
  return (
    <Card title={userTexts.fromProvider}>
      <p class="measure">{text(what, role.issuer)}</p>
      <p class="faint">
        {userTexts.granted} <Age at={role.appliedAt} />
      </p>
    </Card>
  )
}
