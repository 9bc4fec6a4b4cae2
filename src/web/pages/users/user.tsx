import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { useEffect } from 'preact/hooks'
import { api, ask, seeAs } from '../../api.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { Age } from '../../parts/age.tsx'
import { Actions, Field, Submit } from '../../parts/form/field.tsx'
import { type Draft, typedInto, useDraft } from '../../parts/form/typed-draft.ts'
import { Icon } from '../../parts/icon.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { PermissionGrid } from '../../parts/form/permission-grid.tsx'
import { ScopeFields } from '../../parts/form/scope-fields.tsx'
import { type Permissions, PRESETS } from '../../../shared/access/resources.ts'
import { isSameScope, type Scope } from '../../../shared/access/scope.ts'
import { asLeft, href } from '../../router.ts'
import { refreshStatus, type User, userName } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { scopeTexts } from '../../strings/people/scope.ts'
import { userTexts } from '../../strings/people/users.ts'
import { FromProvider } from './from-provider.tsx'
import { UserAccess } from './access.tsx'
import { InvitationCard } from './invitation.tsx'
import { LinkedToUser } from './linked.tsx'
import { UserCredentials } from './credentials.tsx'
import { MAX_DISPLAY_NAME, MAX_EMAIL, MAX_USERNAME } from '../../../shared/limits.ts'

export function UserPage({ id }: { id: string }) {
  const param = { id }
  const { data, error, reload } = useLoad(async () => {
    const [{ user }, { permissions, scope, grants }] = await Promise.all([
      ask(api.users[':id'].$get({ param })),
      ask(api.users[':id'].permissions.$get({ param })),
    ])
    return { user, permissions, scope, grants, givers: await namesOf(grants) }
  }, [id])
  const found = data.value
  return (
    <Page
      title={found === null ? userTexts.user : userName(found.user)}
      up={{ path: asLeft('/users'), name: userTexts.back }}
      actions={
        <>
          {found !== null && !found.user.isAdmin && found.user.isActive && <SeeAsUser user={found.user} />}
          <a class="button" href={href(`/audit?userId=${id}`)}>
            {userTexts.log}
          </a>
        </>
      }
    >
      <Failure error={error.value} retry={reload} />
      {found !== null && (
        <div class="cards">
          <div class="stack">
            <Profile user={found.user} onSaved={reload} />
            <LinkedToUser user={found.user} onChanged={reload} />
            <FromProvider user={found.user} />
            <UserAccess user={found.user} onChanged={reload} />
            {isOpenAccount(found.user) && <InvitationCard user={found.user} />}
          </div>
          <div class="stack">
            <PermissionCard {...found} stored={found.permissions} storedScope={found.scope} onSaved={reload} />
            <UserCredentials user={found.user} />
          </div>
        </div>
      )}
    </Page>
  )
}

/** Whether nobody has taken over the account yet: a provider's user by a link, or a local one by an invitation. */
function isOpenAccount({ authProvider, oidcSubject, isActive, lastLoginAt }: User): boolean {
  return isActive && (authProvider === 'oidc' ? oidcSubject === null : lastLoginAt === null)
}

function SeeAsUser({ user }: { user: User }) {
  const { busy, run } = useAction()
  const name = user.displayName ?? user.username
  const begin = async () => {
    const { seeAs: ticket } = await ask(api.users[':id']['see-as'].$post({ param: { id: String(user.id) } }))
    seeAs({ ticket, name, back: `/users/${user.id}` })
  }
  return (
    <button type="button" class="button" disabled={busy.value} onClick={() => void run(begin)}>
      <Icon name="eye" />
      {userTexts.seeAs}
    </button>
  )
}

type Grants = InferResponseType<(typeof api.users)[':id']['permissions']['$get']>['grants']
type Givers = ReadonlyMap<number, string>

/** The users who granted permissions, by id. */
async function namesOf(grants: Grants): Promise<Givers> {
  const ids = [...new Set(grants.flatMap(({ grantedBy }) => grantedBy ?? []))]
  const givers = await Promise.all(ids.map((id) => ask(api.users[':id'].$get({ param: { id: String(id) } }))))
  return new Map(givers.map(({ user }) => [user.id, userName(user)]))
}

function Profile({ user, onSaved }: { user: User; onSaved(): Promise<void> }) {
  const { busy, error, run } = useAction()
  const isLocal = user.authProvider === 'local'
  const username = useDraft(`user-${user.id}-username`, user.username)
  const displayName = useDraft(`user-${user.id}-name`, user.displayName ?? '')
  const email = useDraft(`user-${user.id}-email`, user.email ?? '')
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const textOf = ({ value }: Draft) => value.value.trim()
    const own = isLocal && { email: textOf(email) || null, displayName: textOf(displayName) || null }
    const json = { username: textOf(username), ...own }
    await run(async () => {
      await ask(api.users[':id'].$put({ param: { id: String(user.id) }, json }))
      for (const kept of [username, displayName, email]) kept.forget()
      say(userTexts.saved)
      await Promise.all([onSaved(), refreshStatus()])
    })
  }
  return (
    <Card title={userTexts.profile}>
      <form onSubmit={submit} class="stack">
        <Field
          label={userTexts.username}
          name="username"
          {...typedInto(username)}
          hint={userTexts.usernameHint}
          pattern={`[A-Za-z0-9._@\\-]{1,${MAX_USERNAME}}`}
          maxLength={MAX_USERNAME}
          autocomplete="off"
          required
        />
        <Field
          label={userTexts.displayName}
          name="displayName"
          {...typedInto(displayName)}
          maxLength={MAX_DISPLAY_NAME}
          disabled={!isLocal}
          autocomplete="off"
        />
        <Field
          label={userTexts.email}
          name="email"
          type="email"
          {...typedInto(email)}
          maxLength={MAX_EMAIL}
          {...(isLocal &&
            user.email !== null && {
              hint: user.emailVerified ? userTexts.emailConfirmed : userTexts.emailUnconfirmed,
            })}
          disabled={!isLocal}
          autocomplete="off"
        />
        {!isLocal && <p class="faint">{userTexts.oidcProfile}</p>}
        <Failure error={error.value} />
        <Actions>
          <Submit busy={busy.value} idle={t.common.save} working={t.common.saving} />
        </Actions>
      </form>
    </Card>
  )
}

type PermissionCardProps = {
  user: User
  stored: Permissions
  storedScope: Scope
  grants: Grants
  givers: Givers
  onSaved(): Promise<void>
}

function PermissionCard({ user, stored, storedScope, grants, givers, onSaved }: PermissionCardProps) {
  const { busy, error, run } = useAction()
  const edited = useSignal<Permissions>(stored)
  useEffect(() => {
    edited.value = stored
  }, [stored])
  const scope = useSignal<Scope>(storedScope)
  useEffect(() => {
    scope.value = storedScope
  }, [storedScope])
  if (user.isAdmin) {
    return (
      <Card title={userTexts.permissions}>
        <p class="faint">{userTexts.adminPermissions}</p>
      </Card>
    )
  }
  const isNarrowed = !isSameScope(scope.value, storedScope)
  const isChanged = isNarrowed || JSON.stringify(sorted(edited.value)) !== JSON.stringify(sorted(stored))
  const save = () =>
    run(async () => {
      const json = { permissions: edited.value, ...(isNarrowed && { scope: scope.value }) }
      await ask(api.users[':id'].permissions.$put({ param: { id: String(user.id) }, json }))
      say(userTexts.permissionsSaved)
      await onSaved()
    })
  return (
    <Card title={userTexts.permissions}>
      <PermissionGrid
        value={edited}
        note={(resource) => {
          const grant = grants.find((stored) => stored.resource === resource)
          if (grant === undefined) return null
          const giver = grant.grantedBy === null ? null : (givers.get(grant.grantedBy) ?? null)
          return (
            <>
              {userTexts.granted} <Age at={grant.grantedAt} /> {giver !== null && userTexts.grantedBy(giver)}
            </>
          )
        }}
      />
      <h3>{scopeTexts.title}</h3>
      <p class="faint about">{scopeTexts.help}</p>
      <ScopeFields value={scope} />
      <Failure error={error.value} />
      <Actions>
        <button type="button" class="button primary" disabled={!isChanged || busy.value} onClick={() => void save()}>
          {busy.value ? t.common.saving : t.common.save}
        </button>
      </Actions>
    </Card>
  )
}

function sorted(permissions: Permissions): Permissions {
  return { ...PRESETS.viewer, ...permissions }
}
