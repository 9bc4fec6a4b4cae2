import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, ask } from '../api.ts'
import { useAction, useLoad } from '../load.ts'
import { Actions, Field, formText, Submit } from '../parts/field.tsx'
import { Failure, say } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { PermissionGrid } from '../parts/permission-grid.tsx'
import { PRESETS } from '../permissions.ts'
import { href } from '../router.ts'
import { type Permissions, refreshStatus, type User } from '../session.ts'
import { t } from '../strings.ts'
import { UserAccess } from './user-access.tsx'

export function UserPage({ id }: { id: string }) {
  const param = { id }
  const { data, error, reload } = useLoad(async () => {
    const [{ user }, { permissions }] = await Promise.all([
      ask(api.users[':id'].$get({ param })),
      ask(api.users[':id'].permissions.$get({ param })),
    ])
    return { user, permissions }
  }, [id])
  const found = data.value
  return (
    <Page
      title={found === null ? t.users.user : (found.user.displayName ?? found.user.username)}
      up={{ path: '/users', name: t.users.back }}
      actions={
        <a class="button" href={href(`/audit?userId=${id}`)}>
          {t.users.log}
        </a>
      }
    >
      <Failure error={error.value} retry={reload} />
      {found !== null && (
        <div class="cards">
          <div class="stack">
            <Profile user={found.user} onSaved={reload} />
            <UserAccess user={found.user} onChanged={reload} />
          </div>
          <PermissionCard user={found.user} stored={found.permissions} onSaved={reload} />
        </div>
      )}
    </Page>
  )
}

function Profile({ user, onSaved }: { user: User; onSaved(): Promise<void> }) {
  const { busy, error, run } = useAction()
  const isLocal = user.authProvider === 'local'
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget
    if (!(form instanceof HTMLFormElement)) return
    const text = formText(form)
    const own = isLocal && { email: text('email').trim() || null, displayName: text('displayName').trim() || null }
    const json = { username: text('username').trim(), ...own }
    await run(async () => {
      await ask(api.users[':id'].$put({ param: { id: String(user.id) }, json }))
      say(t.users.saved)
      await Promise.all([onSaved(), refreshStatus()])
    })
  }
  return (
    <Card title={t.users.profile}>
      <form onSubmit={submit} class="stack">
        <Field
          label={t.users.username}
          name="username"
          defaultValue={user.username}
          hint={t.users.usernameHint}
          pattern="[A-Za-z0-9._@\-]{1,64}"
          maxLength={64}
          autocomplete="off"
          required
        />
        <Field
          label={t.users.displayName}
          name="displayName"
          defaultValue={user.displayName ?? ''}
          maxLength={100}
          disabled={!isLocal}
          autocomplete="off"
        />
        <Field
          label={t.users.email}
          name="email"
          type="email"
          defaultValue={user.email ?? ''}
          maxLength={254}
          disabled={!isLocal}
          autocomplete="off"
        />
        {!isLocal && <p class="faint">{t.users.oidcProfile}</p>}
        <Failure error={error.value} />
        <Actions>
          <Submit busy={busy.value} idle={t.common.save} working={t.common.saving} />
        </Actions>
      </form>
    </Card>
  )
}

function PermissionCard(props: { user: User; stored: Permissions; onSaved(): Promise<void> }) {
  const { user, stored, onSaved } = props
  const { busy, error, run } = useAction()
  const edited = useSignal<Permissions>(stored)
  useEffect(() => {
    edited.value = stored
  }, [stored])
  if (user.isAdmin) {
    return (
      <Card title={t.users.permissions}>
        <p class="faint">{t.users.adminPermissions}</p>
      </Card>
    )
  }
  const isChanged = JSON.stringify(sorted(edited.value)) !== JSON.stringify(sorted(stored))
  const save = () =>
    run(async () => {
      await ask(
        api.users[':id'].permissions.$put({ param: { id: String(user.id) }, json: { permissions: edited.value } }),
      )
      say(t.users.permissionsSaved)
      await onSaved()
    })
  return (
    <Card title={t.users.permissions}>
      <PermissionGrid value={edited} />
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
