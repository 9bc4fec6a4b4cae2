import type { PasswordHasher } from '../../../../src/app/accounts/passwords/hasher.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Store } from '../../../../src/db/store.ts'
import { openDatabase, type SqliteStore } from '../../../../src/node/database.ts'
import { auditedBy, outcomeOf } from '../../../support/answers.ts'
import { ADMIN_PASSWORD, auditRows, createTestApp, type TestApp, USER_PASSWORD } from '../../../support/app.ts'
import { openMemoryStore } from '../../../support/memory-store.ts'

const endings: (() => void)[] = []
afterEach(() => {
  for (const end of endings.splice(0).toReversed()) end()
})

async function opened(options: Parameters<typeof createTestApp>[0] = {}): Promise<TestApp> {
  const app = await createTestApp(options)
  endings.push(() => app.close())
  return app
}

/** A database file and a connection to it. */
function fileStores(count: number): SqliteStore[] {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-races-'))
  endings.push(() => rmSync(dir, { recursive: true }))
  return Array.from({ length: count }, () => openDatabase(join(dir, 'mesh.db')))
}

const admins = (app: TestApp) =>
  app.store.sqlite.prepare('select count(*) from users where is_admin = 1 and is_active = 1').pluck().get()

const ATTACKS: [string, (id: number) => [method: string, path: string, body?: unknown]][] = [
  ['demote', (id) => ['PUT', `/api/users/${id}/admin`, { isAdmin: false }]],
  ['toggle', (id) => ['PUT', `/api/users/${id}/admin`]],
  ['deactivate', (id) => ['DELETE', `/api/users/${id}`]],
]

describe('two administrators at the same instant', () => {
  test.each(ATTACKS)('%s each other in one process: one remains', async (_name, attack) => {
    const app = await opened()
    const first = await app.admin()
    const second = await app.user('second')
    await first.send('PUT', `/api/users/${second.id}/admin`, { isAdmin: true })
    const before = auditRows(app).length
    const outcomes = await Promise.all([first.send(...attack(second.id)), second.send(...attack(1))].map(outcomeOf))
    expect(outcomes.filter((outcome) => outcome.startsWith('20'))).toHaveLength(1)
    expect(outcomes).toContain('409 last_admin')
    expect(admins(app)).toBe(1)
    expect(auditRows(app)).toHaveLength(before + 1)
  })

  test.each(ATTACKS)('%s each other through two services on one file: one remains', async (_name, attack) => {
    const [one, two] = await Promise.all(fileStores(2).map((store) => opened({ store })))
    if (one === undefined || two === undefined) throw new Error('two services')
    const first = await one.admin()
    const second = await one.user('second')
    await first.send('PUT', `/api/users/${second.id}/admin`, { isAdmin: true })
    const elsewhere = two.client()
    elsewhere.cookie = second.cookie
    const outcomes = await Promise.all([first.send(...attack(second.id)), elsewhere.send(...attack(1))].map(outcomeOf))
    expect(outcomes.filter((outcome) => outcome.startsWith('20'))).toHaveLength(1)
    expect(admins(one)).toBe(1)
  })

  test('a trigger refuses to remove the last administrator, whatever the state before', async () => {
    const { store } = await opened()
    for (const change of ['is_admin = 0', 'is_active = 0', 'is_admin = 0, is_active = 0']) {
      expect(() => store.sqlite.prepare(`update users set ${change}`).run()).toThrow(/last_admin/)
    }
    expect(store.sqlite.prepare('update users set is_admin = 1, is_active = 1').run().changes).toBe(1)
  })
})

test('two services that start on one empty file create one administrator', async () => {
  const apps = await Promise.all(fileStores(2).map((store) => opened({ store })))
  expect(apps).toHaveLength(2)
  expect(apps[0]?.store.sqlite.prepare('select count(*) from users').pluck().get()).toBe(1)
  expect(auditRows(apps[0] ?? (await opened())).map(({ action }) => action)).toStrictEqual(['admin_bootstrapped'])
})

/** A store that runs a concurrent change just before the next atomic step. */
function interruptible(inner: SqliteStore) {
  let interruption: (() => void) | null = null
  const store: Store = {
    ...inner,
    sizeBytes: inner.sizeBytes,
    space: inner.space,
    version: inner.version,
    atomic: async (all) => {
      const now = interruption
      interruption = null
      now?.()
      await inner.atomic(all)
    },
  }
  return { store, before: (run: () => void) => (interruption = run) }
}

async function interruptibleApp() {
  const sqlite = openMemoryStore()
  const { store, before } = interruptible(sqlite)
  const app = await opened({ store: sqlite, ports: { store } })
  const admin = await app.admin()
  const anna = await app.user('anna')
  const deactivate = () => {
    const { changes } = sqlite.sqlite
      .prepare('update users set is_active = 0, session_epoch = session_epoch + 1 where id = ?')
      .run(anna.id)
    expect(changes).toBe(1)
  }
  return { app, admin, anna, before, deactivate, sqlite: sqlite.sqlite }
}

describe('a deactivation meanwhile', () => {
  test('is not undone by a change of the profile', async () => {
    const { admin, anna, before, deactivate, sqlite } = await interruptibleApp()
    before(deactivate)
    expect((await admin.send('PUT', `/api/users/${anna.id}`, { displayName: 'Anna' })).status).toBe(200)
    const row = sqlite.prepare('select is_active, display_name from users where id = ?').get(anna.id)
    expect(row).toStrictEqual({ is_active: 0, display_name: 'Anna' })
  })

  test('beats a login: no session, and the attempt is recorded as failed', async () => {
    const { app, before, deactivate } = await interruptibleApp()
    const client = app.client()
    before(deactivate)
    const audited = await auditedBy(app, async () => {
      const answer = await client.send('POST', '/api/auth/login', { username: 'anna', password: USER_PASSWORD })
      expect(await outcomeOf(answer)).toBe('401 invalid_credentials')
      expect(answer.headers.getSetCookie()).toStrictEqual([])
    })
    expect(audited).toStrictEqual(['login_failed'])
  })

  test('beats the creation of a token: reactivation brings none back', async () => {
    const { app, admin, anna, before, deactivate, sqlite } = await interruptibleApp()
    before(deactivate)
    const audited = await auditedBy(app, async () => {
      const body = { name: 'x', scopes: ['nodes:read'] }
      expect(await outcomeOf(anna.send('POST', '/api/tokens', body))).toBe('401 unauthenticated')
    })
    expect(audited).toStrictEqual([])
    await admin.send('PUT', `/api/users/${anna.id}`, { isActive: true })
    expect(sqlite.prepare('select count(*) from api_tokens').pluck().get()).toBe(0)
  })

  test('beats a change of the password', async () => {
    const { app, anna, before, deactivate } = await interruptibleApp()
    before(deactivate)
    const audited = await auditedBy(app, async () => {
      const body = { currentPassword: USER_PASSWORD, newPassword: 'quite another password' }
      expect(await outcomeOf(anna.send('POST', '/api/auth/change-password', body))).toBe('403 wrong_password')
    })
    expect(audited).toStrictEqual([])
  })
})

const ENDINGS: [string, string, string][] = [
  ['deactivated', 'is_active = 0, session_epoch = session_epoch + 1', '401 unauthenticated'],
  ['demoted', 'is_admin = 0', '403 admin_required'],
  ['given another password', 'session_epoch = session_epoch + 1', '401 unauthenticated'],
]

describe.each(ENDINGS)('an administrator who is %s meanwhile', (_how, set, outcome) => {
  test.each<[string, string, unknown?]>([
    ['POST', '/api/users', { username: 'backdoor', isAdmin: true }],
    ['PUT', '/api/users/2', { displayName: 'Anna' }],
    ['PUT', '/api/users/2', { isActive: false }],
    ['PUT', '/api/users/2/admin', { isAdmin: true }],
    ['PUT', '/api/users/2/permissions', { permissions: { nodes: { read: true, write: true } } }],
    ['POST', '/api/users/2/reset-password'],
    ['DELETE', '/api/users/2'],
  ])('changes nothing by %s %s', async (method, path, body) => {
    const { app, admin, before, sqlite } = await interruptibleApp()
    const second = await app.user('second')
    await admin.send('PUT', `/api/users/${second.id}/admin`, { isAdmin: true })
    before(() => sqlite.prepare(`update users set ${set} where id = ?`).run(second.id))
    const others = () => sqlite.prepare('select * from users where id <> ?').all(second.id)
    const grants = () => sqlite.prepare('select * from user_permissions where user_id <> ?').all(second.id)
    const was = [others(), grants()]
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(second.send(method, path, body))).toBe(outcome)
    })
    expect(audited).toStrictEqual([])
    expect([others(), grants()]).toStrictEqual(was)
  })
})

test('a token created while the password is reset is refused', async () => {
  const { anna, before, sqlite } = await interruptibleApp()
  before(() => sqlite.prepare('update users set session_epoch = session_epoch + 1 where id = ?').run(anna.id))
  expect(await outcomeOf(anna.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'] }))).toBe(
    '401 unauthenticated',
  )
  expect(sqlite.prepare('select count(*) from api_tokens').pluck().get()).toBe(0)
})

test('a password reset wins over a check of the old one', async () => {
  let meanwhile: (() => Promise<unknown>) | null = null
  const passwords: PasswordHasher = {
    hash: async (password) => `$2b$12$${password}`,
    verify: async (password, hash) => {
      const run = meanwhile
      meanwhile = null
      await run?.()
      return hash === `$2b$12$${password}`
    },
  }
  const app = await opened({ passwords })
  const admin = await app.admin()
  const anna = await app.user('anna')
  meanwhile = () => admin.send('POST', `/api/users/${anna.id}/reset-password`)
  const client = app.client()
  const answer = await client.send('POST', '/api/auth/login', { username: 'anna', password: USER_PASSWORD })
  expect(await outcomeOf(answer)).toBe('401 invalid_credentials')
  expect(client.cookie).toBeNull()
  expect(auditRows(app).slice(-2)).toMatchObject([{ action: 'password_reset' }, { action: 'login_failed' }])
})

test('an entry and its change are written together or not at all', async () => {
  const app = await opened()
  const admin = await app.admin()
  const anna = await app.user('anna')
  app.store.sqlite.exec(
    "create trigger no_entries before insert on audit_log begin select raise(abort, 'the disk is full'); end",
  )
  const tables = ['users', 'user_permissions', 'api_tokens']
  const state = () => JSON.stringify(tables.map((table) => app.store.sqlite.prepare(`select * from ${table}`).all()))
  const before = state()
  const changes = [
    admin.send('PUT', `/api/users/${anna.id}`, { displayName: 'x' }),
    admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: true }),
    admin.send('PUT', `/api/users/${anna.id}/permissions`, { permissions: { nodes: { read: false, write: false } } }),
    admin.send('POST', `/api/users/${anna.id}/reset-password`),
    admin.send('DELETE', `/api/users/${anna.id}`),
    admin.send('POST', '/api/users', { username: 'x', password: USER_PASSWORD }),
    anna.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'] }),
    anna.send('POST', '/api/auth/change-password', {
      currentPassword: USER_PASSWORD,
      newPassword: 'quite another one',
    }),
    app.client().send('POST', '/api/auth/login', { username: 'admin', password: ADMIN_PASSWORD }),
  ]
  for (const change of changes) expect(await outcomeOf(change)).toBe('500 internal')
  expect(state()).toBe(before)
})
