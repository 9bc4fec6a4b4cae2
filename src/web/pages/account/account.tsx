import { api, ask, send } from '../../api.ts'
import { UNIT_SYSTEMS } from '../../../shared/mesh/unit-systems.ts'
import { CLOCKS } from '../../display.ts'
import { humanize } from '../../format.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { deviceName, SessionRow } from '../../parts/form/credential-rows.tsx'
import { Segments } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card, Facts, Page } from '../../parts/page.tsx'
import { PasswordForm } from '../../parts/form/password-form.tsx'
import { chooseLanguage, chooseUnits, displayChoice } from '../../state/display-choice.ts'
import { LanguageSelect } from '../../parts/form/language-select.tsx'
import { refreshStatus, status, user } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { accountTexts } from '../../strings/people/account.ts'
import { theme, THEMES } from '../../theme.ts'
import { OwnEmail } from './email.tsx'
import { Factors } from './factors.tsx'
import { LinkedAccounts } from './link.tsx'
import { QuietHours } from './quiet-hours.tsx'
import { SignIns } from './sign-ins.tsx'
import { Tokens } from './tokens.tsx'

export function AccountPage() {
  const me = user.value
  const display = displayChoice.value.value
  const { run, error } = useAction()
  if (me === null) return null
  const isLocal = me.authProvider === 'local' && !status.value?.localAuthDisabled
  const hasProviders = (status.value?.providers.length ?? 0) > 0
  return (
    <Page title={accountTexts.title}>
      <div class="cards">
        <Card title={accountTexts.profile}>
          <Facts
            entries={[
              [accountTexts.username, me.username],
              [accountTexts.displayName, me.displayName],
              [accountTexts.email, me.email],
              [accountTexts.role, me.isAdmin ? accountTexts.admin : accountTexts.regular],
              [accountTexts.provider, accountTexts.providers[me.authProvider]],
              [accountTexts.permissions, me.isAdmin ? null : <Held />],
            ]}
          />
          <h3 id="language">{t.shell.language}</h3>
          <LanguageSelect
            chosen={status.value?.language ?? null}
            choose={(language) => void run(() => chooseLanguage(language))}
          />
          {error.value !== null && <Failure error={error.value} />}
          <h3>{t.shell.theme}</h3>
          <Segments
            label={t.shell.theme}
            value={theme.value}
            options={THEMES.map((name) => [name, t.shell.themes[name]] as const)}
            onChange={(chosen) => (theme.value = chosen)}
          />
          <h3>{t.shell.units}</h3>
          <Segments
            label={t.shell.units}
            value={display.units}
            options={UNIT_SYSTEMS.map((name) => [name, t.shell.unitSystems[name]] as const)}
            onChange={(units) => void run(() => chooseUnits(units))}
          />
          <h3>{t.shell.clock}</h3>
          <Segments
            label={t.shell.clock}
            value={display.clock}
            options={CLOCKS.map((name) => [name, t.shell.clocks[name]] as const)}
            onChange={(clock) => displayChoice.keep({ ...display, clock })}
          />
        </Card>
        {isLocal ? (
          <div class="stack">
            <Card title={accountTexts.passwordTitle}>
              <PasswordForm
                username={me.username}
                current={null}
                onDone={async () => {
                  say(t.password.changed)
                  await refreshStatus()
                }}
              />
            </Card>
            <QuietHours />
          </div>
        ) : (
          <div class="stack">
            <Card title={accountTexts.passwordTitle}>
              <p class="faint">{t.password.oidc}</p>
            </Card>
            {hasProviders && <LinkedAccounts />}
            <QuietHours />
          </div>
        )}
      </div>
      {isLocal && <OwnEmail user={me} key={me.email ?? ''} />}
      {isLocal && <Factors />}
      {isLocal && hasProviders && <LinkedAccounts />}
      <Sessions />
      <SignIns />
      <Tokens />
    </Page>
  )
}

function Held() {
  const permissions = status.value?.permissions
  if (permissions === undefined) return null
  const held = Object.entries(permissions).flatMap(([resource, grant]) => {
    const name = Object.entries(t.resources).find(([known]) => known === resource)?.[1] ?? humanize(resource)
    return grant.read ? [grant.write ? `${name} (${t.actions.write})` : name] : []
  })
  return <>{held.join(', ') || t.common.none}</>
}

function Sessions() {
  const { data, error, reload } = useLoad(() => ask(api.auth.sessions.$get()), [])
  const action = useAction()
  const sessions = data.value?.sessions ?? []
  const act = (work: () => Promise<unknown>, done: string) =>
    action.run(async () => {
      await work()
      say(done)
      await Promise.all([reload(), refreshStatus()])
    })
  return (
    <Card
      title={accountTexts.sessions}
      help={accountTexts.sessionsHelp}
      actions={
        sessions.length > 1 && (
          <button
            type="button"
            class="button"
            disabled={action.busy.value}
            onClick={() => void act(() => send(api.auth.sessions.$delete()), accountTexts.othersEnded)}
          >
            {accountTexts.endOthers}
          </button>
        )
      }
    >
      <Failure error={error.value ?? action.error.value} />
      <ul class="rows">
        {sessions.map((session) => (
          <SessionRow session={session} key={session.id}>
            {!session.current && (
              <button
                type="button"
                class="button small"
                disabled={action.busy.value}
                aria-label={accountTexts.endLabel(deviceName(session.userAgent))}
                onClick={() =>
                  void act(
                    () => send(api.auth.sessions[':id'].$delete({ param: { id: String(session.id) } })),
                    accountTexts.ended,
                  )
                }
              >
                {accountTexts.end}
              </button>
            )}
          </SessionRow>
        ))}
      </ul>
    </Card>
  )
}
