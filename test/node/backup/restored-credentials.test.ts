import { writeFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { databaseSessions } from '../../../src/app/accounts/sessions/database-sessions.ts'
import { holdTokens } from '../../../src/app/accounts/tokens/hold.ts'
import { USER_CONFLICTS } from '../../../src/app/accounts/users/conflicts.ts'
import { toAppError } from '../../../src/app/http/errors.ts'
import { repeatUndone } from '../../../src/app/system/restore/undone.ts'
import { restoreBackup, type RestoreOptions } from '../../../src/node/backup/restore/restore.ts'
import { consoleContext } from '../../../src/node/console-context.ts'
import { openDatabase } from '../../../src/node/database.ts'
import {
  auditRows,
  type Client,
  createTestApp,
  moveToProvider,
  START,
  type TestApp,
  USER_PASSWORD,
} from '../../support/app.ts'
import { keptLog, makeBackup, makeDataDir, restoreOptions } from '../../support/backup/backup.ts'
import { createAuthenticator } from '../../support/factors/authenticator.ts'
import { cookieClient, type CookieClient, enrol } from '../../support/factors/cookie-client.ts'

let here: ReturnType<typeof makeDataDir>
let app: TestApp
let admin: Client

beforeEach(async () => {
  here = makeDataDir()
  await open()
})
afterEach(() => {
  app.close()
  here.remove()
})

async function open(): Promise<void> {
  const store = openDatabase(here.database)
  app = await createTestApp({ store, ports: { sessions: databaseSessions(store) } })
  app.clock.advance(600_000)
  moveToProvider(app, [])
  admin = await app.admin()
}

async function restore(name: string, more: Partial<RestoreOptions> = {}): Promise<Record<string, unknown>[]> {
  app.close()
  const entries: Record<string, unknown>[] = []
  const note = (level: string) => (message: string, fields?: object) => entries.push({ level, message, ...fields })
  const log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }
  await restoreBackup(restoreOptions(here.dataDir, { log, now: () => START + 3_600_000, ...more }), name)
  await open()
  return entries.filter(({ level }) => level === 'warn')
}

const body = async (answer: Response | Promise<Response>) => Object(await (await answer).json())
const restoredAccess = async () => (await body(admin.send('GET', '/api/system/restore/restored-access'))).restoredAccess
const backup = () => makeBackup(here.dataDir, { now: () => app.clock.now })
const reapplyAll = async () => {
  const ids = (await restoredAccess()).map(({ id }: { id: number }) => id)
  return body(admin.send('POST', '/api/system/restore/reapply', { ids }))
}

async function signedIn(username: string): Promise<CookieClient> {
  const client = cookieClient(app)
  await client.send('POST', '/api/auth/login', { username, password: USER_PASSWORD })
  return client
}

type Key = Pick<ReturnType<typeof createAuthenticator>, 'get'>

/** A discoverable passkey: it names the user that it was made for. */
async function addKey(client: CookieClient, name: string): Promise<Key> {
  const key = createAuthenticator('http://localhost')
  const { options } = await body(client.send('POST', '/api/auth/factors/passkeys/options'))
  const response = key.create(String(options.challenge))
  expect((await client.send('POST', '/api/auth/factors/passkeys', { name, response })).status).toBe(200)
  const userHandle = String(options.user.id)
  return { get: (challenge) => key.get(challenge, { userHandle }) }
}

/** The status of a sign-in with a passkey alone. */
async function enterBy(key: Key): Promise<number> {
  const client = cookieClient(app)
  const { options } = await body(client.send('POST', '/api/auth/login/passkey/options', {}))
  return (await client.send('POST', '/api/auth/login/passkey', { response: key.get(String(options.challenge)) })).status
}

const rows = (query: string) => app.store.sqlite.prepare(query).all()

test('a stolen passkey that was removed after the backup is named, and removed again', async () => {
  const { id } = await app.user('paula')
  const paula = await signedIn('paula')
  const stolen = await addKey(paula, 'Phone')
  const kept = await addKey(paula, 'Phone')
  const name = await backup()
  app.clock.advance(60_000)
  const [first] = (await body(paula.send('GET', '/api/auth/factors'))).passkeys
  app.store.sqlite.prepare('delete from passkeys where id = ?').run(first.id)
  app.store.sqlite.exec(
    `insert into audit_log (timestamp, user_id, username, action, resource, details)
      values (${app.clock.now}, ${id}, 'paula', 'second_factor_removed', 'auth', '{"factor":"passkey","name":"Phone"}')`,
  )
  expect(await enterBy(stolen)).toBe(403)
  const log = await restore(name)
  const named = { action: 'second_factor_removed', username: 'paula', what: 'Phone' }
  expect(log).toMatchObject([{ ...named, by: 'paula', at: expect.any(String) }])
  expect(auditRows(app).find(({ action }) => action === 'system_restored')?.details['restoredAccess']).toStrictEqual([
    named,
  ])
  expect(await restoredAccess()).toMatchObject([{ id: 1, ...named }])
  expect(JSON.stringify(await restoredAccess())).not.toMatch(/credential|publicKey/i)
  expect(await enterBy(stolen)).toBe(200)
  expect(await reapplyAll()).toStrictEqual({ reapplied: [1], refused: [] })
  expect([await enterBy(stolen), await enterBy(kept)]).toStrictEqual([403, 200])
  expect(
    rows("select count(*) as n from sessions where user_id = (select id from users where username = 'paula')"),
  ).toEqual([{ n: 1 }])
  expect(auditRows(app)).toContainEqual({
    action: 'second_factor_removed',
    username: 'admin',
    details: { userId: id, username: 'paula', reapplied: true, factor: 'passkey', name: 'Phone' },
  })
  expect(await restoredAccess()).toStrictEqual([])
})

test('factors that were added after the backup, and used recovery codes, are named and come back', async () => {
  await app.user('otto')
  await app.user('tina')
  const tina = await signedIn('tina')
  const { codes } = await enrol(app, tina)
  const name = await backup()
  app.clock.advance(60_000)
  const otto = await signedIn('otto')
  await enrol(app, otto)
  const key = await addKey(otto, 'Key')
  const half = cookieClient(app)
  const credentials = { username: 'tina', password: USER_PASSWORD }
  await half.send('POST', '/api/auth/login', credentials)
  expect((await half.send('POST', '/api/auth/login/recovery', { code: codes[0] })).status).toBe(200)
  const log = await restore(name)
  expect(log).toMatchObject([
    { action: 'second_factor_added', username: 'otto', what: 'Key', by: 'otto' },
    { action: 'second_factor_added', username: 'otto', by: 'otto' },
    { action: 'recovery_codes_created', username: 'tina', what: '1', by: 'tina' },
  ])
  const code = async () => {
    const again = cookieClient(app)
    const answer = await body(again.send('POST', '/api/auth/login', credentials))
    expect(answer).toStrictEqual({ secondFactor: ['totp', 'recovery'] })
    return (await again.send('POST', '/api/auth/login/recovery', { code: codes[0] })).status
  }
  // By the password alone.
  await app.signIn('otto')
  expect((await reapplyAll()).refused).toStrictEqual([])
  expect(await code()).toBe(401)
  expect(await enterBy(key)).toBe(200)
  const ottos = await body(
    cookieClient(app).send('POST', '/api/auth/login', { username: 'otto', password: USER_PASSWORD }),
  )
  expect(ottos).toStrictEqual({ secondFactor: ['totp', 'passkey', 'recovery'] })
})

test('cut links, e-mail addresses and destinations are named, and taken back; no invitation is restored', async () => {
  const uma = await app.user('uma')
  app.store.sqlite.exec(`update users set email = 'old@example.org' where id = ${uma.id};
    insert into identities (user_id, issuer, subject, created_at) values
      (${uma.id}, 'https://id.example.org', 'thief', 1), (${uma.id}, 'https://other.example.org', 'uma', 1)`)
  const prepared = await body(admin.send('POST', '/api/users/prepared', { username: 'guest' }))
  const hook = (host: string) => ({ kind: 'webhook', name: host, settings: { url: `https://${host}/x?s3cret` } })
  for (const host of ['gone.example.org', 'held.example.org', 'moved.example.org', 'same.example.org']) {
    expect((await uma.send('POST', '/api/alerts/destinations', hook(host))).status).toBe(201)
  }
  const name = await backup()
  app.clock.advance(60_000)
  expect((await admin.send('DELETE', `/api/users/${uma.id}/link?provider=default`)).status).toBe(204)
  expect((await admin.send('PUT', `/api/users/${uma.id}`, { email: 'new@example.org' })).status).toBe(200)
  expect((await admin.send('DELETE', `/api/users/${prepared.user.id}/invitation`)).status).toBe(204)
  expect((await admin.send('DELETE', `/api/users/${uma.id}/destinations/1`)).status).toBe(204)
  const settings = { url: 'https://new.example.org/' }
  expect((await (await app.signIn('uma')).send('PUT', '/api/alerts/destinations/3', { settings })).status).toBe(200)
  app.store.sqlite.exec(`update alert_destinations set held_at = 1, held_for = 'password_reset' where id = 2`)
  const log = await restore(name)
  const named = [
    { action: 'account_unlinked', username: 'uma', what: 'https://id.example.org' },
    { action: 'user_updated', username: 'uma', what: 'old@example.org' },
    { action: 'alert_destination_updated', username: 'uma', what: 'gone.example.org (webhook, gone.example.org)' },
    { action: 'alert_destination_updated', username: 'uma', what: 'held.example.org (webhook, held.example.org)' },
    { action: 'alert_destination_updated', username: 'uma', what: 'moved.example.org (webhook, moved.example.org)' },
  ]
  expect(log).toMatchObject(named)
  expect(log.map(({ by }) => by)).toStrictEqual(['admin', 'admin', 'admin', null, 'uma'])
  expect(JSON.stringify([log, await restoredAccess()])).not.toContain('s3cret')
  expect(await reapplyAll()).toStrictEqual({ reapplied: [1, 2, 3, 4, 5], refused: [] })
  expect(rows(`select email from users where id = ${uma.id}`)).toStrictEqual([{ email: 'new@example.org' }])
  expect(rows('select issuer from identities')).toStrictEqual([{ issuer: 'https://other.example.org' }])
  expect(rows('select id, held_for from alert_destinations')).toStrictEqual([
    { id: 2, held_for: 'restore' },
    { id: 3, held_for: 'restore' },
    { id: 4, held_for: null },
  ])
  const open = await body(admin.send('GET', `/api/users/${prepared.user.id}/invitation`))
  expect(open).toStrictEqual({ invitation: null, byMail: false })
})

test('a provider whose groups were taken their say is named, and loses it again', async () => {
  const uma = await app.user('uma')
  app.store.sqlite.exec(`update users set oidc_issuer = 'https://id.example.org' where id = ${uma.id};
    insert into identities (user_id, issuer, subject, created_at) values (${uma.id}, 'https://id.example.org', 'uma', 1)`)
  const name = await backup()
  app.clock.advance(60_000)
  const path = `/api/users/${uma.id}/provider-role`
  expect((await admin.send('PUT', path, { provider: null })).status).toBe(200)
  const named = { action: 'groups_provider_changed', username: 'uma', what: 'https://id.example.org' }
  expect(await restore(name)).toMatchObject([{ ...named, by: 'admin' }])
  const groupsOf = async () => (await body(admin.send('GET', path))).groupsOf
  expect(await groupsOf()).toStrictEqual({ provider: 'default', issuer: 'https://id.example.org' })
  const session = await app.signIn('uma')
  expect(await reapplyAll()).toStrictEqual({ reapplied: [1], refused: [] })
  expect(await groupsOf()).toBeNull()
  expect(auditRows(app)).toContainEqual({
    action: 'groups_provider_changed',
    username: 'admin',
    details: {
      userId: uma.id,
      username: 'uma',
      reapplied: true,
      before: { groupsOf: 'https://id.example.org' },
      after: { groupsOf: null },
      providerId: null,
    },
  })
  expect((await session.send('GET', '/api/nodes')).status).toBe(200)
})

test('a confirmed address of an intruder, whose confirmation a reset ended, is named, and no longer counts again', async () => {
  const uma = await app.user('uma')
  app.store.sqlite.exec(`update users set email = 'thief@example.org' where id = ${uma.id};
    insert into verified_emails (user_id, email, verified_at) values (${uma.id}, 'thief@example.org', 1)`)
  const verified = async () => (await body(admin.send('GET', `/api/users/${uma.id}`))).user.emailVerified
  const name = await backup()
  app.clock.advance(60_000)
  expect((await admin.send('POST', `/api/users/${uma.id}/reset-password`)).status).toBe(200)
  expect(await verified()).toBe(false)
  const named = { action: 'email_confirmation_ended', username: 'uma', what: 'thief@example.org' }
  expect(await restore(name)).toMatchObject([{ action: 'password_reset' }, { ...named, by: 'admin' }])
  expect(await verified()).toBe(true)
  expect(await reapplyAll()).toStrictEqual({ reapplied: [1, 2], refused: [] })
  expect(await verified()).toBe(false)
  expect(auditRows(app)).toContainEqual({
    action: 'user_updated',
    username: 'admin',
    details: {
      userId: uma.id,
      username: 'uma',
      reapplied: true,
      before: { emailVerified: true },
      after: { emailVerified: false },
    },
  })
})

test('a token that a refusal by groups held is named, and held again until its owner signs in', async () => {
  const uma = await app.user('uma')
  const { token } = await body(uma.send('POST', '/api/tokens', { name: 'script', scopes: ['nodes:read'] }))
  const use = async () =>
    (await app.client().send('GET', '/api/nodes', undefined, { authorization: `Bearer ${token}` })).status
  const name = await backup()
  app.clock.advance(60_000)
  const ctx = consoleContext({ ...app.ports, store: app.store })
  const [first, ...rest] = holdTokens(ctx, { id: uma.id, username: 'uma' }, { by: 'groups at the provider' })
  if (first !== undefined) await app.store.atomic([first, ...rest])
  expect(await use()).toBe(401)
  const [said] = await restore(name)
  expect(said).toMatchObject({ action: 'tokens_held', username: 'uma', at: expect.any(String) })
  expect(await use()).toBe(200)
  // Another restore of the same backup names it once, as does the list.
  await restore(name)
  expect(await restoredAccess()).toMatchObject([{ id: 1, action: 'tokens_held', token: { name: 'script' } }])
  expect(await reapplyAll()).toStrictEqual({ reapplied: [1], refused: [] })
  expect(await use()).toBe(401)
  expect(await restoredAccess()).toStrictEqual([])
  await app.signIn('uma')
  expect(await use()).toBe(200)
})

test('a provider that has sent groups is still known to send them after the restore', async () => {
  const name = await backup()
  app.store.sqlite.exec("insert into provider_claims values ('https://id.example.org', 'groups', 1)")
  await restore(name)
  expect(rows('select issuer, path from provider_claims')).toStrictEqual([
    { issuer: 'https://id.example.org', path: 'groups' },
  ])
})

test('a link that is the only way to sign in of the last administrator is not cut again', async () => {
  moveToProvider(app, [1])
  const ctx = consoleContext({ ...app.ports, store: app.store })
  const cut = async () =>
    repeatUndone(
      ctx,
      { userId: 1, username: 'admin', what: null },
      { repeat: 'cut_link', issuer: 'https://id.example.org', subject: 'subject 1' },
    )
  const before = auditRows(app).length
  await expect(cut().catch((error: unknown) => toAppError(error, USER_CONFLICTS))).resolves.toMatchObject({
    code: 'last_admin',
  })
  expect(rows('select subject from identities')).toStrictEqual([{ subject: 'subject 1' }])
  expect(auditRows(app)).toHaveLength(before)
  // With the password as another way it is.
  app.store.sqlite.exec("update users set auth_provider = 'local' where id = 1")
  await cut()
  expect(rows('select subject from identities')).toStrictEqual([])
})

test('RESTORE_REAPPLY repeats these by itself, and undecided ones stay after the next restore', async () => {
  const paula = await app.user('paula')
  const stolen = await addKey(await signedIn('paula'), 'Phone')
  const name = await backup()
  app.clock.advance(60_000)
  expect((await admin.send('POST', `/api/users/${paula.id}/reset-second-factor`)).status).toBe(204)
  await restore(name)
  const kinds = ['second_factor_removed', 'recovery_codes_created']
  expect((await restoredAccess()).map(({ action }: { action: string }) => action)).toStrictEqual(kinds)
  const reapply: RestoreOptions['reapply'] = (store) => consoleContext({ ...app.ports, store, log: keptLog().log })
  const log = await restore(name, { reapply })
  expect(log.map(({ action, outcome }) => [action, outcome])).toStrictEqual(kinds.map((kind) => [kind, 'done again']))
  expect(await enterBy(stolen)).toBe(403)
  expect(await restoredAccess()).toStrictEqual([])
})

test('a replaced database that cannot be read is said to administrators until they accept it', async () => {
  const name = await backup()
  app.close()
  writeFileSync(here.database, 'this is no database'.repeat(1000))
  app = await createTestApp()
  const log = await restore(name)
  expect(log).toContainEqual(expect.objectContaining({ action: 'unknown' }))
  expect(await restoredAccess()).toMatchObject([{ id: 1, action: 'unknown', username: null }])
  expect(await reapplyAll()).toMatchObject({ reapplied: [], refused: [{ id: 1, code: 'invalid_request' }] })
  expect((await admin.send('DELETE', '/api/system/restore/restored-access')).status).toBe(204)
  expect(await restoredAccess()).toStrictEqual([])
})
