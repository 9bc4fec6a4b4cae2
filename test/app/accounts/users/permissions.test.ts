import { readMigrationFiles } from 'drizzle-orm/migrator'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { migrationTags, openEmpty } from '../../../../src/node/migrations.ts'
import { MIGRATIONS_DIR } from '../../../../src/node/database.ts'
import { auditedBy, outcomeOf } from '../../../support/answers.ts'
import { auditRows, type Client, createTestApp, START, type TestApp, USER_PASSWORD } from '../../../support/app.ts'

let app: TestApp
let admin: Client
let anna: Client & { id: number }
beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
  anna = await app.user('anna')
})
afterEach(() => app.close())

const NONE = { read: false, write: false }
const READ = { read: true, write: false }
const FULL = { read: true, write: true }
const DEFAULTS = {
  dashboard: READ,
  nodes: READ,
  messages: READ,
  settings: NONE,
  configuration: NONE,
  info: READ,
  automation: NONE,
}

const put = (permissions: unknown, id = anna.id) => admin.send('PUT', `/api/users/${id}/permissions`, { permissions })
const read = async (id = anna.id) =>
  Object(await (await admin.send('GET', `/api/users/${id}/permissions`)).json()).permissions

test('a new user has the defaults of all seven resources', async () => {
  expect(await read()).toStrictEqual(DEFAULTS)
  const status = Object(await (await anna.send('GET', '/api/auth/status')).json())
  expect(status.permissions).toStrictEqual(DEFAULTS)
})

test('the named ones are set, the rest stays, and the entry has the changes', async () => {
  const answer = await put({ nodes: FULL, info: NONE, messages: READ })
  const expected = { ...DEFAULTS, nodes: FULL, info: NONE }
  expect([answer.status, Object(await answer.json()).permissions]).toStrictEqual([200, expected])
  expect(await read()).toStrictEqual(expected)
  expect(auditRows(app).at(-1)).toStrictEqual({
    action: 'permissions_updated',
    username: 'admin',
    details: {
      userId: anna.id,
      username: 'anna',
      before: { nodes: READ, info: READ },
      after: { nodes: FULL, info: NONE },
    },
  })
})

test('they apply at the next request', async () => {
  await put({ settings: FULL })
  const status = Object(await (await anna.send('GET', '/api/auth/status')).json())
  expect(status.permissions.settings).toStrictEqual(FULL)
})

test('an unchanged permission is not a change and not recorded', async () => {
  const audited = await auditedBy(app, async () => {
    for (const permissions of [{}, DEFAULTS, { nodes: READ }]) expect((await put(permissions)).status).toBe(200)
  })
  expect(audited).toStrictEqual([])
})

test.each([
  [{ nodes: { read: false, write: true } }],
  [{ nodes: READ, messages: { read: false, write: true } }],
  [{ nodes: { read: true } }],
  [{ nodes: { read: true, write: false, admin: true } }],
  [{ nodes: { read: 1, write: 0 } }],
  [{ nodes: null }],
  [{ nodes: true }],
  [{ users: FULL }],
  [{ Nodes: READ }],
  [JSON.parse('{"__proto__": {"read": true, "write": true}}')],
  [JSON.parse('{"constructor": {"read": true, "write": true}}')],
  [[]],
  [null],
  ['nodes'],
  [undefined],
])('%j is refused and changes nothing', async (permissions) => {
  const audited = await auditedBy(app, async () => {
    expect(await outcomeOf(put(permissions))).toBe('400 invalid_request')
  })
  expect(audited).toStrictEqual([])
  expect(await read()).toStrictEqual(DEFAULTS)
})

test('write without read is refused and names the resource', async () => {
  const { issues } = Object(await (await put({ nodes: { read: false, write: true } })).json())
  expect(issues).toStrictEqual([{ path: 'permissions.nodes', message: 'write needs read' }])
})

test('an administrator has all permissions, and they cannot be narrowed', async () => {
  expect(new Set(Object.values(await read(1)).map((grant) => JSON.stringify(grant)))).toStrictEqual(
    new Set([JSON.stringify(FULL)]),
  )
  const audited = await auditedBy(app, async () => {
    expect(await outcomeOf(put({ nodes: READ }, 1))).toBe('400 invalid_request')
    expect(await outcomeOf(put({ nodes: FULL }, 1))).toBe('200')
  })
  expect(audited).toStrictEqual([])
})

describe('who granted what, and when', () => {
  const RESOURCES = ['dashboard', 'nodes', 'messages', 'settings', 'configuration', 'info', 'automation']
  const held = async (id = anna.id) => Object(await (await admin.send('GET', `/api/users/${id}/permissions`)).json())
  /** The time of each grant, from the start, and who granted it. */
  const marks = async (id = anna.id): Promise<[string, number, number | null][]> => {
    const { grants } = await held(id)
    return grants.map((grant: { resource: string; grantedAt: number; grantedBy: number | null }) => [
      grant.resource,
      grant.grantedAt - START,
      grant.grantedBy,
    ])
  }
  const all = (at: number, by: number | null) => RESOURCES.map((resource) => [resource, at, by])

  test('is shown for each resource, with its row', async () => {
    const { permissions, grants } = await held()
    expect(permissions).toStrictEqual(DEFAULTS)
    expect(grants).toHaveLength(7)
    expect(grants[1]).toStrictEqual({
      id: 9,
      userId: anna.id,
      resource: 'nodes',
      canRead: true,
      canWrite: false,
      grantedAt: START,
      grantedBy: 1,
    })
  })

  test('may be sent back unchanged, and only the permissions count', async () => {
    const path = `/api/users/${anna.id}/permissions`
    const was = await held()
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(admin.send('PUT', path, was))).toBe('200')
      const other = [{ ...was.grants[0], canWrite: true }]
      expect(await outcomeOf(admin.send('PUT', path, { ...was, grants: other }))).toBe('400 invalid_request')
      expect(await outcomeOf(admin.send('PUT', path, { grants: was.grants }))).toBe('400 invalid_request')
    })
    expect(audited).toStrictEqual([])
    const permissions = { ...was.permissions, nodes: FULL }
    expect(await outcomeOf(admin.send('PUT', path, { ...was, permissions }))).toBe('200')
    expect((await held()).permissions).toStrictEqual(permissions)
  })

  test('is the service itself for the first administrator', async () => {
    expect(await marks(1)).toStrictEqual(all(0, null))
  })

  test('changes with the permission, and the row stays the same', async () => {
    const second = await app.user('second')
    await admin.send('PUT', `/api/users/${second.id}/admin`, { isAdmin: true })
    const ids = async () => (await held()).grants.map(({ id }: { id: number }) => id)
    const before = await ids()
    app.clock.advance(5000)
    const answer = await second.send('PUT', `/api/users/${anna.id}/permissions`, {
      permissions: { nodes: FULL, messages: READ },
    })
    const expected = all(0, 1).map((mark) => (mark[0] === 'nodes' ? ['nodes', 5000, second.id] : mark))
    expect(await marks()).toStrictEqual(expected)
    expect(await answer.json()).toStrictEqual(await held())
    expect(await ids()).toStrictEqual(before)
  })

  test('a promotion grants everything, and a demotion the defaults of a new user', async () => {
    app.clock.advance(1000)
    await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: true })
    expect(await marks()).toStrictEqual(all(1000, 1))
    const { grants } = await held()
    expect(grants.every((grant: { canRead: boolean; canWrite: boolean }) => grant.canRead && grant.canWrite)).toBe(true)
    app.clock.advance(1000)
    await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: false })
    expect(await marks()).toStrictEqual(all(2000, 1))
    expect((await held()).permissions).toStrictEqual(DEFAULTS)
  })

  test('a promotion at the same instant keeps a replacement from narrowing an administrator', async () => {
    const narrow = { nodes: NONE, messages: NONE, dashboard: NONE, info: NONE }
    const outcomes = await Promise.all([
      outcomeOf(admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: true })),
      outcomeOf(put(narrow)),
    ])
    expect(outcomes).toStrictEqual(['200', '400 invalid_request'])
    expect((await held()).grants.every(({ canWrite }: { canWrite: boolean }) => canWrite)).toBe(true)
    expect(auditRows(app).filter(({ action }) => action === 'permissions_updated')).toStrictEqual([])
  })

  test('a user created with permissions has them from the creator', async () => {
    app.clock.advance(1000)
    const made = await admin.send('POST', '/api/users', {
      username: 'berta',
      password: USER_PASSWORD,
      permissions: { nodes: FULL, info: NONE },
    })
    const { user } = Object(await made.json())
    expect(made.status).toBe(201)
    const permissions = { ...DEFAULTS, nodes: FULL, info: NONE }
    expect((await held(user.id)).permissions).toStrictEqual(permissions)
    expect(await marks(user.id)).toStrictEqual(all(1000, 1))
    expect(auditRows(app).at(-1)).toMatchObject({ action: 'user_created', details: { permissions } })
  })

  test('is unknown for an older row: nobody, at the time the user was created', () => {
    const tags = migrationTags(MIGRATIONS_DIR)
    const own = tags.findIndex((tag) => tag.endsWith('_permission_grants'))
    const old = openEmpty(MIGRATIONS_DIR, tags[own - 1] ?? '')
    old.exec(`insert into users (id, username, auth_provider, created_at) values (7, 'old', 'local', 77);
      insert into user_permissions (user_id, resource, can_read, can_write) values (7, 'nodes', 1, 1), (7, 'info', 1, 0)`)
    const later = readMigrationFiles({ migrationsFolder: MIGRATIONS_DIR }).slice(own)
    for (const { sql } of later) old.exec(sql.join('\n'))
    const rows = old.prepare('select * from user_permissions order by id').all()
    const both = { user_id: 7, can_read: 1, granted_at: 77, granted_by: null }
    expect(rows).toStrictEqual(
      [
        { id: 1, ...both, resource: 'nodes', can_write: 1 },
        { id: 2, ...both, resource: 'info', can_write: 0 },
      ].map((row) => expect.objectContaining(row)),
    )
    old.close()
  })
})
