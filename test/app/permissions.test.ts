import { afterEach, beforeEach, expect, test } from 'vitest'
import { auditedBy, outcomeOf } from '../support/answers.ts'
import { auditRows, type Client, createTestApp, type TestApp } from '../support/app.ts'

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

test('what is named is set, the rest stays, and the entry holds what changed', async () => {
  const answer = await put({ nodes: FULL, info: NONE, messages: READ })
  const expected = { ...DEFAULTS, nodes: FULL, info: NONE }
  expect([answer.status, await answer.json()]).toStrictEqual([200, { permissions: expected }])
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

test('they bite at the next request', async () => {
  await put({ settings: FULL })
  const status = Object(await (await anna.send('GET', '/api/auth/status')).json())
  expect(status.permissions.settings).toStrictEqual(FULL)
})

test('what is so already is no change and no entry', async () => {
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

test('write without read says which resource it is about', async () => {
  const { issues } = Object(await (await put({ nodes: { read: false, write: true } })).json())
  expect(issues).toStrictEqual([{ path: 'permissions.nodes', message: 'write needs read' }])
})

test('an administrator holds everything and cannot be narrowed', async () => {
  expect(new Set(Object.values(await read(1)).map((grant) => JSON.stringify(grant)))).toStrictEqual(
    new Set([JSON.stringify(FULL)]),
  )
  const audited = await auditedBy(app, async () => {
    expect(await outcomeOf(put({ nodes: READ }, 1))).toBe('400 invalid_request')
    expect(await outcomeOf(put({ nodes: FULL }, 1))).toBe('200')
  })
  expect(audited).toStrictEqual([])
})
