import { expect } from 'vitest'
import { type Browser, createBrowser, whoIs } from '../../support/web/browser.ts'
import type { TestProvider } from '../../support/oidc/provider.ts'

/** A running service with sign-in through a test provider, on any runtime. */
export type OidcService = {
  /** Sends a request; redirects are not followed. */
  send(path: string, init: RequestInit): Promise<Response>
  /** Runs one statement in its database. */
  sql(query: string): Promise<Record<string, unknown>[]>
  logged(): readonly string[]
  close(): Promise<void> | void
}

export type OpenOidcService = (env: Record<string, string>) => Promise<OidcService>

/** The number of failures recorded for one address: more than the scenarios cause. */
export const OIDC_SCENARIO_ENV = {
  SESSION_SECRET: 'the secret of the scenarios is longer than 32 characters',
  ADMIN_PASSWORD: 'the first administrator',
  LOGIN_MAX_FAILURES: '1000',
} as const

export function browserOf(service: OidcService): Browser {
  return createBrowser((path, init) => service.send(path, init))
}

/** The audit entries of failed sign-ins, oldest first. */
export async function failures(service: OidcService): Promise<Record<string, unknown>[]> {
  const rows = await service.sql("select details from audit_log where action = 'oidc_login_failed' order by id")
  return rows.map(({ details }) => Object(JSON.parse(String(details))))
}

/**
 * Sends a callback that must fail: the browser gets `error` and stays anonymous, exactly one audit entry has `reason`,
 * and neither a user nor a session is created.
 */
export async function expectFailure(
  service: OidcService,
  browser: Browser,
  callback: string,
  expected: { error: string; reason: string },
): Promise<void> {
  const state = async () => {
    const [row] = await service.sql(`select count(*) as failed, (select count(*) from users) as users,
      (select count(*) from sessions) as sessions, (select details from audit_log order by id desc limit 1) as latest
      from audit_log where action = 'oidc_login_failed'`)
    const { failed, users, sessions, latest } = Object(row)
    return { failed: Number(failed), users, sessions, latest: Object(JSON.parse(latest)) }
  }
  const before = await state()
  const answer = await browser.request(callback)
  expect(`${answer.status} ${answer.headers.get('location')}`).toBe(`302 /login?error=${expected.error}`)
  expect(await answer.text()).toBe('')
  expect(await state()).toMatchObject({
    failed: before.failed + 1,
    users: before.users,
    sessions: before.sessions,
    latest: { provider: 'oidc', reason: expected.reason },
  })
  expect([...browser.cookies.keys()].filter((name) => name.includes('session'))).toEqual([])
  expect(await whoIs(browser)).toBeNull()
}

/** Fails if a row or a log line contains a secret that the provider saw or issued, or a log an e-mail. */
export async function expectNoLeak(service: OidcService, provider: TestProvider): Promise<void> {
  const tables = await service.sql(
    "select name from sqlite_master where type = 'table' and name not like '\\_%' escape '\\' and sql not like 'create virtual %'",
  )
  const rows: string[] = []
  let audit = ''
  for (const { name } of tables) {
    const text = JSON.stringify(await service.sql(`select * from "${String(name)}"`))
    rows.push(text)
    if (name === 'audit_log') audit = text
  }
  const logged = service.logged().join('\n')
  const secrets = [...provider.secrets].filter((secret) => secret !== '')
  expect(secrets.length).toBeGreaterThan(3)
  expect(rows.join('\n')).toContain(provider.issuer)
  const leaks = secrets.filter((secret) => [...rows, logged].some((text) => holds(text, secret)))
  expect(leaks).toEqual([])
  expect(`${audit}\n${logged}`).not.toContain(String(provider.user['email']))
}

function holds(text: string, secret: string): boolean {
  const forms = [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
  ]
  return forms.some((form) => text.includes(form))
}
