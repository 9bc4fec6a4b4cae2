import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { auditRows, type Client, createTestApp, type TestApp } from '../../../support/app.ts'
import { outcomeOf } from '../../../support/answers.ts'
import { parseConfig } from '../../../../src/app/config/config.ts'
import { createProviders } from '../../../../src/app/accounts/oidc/oidc.ts'
import { warnIfNobodyEnters } from '../../../../src/app/accounts/recovery/ways-in.ts'

const ISSUER = 'https://id.example.org'
const OIDC = {
  OIDC_ENABLED: 'true',
  OIDC_ISSUER: ISSUER,
  OIDC_CLIENT_ID: 'mesh',
  OIDC_CLIENT_SECRET: 'secret',
  OIDC_REDIRECT_URI: 'http://localhost/api/auth/oidc/callback',
}

let app: TestApp
let admin: Client
beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
})
afterEach(() => app.close())

/** The service is restarted with other variables. */
function configure(env: Record<string, string>): void {
  const parsed = parseConfig({ SESSION_SECRET: 's'.repeat(40), ...env })
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  const config = parsed.config
  Object.assign(app.ports, { config, providers: createProviders({ ...app.ports, config }) })
}

const sql = (text: string) => app.store.sqlite.exec(text)

/** An administrator beside the first one, who demotes or deactivates that one. */
async function secondAdmin(): Promise<Client & { id: number }> {
  const second = await app.user('second')
  expect(await outcomeOf(admin.send('PUT', `/api/users/${second.id}/admin`, { isAdmin: true }))).toBe('200')
  return second
}

describe.each([
  [
    'a prepared account that nobody has used',
    "auth_provider = 'oidc', oidc_issuer = 'ISSUER', last_login_at = null",
    OIDC,
  ],
  ['an account whose provider is no longer configured', "auth_provider = 'oidc', oidc_issuer = 'ISSUER'", {}, true],
  ['a local account without a password', 'password_hash = null', {}],
  ['a local account that somebody made and nobody used', 'last_login_at = null, created_by = 1', {}],
])('%s', (_name, set, env: Record<string, string>, isLinked = false) => {
  test('is not another administrator: the real one stays', async () => {
    const second = await secondAdmin()
    const rows = auditRows(app).length
    // The second one acts, so that nobody changes themselves, and cannot sign in from the next moment on.
    configure(env)
    sql(`update users set ${set.replace('ISSUER', ISSUER)} where id = ${second.id}`)
    if (isLinked) {
      sql(`insert into identities (user_id, issuer, subject, created_at) values (${second.id}, '${ISSUER}', 's', 1)`)
    }
    sql(`insert into users (username, auth_provider, password_hash, is_admin, created_at, created_by, direct_read, direct_write)
      select 'third', 'local', 'x', 1, 0, 1, 0, 0`)
    const third = Number(Object(app.store.sqlite.prepare("select id from users where username = 'third'").get()).id)
    sql(`update sessions set user_id = ${third}, epoch = 0 where user_id = ${second.id}`)
    for (const [method, path, body] of [
      ['PUT', '/api/users/1/admin', { isAdmin: false }],
      ['DELETE', '/api/users/1', undefined],
      ['PUT', '/api/users/1', { isActive: false }],
    ] as const) {
      expect(await outcomeOf(second.send(method, path, body))).toBe('409 last_admin')
    }
    expect(auditRows(app)).toHaveLength(rows)
    // Once the third one has signed in, it counts.
    sql(`update users set last_login_at = 1 where id = ${third}`)
    expect(await outcomeOf(second.send('PUT', '/api/users/1/admin', { isAdmin: false }))).toBe('200')
  })
})

test('of two real administrators who take each other the role at the same instant one stays', async () => {
  const second = await secondAdmin()
  const outcomes = await Promise.all([
    outcomeOf(admin.send('PUT', `/api/users/${second.id}/admin`, { isAdmin: false })),
    outcomeOf(second.send('PUT', '/api/users/1/admin', { isAdmin: false })),
  ])
  expect(outcomes.filter((outcome) => outcome === '200')).toHaveLength(1)
})

describe('at the start', () => {
  const said = async () => {
    const before = app.logged.length
    await warnIfNobodyEnters(app.ports)
    return app.logged.slice(before).map((line) => String(JSON.parse(line).message))
  }

  test('nothing is said while an administrator can sign in, also the first one before the first sign-in', async () => {
    expect(await said()).toEqual([])
    sql('update users set last_login_at = null')
    expect(await said()).toEqual([])
  })

  test('the log says when no administrator can sign in, and who becomes one', async () => {
    configure({ ...OIDC, DISABLE_LOCAL_AUTH: 'true' })
    expect(await said()).toEqual([
      'No administrator can sign in: set OIDC_ADMIN_SUBJECT, or use promote or create-admin at the console',
    ])
    configure({ ...OIDC, DISABLE_LOCAL_AUTH: 'true', OIDC_ADMIN_SUBJECT: 'boss' })
    expect(await said()).toEqual([
      'No administrator can sign in: the user of OIDC_ADMIN_SUBJECT becomes one at the next sign-in',
    ])
  })
})
