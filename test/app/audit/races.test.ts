import { afterEach, beforeEach, expect, test } from 'vitest'
import { replaceBackupSettings } from '../../../src/app/system/backup/settings.ts'
import { type SqliteStore } from '../../../src/node/database.ts'
import { auditRows, type Client, createTestApp, START, type TestApp } from '../../support/app.ts'
import { SCHEDULE } from '../../support/automation.ts'
import { openMemoryStore } from '../../support/memory-store.ts'

let app: TestApp
let admin: Client
beforeEach(async () => {
  app = await createTestApp({ store: slowToWrite(openMemoryStore()) })
  admin = await app.admin()
})
afterEach(() => app.close())

/** As over a network: other requests still read the state before the write. */
function slowToWrite(store: SqliteStore): SqliteStore {
  return {
    ...store,
    atomic: async (all) => {
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
      await store.atomic(all)
    },
  }
}

const CHANGES: [action: string, prepare: (id: number) => Promise<[method: string, path: string, body?: unknown]>][] = [
  ['user_updated', async (id) => ['PUT', `/api/users/${id}`, { username: 'anne', displayName: 'Anne' }]],
  [
    'user_updated',
    async (id) => {
      await admin.send('DELETE', `/api/users/${id}`)
      return ['PUT', `/api/users/${id}`, { isActive: true }]
    },
  ],
  ['user_deleted', async (id) => ['DELETE', `/api/users/${id}`]],
  ['admin_status_changed', async (id) => ['PUT', `/api/users/${id}/admin`, { isAdmin: true }]],
  [
    'permissions_updated',
    async (id) => [
      'PUT',
      `/api/users/${id}/permissions`,
      { permissions: { nodes: { read: false, write: false }, settings: { read: true, write: true } } },
    ],
  ],
  ['settings_updated', async () => ['PUT', '/api/settings', { nodeActiveSeconds: 3600, messageRetentionDays: 30 }]],
  [
    'token_revoked',
    async () => {
      const made = await admin.send('POST', '/api/tokens', { name: 'one', scopes: ['metrics'] })
      return ['DELETE', `/api/tokens/${Object(await made.json()).id}`]
    },
  ],
  [
    'session_revoked',
    async () => {
      await app.admin()
      const { sessions } = Object(await (await admin.send('GET', '/api/auth/sessions')).json())
      const other = sessions.find((one: { current: boolean }) => !one.current)
      return ['DELETE', `/api/auth/sessions/${other.id}`]
    },
  ],
  [
    'session_revoked',
    async () => {
      await app.admin()
      return ['DELETE', '/api/auth/sessions']
    },
  ],
  ['logout', async () => ['POST', '/api/auth/logout']],
  [
    'node_updated',
    async () => {
      app.store.sqlite.exec('insert into nodes (node_num, first_heard, last_heard) values (1, 1, 1)')
      return ['PUT', '/api/nodes/1', { isFavorite: true, notes: 'on the roof' }]
    },
  ],
  [
    'node_deleted',
    async () => {
      app.store.sqlite.exec('insert into nodes (node_num, first_heard, last_heard) values (1, 1, 1)')
      return ['DELETE', '/api/nodes/1']
    },
  ],
  ['automation_updated', async () => ['PUT', `/api/automation/${await createRule()}`, { ...SCHEDULE, enabled: false }]],
  ['automation_updated', async () => ['DELETE', `/api/automation/${await createRule()}`]],
]

async function createRule(): Promise<number> {
  const made = await admin.send('POST', '/api/automation', SCHEDULE)
  return Object(await made.json()).automation.id
}

const actionsFrom = (first: number) =>
  auditRows(app)
    .slice(first)
    .map((row) => row.action)

test.each(CHANGES)('%s: ten identical changes at once are recorded as one (%#)', async (action, prepare) => {
  const { id } = await app.user('anna')
  const [method, path, body] = await prepare(id)
  const before = auditRows(app).length
  await Promise.all(Array.from({ length: 10 }, () => admin.send(method, path, body)))
  expect(actionsFrom(before)).toStrictEqual([action])
})

test('ten identical backup schedules at once are recorded as one, different ones each', async () => {
  const context = { store: app.store, ip: null, requestId: null, viewer: null, now: () => START }
  const before = auditRows(app).length
  const replace = (maxBackups: number) =>
    replaceBackupSettings(context, { enabled: true, maxBackups, backupTime: '04:00' })
  await Promise.all(Array.from({ length: 10 }, () => replace(3)))
  expect(actionsFrom(before)).toStrictEqual(['backup_settings_updated'])
  await Promise.all([replace(4), replace(5)])
  expect(actionsFrom(before)).toHaveLength(3)
})
