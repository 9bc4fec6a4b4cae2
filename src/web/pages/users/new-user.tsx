import { effect, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, ask } from '../../api.ts'
import { useAction } from '../../state/load.ts'
import { CopyText } from '../../parts/copy.tsx'
import { Actions, Field, Segments, Select, Submit } from '../../parts/form/field.tsx'
import { typedInto, useDraft } from '../../parts/form/typed-draft.ts'
import { Failure } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { PermissionGrid } from '../../parts/form/permission-grid.tsx'
import { ScopeFields } from '../../parts/form/scope-fields.tsx'
import { type Permissions, permissionsFrom, PRESETS } from '../../../shared/access/resources.ts'
import { scopesOf } from '../../../shared/access/token-scopes.ts'
import { NEW_SCOPE, type Scope } from '../../../shared/access/scope.ts'
import { href } from '../../router.ts'
import { status, type User } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { scopeTexts } from '../../strings/people/scope.ts'
import { userTexts } from '../../strings/people/users.ts'
import { MAX_DISPLAY_NAME, MAX_EMAIL, MAX_SUBJECT, MAX_USERNAME } from '../../../shared/limits.ts'

/** A password, or a link to the account; null: created for a subject, which needs neither. */
type Secret = { readonly kind: 'password' | 'link' | 'mail'; readonly text: string } | null
type Made = { readonly user: User; readonly secret: Secret }
type Way = User['authProvider']

export function NewUserPage() {
  const made = useSignal<Made | null>(null)
  const up = { path: '/users', name: userTexts.back }
  // Separate pages, because the heading of each takes the focus.
  return made.value === null ? (
    <Page title={userTexts.createTitle} up={up} key="form">
      <NewUserForm onMade={(result) => (made.value = result)} />
    </Page>
  ) : (
    <Page title={titleOf(made.value)} up={up} key="made">
      <MadeCard made={made.value} onAnother={() => (made.value = null)} />
    </Page>
  )
}

function titleOf({ user: { username }, secret }: Made): string {
  if (secret?.kind === 'mail') return userTexts.invitedTitle(username)
  return secret?.kind === 'password' ? userTexts.createdTitle(username) : userTexts.preparedTitle(username)
}

function useUserDraft() {
  return {
    username: useDraft('new-user-username'),
    displayName: useDraft('new-user-name'),
    email: useDraft('new-user-email'),
    subject: useDraft('new-user-subject'),
    permissions: useDraft('new-user-permissions', writePermissions(PRESETS.viewer)),
    scope: useDraft('new-user-scope', JSON.stringify(NEW_SCOPE)),
  }
}

/** As one text: `nodes:read nodes:write`. */
function writePermissions(permissions: Permissions): string {
  return scopesOf(permissions).join(' ')
}

function readPermissions(text: string): Permissions {
  const held = text.split(' ')
  return permissionsFrom((resource) => {
    return { read: held.includes(`${resource}:read`), write: held.includes(`${resource}:write`) }
  })
}

/** The drafts of this form. */
function readScope(text: string): Scope {
  const scope: Scope = JSON.parse(text)
  return scope
}

function NewUserForm({ onMade }: { onMade(made: Made): void }) {
  const { busy, error, run } = useAction()
  const draft = useUserDraft()
  const providers = status.value?.providers ?? []
  const isLocalOpen = status.value?.localAuthDisabled === false
  const way = useSignal<Way>(isLocalOpen ? 'local' : 'oidc')
  const canInvite = status.value?.accountMail === true
  const first = useSignal<'mail' | 'temporary'>('mail')
  const provider = useSignal('')
  const permissions = useSignal<Permissions>(readPermissions(draft.permissions.value.peek()))
  useEffect(() => effect(() => void (draft.permissions.value.value = writePermissions(permissions.value))), [])
  const scope = useSignal<Scope>(readScope(draft.scope.value.peek()))
  useEffect(() => effect(() => void (draft.scope.value.value = JSON.stringify(scope.value))), [])
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const { username, email, displayName } = draft
    const profile = { email: email.value.value.trim() || null, displayName: displayName.value.value.trim() || null }
    await run(async () => {
      const json = {
        username: username.value.value.trim(),
        permissions: permissions.value,
        scope: scope.value,
        ...profile,
      }
      const made = way.value === 'local' ? await createLocal(json) : await prepare(json)
      for (const kept of Object.values(draft)) kept.forget()
      onMade(made)
    })
  }
  type New = {
    username: string
    permissions: Permissions
    scope: Scope
    email: string | null
    displayName: string | null
  }
  const createLocal = async (json: New): Promise<Made> => {
    const isInvited = canInvite && first.value === 'mail'
    const {
      user,
      password = '',
      invitation,
    } = await ask(api.users.$post({ json: { ...json, ...(isInvited && { invite: true }) } }))
    if (invitation !== undefined) return { user, secret: { kind: 'mail', text: invitation.sentTo ?? '' } }
    return { user, secret: { kind: 'password', text: password } }
  }
  const prepare = async (json: New): Promise<Made> => {
    const subject = draft.subject.value.value.trim()
    const chosen = provider.value === '' && subject !== '' ? providers[0]?.id : provider.value
    const named = { ...(chosen && { provider: chosen }), ...(subject !== '' && { subject }) }
    const { user, invitation } = await ask(api.users.prepared.$post({ json: { ...json, ...named } }))
    return { user, secret: invitation === null ? null : { kind: 'link', text: invitation.url ?? '' } }
  }
  const isMailed = canInvite && way.value === 'local' && first.value === 'mail'
  return (
    <form onSubmit={submit} class="cards">
      <Card title={userTexts.profile}>
        <div class="stack">
          {providers.length > 0 && isLocalOpen && (
            <Segments
              label={userTexts.way}
              value={way.value}
              options={[
                ['local', userTexts.ways.local],
                ['oidc', userTexts.ways.oidc],
              ]}
              onChange={(chosen) => (way.value = chosen)}
            />
          )}
          {canInvite && way.value === 'local' && (
            <>
              <Segments
                label={userTexts.firstPassword}
                value={first.value}
                options={[
                  ['mail', userTexts.firstPasswords.mail],
                  ['temporary', userTexts.firstPasswords.temporary],
                ]}
                onChange={(chosen) => (first.value = chosen)}
              />
              <p class="faint about">{userTexts.firstPasswordHelp[first.value]}</p>
            </>
          )}
          {way.value === 'oidc' && (
            <>
              {providers.length > 1 && (
                <Select
                  label={userTexts.providerName}
                  value={provider.value}
                  options={[
                    ['', userTexts.anyProvider],
                    ...providers.map(({ id, name }) => [id, name ?? userTexts.organisation] as const),
                  ]}
                  onChange={(chosen) => (provider.value = chosen)}
                />
              )}
              <Field
                label={userTexts.subject}
                name="subject"
                hint={userTexts.subjectHelp}
                maxLength={MAX_SUBJECT}
                {...typedInto(draft.subject)}
                autocomplete="off"
                spellcheck={false}
              />
            </>
          )}
          <Field
            label={userTexts.username}
            name="username"
            hint={userTexts.usernameHint}
            pattern={`[A-Za-z0-9._@\\-]{1,${MAX_USERNAME}}`}
            maxLength={MAX_USERNAME}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            {...typedInto(draft.username)}
            required
          />
          <Field
            label={userTexts.displayName}
            name="displayName"
            hint={t.common.optional}
            maxLength={MAX_DISPLAY_NAME}
            {...typedInto(draft.displayName)}
            autocomplete="off"
          />
          <Field
            label={userTexts.email}
            name="email"
            type="email"
            {...(!isMailed && { hint: t.common.optional })}
            required={isMailed}
            maxLength={MAX_EMAIL}
            {...typedInto(draft.email)}
            autocomplete="off"
          />
        </div>
      </Card>
      <Card title={userTexts.access}>
        <PermissionGrid value={permissions} />
        <h3>{scopeTexts.title}</h3>
        <p class="faint about">{scopeTexts.help}</p>
        <ScopeFields value={scope} />
        <Failure error={error.value} />
        <Actions>
          <Submit busy={busy.value} idle={userTexts.create} working={userTexts.creating} />
        </Actions>
      </Card>
    </form>
  )
}

const TEXTS = {
  password: [userTexts.temporary, userTexts.onceHelp],
  link: [userTexts.link, userTexts.linkOnce],
  mail: [userTexts.link, undefined],
} as const

function MadeCard({ made, onAnother }: { made: Made; onAnother(): void }) {
  const { user, secret } = made
  const [title, help] = secret === null ? [user.oidcSubject ?? '', undefined] : TEXTS[secret.kind]
  return (
    <Card title={title} {...(help !== undefined && { help })}>
      {secret?.kind === 'mail' && <p class="measure">{userTexts.invitedTo(secret.text)}</p>}
      {secret !== null && secret.kind !== 'mail' && <CopyText text={secret.text} label={title} />}
      <Actions>
        <button type="button" class="button" onClick={onAnother}>
          {userTexts.another}
        </button>
        <a class="button primary" href={href(`/users/${user.id}`)}>
          {userTexts.open}
        </a>
      </Actions>
    </Card>
  )
}
