import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { verifyChain } from '../../../src/app/audit/verify.ts'
import { sealAudit } from '../../../src/app/audit/chain.ts'
import { nativePasswordHasher } from '../../../src/node/passwords.ts'
import { auditRows, createTestApp, type TestApp } from '../../support/app.ts'
import { auditedBy } from '../../support/answers.ts'
import { enrol } from '../../support/factors/cookie-client.ts'
import { buildCli, programEnv } from '../../support/built/built-service.ts'

const run = promisify(execFile)

let app: TestApp
let dir: string

let file: string
beforeAll(() => {
  file = buildCli()
})

beforeEach(async () => {
  app = await createTestApp({ passwords: nativePasswordHasher() })
  dir = mkdtempSync(join(tmpdir(), 'mesh-edge-admin-'))
})
afterEach(() => {
  app.close()
  rmSync(dir, { recursive: true })
})

/** Runs the command in a folder without a database. */
async function edgeAdmin(...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [file, 'edge-admin', ...args], {
    cwd: dir,
    env: programEnv(),
  })
  return stdout
}

function passwordIn(told: string): string {
  return /with the temporary password {2}(\w{20})$/m.exec(told)?.[1] ?? ''
}

/** What a shell passes to the program as its last argument. */
async function lastArgument(told: string): Promise<string> {
  const command = /^npx wrangler d1 execute DB --remote --command .*$/m.exec(told)?.[0] ?? 'false'
  const { stdout } = await run('sh', ['-c', `npx() { for last; do :; done; printf %s "$last"; }\n${command}`])
  return stdout
}

/** Has the command created and its statements executed; returns the password. */
async function comeBack(username: string): Promise<string> {
  const told = await edgeAdmin(username)
  const statements = await lastArgument(told)
  expect(statements).not.toContain(passwordIn(told))
  app.store.sqlite.transaction(() => app.store.sqlite.exec(statements))()
  return passwordIn(told)
}

async function statusOf(username: string, password: string): Promise<unknown> {
  const client = await app.signIn(username, password)
  return (await client.send('GET', '/api/auth/status')).json()
}

const ADMINISTRATOR = { authenticated: true, user: { isAdmin: true, isActive: true } }

test('an administrator who lost the password gets a temporary one; sessions and tokens end', async () => {
  const before = await app.admin()
  await before.send('POST', '/api/tokens', { name: 'script', scopes: ['metrics'] })
  let password = ''
  expect(await auditedBy(app, async () => (password = await comeBack('ADMIN')))).toStrictEqual(['password_reset'])
  expect(auditRows(app).at(-1)?.details).toStrictEqual({
    username: 'ADMIN',
    userId: 1,
    tokensRevoked: 1,
  })
  expect((await before.send('GET', '/api/users')).status).toBe(401)
  expect(app.store.sqlite.prepare('select count(*) as n from api_tokens').get()).toStrictEqual({ n: 0 })
  expect(await statusOf('admin', password)).toMatchObject({ ...ADMINISTRATOR, mustChangePassword: true })
})

test('an administrator who lost the second factor signs in without it, and the log records that', async () => {
  await enrol(app, await app.admin())
  let password = ''
  const told = await auditedBy(app, async () => (password = await comeBack('admin')))
  expect(told).toStrictEqual(
    ['second_factor_reset', 'password_reset'].toSorted((a, b) => told.indexOf(a) - told.indexOf(b)),
  )
  expect(auditRows(app).find(({ action }) => action === 'second_factor_reset')?.details).toStrictEqual({
    username: 'admin',
    userId: 1,
    totp: 1,
    passkeys: 0,
  })
  expect(await statusOf('admin', password)).toMatchObject({
    ...ADMINISTRATOR,
    secondFactor: { isSetUp: false, resetAt: expect.any(Number) },
  })
  expect(app.store.sqlite.prepare('select count(*) as n from recovery_codes').get()).toStrictEqual({ n: 0 })
})

test('a confirmed address counts no longer: it may be one of whoever had the account', async () => {
  app.store.sqlite.exec(`update users set email = 'thief@example.org';
    insert into verified_emails (user_id, email, verified_at) values (1, 'thief@example.org', 1)`)
  await comeBack('admin')
  const ended = app.store.sqlite.prepare('select email, ended_at is not null as ended from verified_emails').all()
  expect(ended).toStrictEqual([{ email: 'thief@example.org', ended: 1 }])
})

test('destinations of alerts are held until the administrator has looked at them', async () => {
  const before = await app.admin()
  const hook = { kind: 'webhook', name: 'Hook', settings: { url: 'https://hook.example.org/x' } }
  expect((await before.send('POST', '/api/alerts/destinations', hook)).status).toBe(201)
  expect(await auditedBy(app, () => comeBack('admin'))).toStrictEqual(['password_reset', 'alert_destinations_held'])
  expect(app.store.sqlite.prepare('select held_for from alert_destinations').all()).toStrictEqual([
    { held_for: 'password_reset' },
  ])
})

test('failed sign-ins no longer count', async () => {
  const guess = () => app.client().send('POST', '/api/auth/login', { username: 'admin', password: 'a wrong guess' })
  for (let i = 0; i < 10; i++) expect((await guess()).status).toBe(401)
  expect((await guess()).status).toBe(429)
  expect(await statusOf('admin', await comeBack('admin'))).toMatchObject(ADMINISTRATOR)
})

test('a deactivated user comes back as an administrator, and the log records it', async () => {
  const admin = await app.admin()
  const { id } = await app.user('anna')
  expect((await admin.send('DELETE', `/api/users/${id}`)).status).toBe(204)
  let password = ''
  const told = await auditedBy(app, async () => (password = await comeBack('anna')))
  expect(told).toStrictEqual(['user_updated', 'admin_status_changed', 'password_reset'])
  const change = auditRows(app).at(-2)?.details
  expect(change).toMatchObject({
    userId: id,
    before: { isAdmin: false, permissions: { nodes: { read: true, write: false } } },
    after: { isAdmin: true, permissions: { nodes: { read: true, write: true } } },
  })
  expect(await statusOf('anna', password)).toMatchObject({
    ...ADMINISTRATOR,
    permissions: { automation: { read: true, write: true } },
  })
})

test('an unknown name becomes an administrator; repeating the same statements only ends the sessions', async () => {
  await app.admin()
  const told = await edgeAdmin('new.one@club', 'way-back.sql')
  expect(told).toContain('npx wrangler d1 execute DB --remote --file way-back.sql\n')
  expect(statSync(join(dir, 'way-back.sql')).mode & 0o777).toBe(0o600)
  const statements = readFileSync(join(dir, 'way-back.sql'), 'utf8')
  expect(await auditedBy(app, async () => app.store.sqlite.exec(statements))).toStrictEqual(['user_created'])
  expect(await auditedBy(app, async () => app.store.sqlite.exec(statements))).toStrictEqual(['password_reset'])
  expect(await statusOf('new.one@club', passwordIn(told))).toMatchObject({ ...ADMINISTRATOR, mustChangePassword: true })
  await sealAudit(app.store)
  expect(await verifyChain(app.store, { after: 0, limit: 1000 })).toMatchObject({ broken: null, unsealed: 0 })
})

test('an OpenID user gets no password', async () => {
  app.store.sqlite.exec(
    `insert into users (username, auth_provider, oidc_issuer, created_at) values ('ola', 'oidc', 'https://id.example.org', 1);
      insert into identities (user_id, issuer, subject, created_at)
        select id, oidc_issuer, 'subject', 1 from users where username = 'ola'`,
  )
  expect(await auditedBy(app, async () => comeBack('ola'))).toStrictEqual(['admin_status_changed'])
  const columns = 'password_hash, must_change_password, is_admin, session_epoch'
  expect(app.store.sqlite.prepare(`select ${columns} from users where username = 'ola'`).get()).toStrictEqual({
    password_hash: null,
    must_change_password: 0,
    is_admin: 1,
    session_epoch: 1,
  })
})

describe('refuses', () => {
  test.each([
    [["o'brien"], 1, 'A username is 1–64 letters'],
    [['system'], 1, 'A username is 1–64 letters'],
    [['anna', 'no/such/folder.sql'], 1, 'no/such/folder.sql cannot be created'],
    [[], 2, 'edge-admin <username> [file]'],
    [['anna', 'a', 'b'], 2, 'edge-admin <username> [file]'],
  ])('%j with %i and a reason', async (args, code, reason) => {
    await expect(edgeAdmin(...args)).rejects.toMatchObject({
      code,
      stdout: '',
      stderr: expect.stringContaining(reason),
    })
  })
})
