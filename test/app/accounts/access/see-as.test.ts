import { afterEach, beforeEach, expect, test } from 'vitest'
import { outcomeOf } from '../../../support/answers.ts'
import { auditRows, type Client } from '../../../support/app.ts'
import { createTestMesh, myInfo, packet, store, type TestMesh, text } from '../../../support/mesh/mesh.ts'

let mesh: TestMesh
let admin: Client
let anna: Client & { id: number }
beforeEach(async () => {
  mesh = await createTestMesh()
  admin = await mesh.app.admin()
  anna = await mesh.app.user('anna')
  await store(mesh.ingest, [
    myInfo,
    packet(text('on the first'), { channel: 0 }),
    packet(text('on the second'), { channel: 2 }),
  ])
  const scope = { channels: { read: [0], write: [0] }, direct: { read: false, write: false } }
  await admin.send('PUT', `/api/users/${anna.id}/permissions`, {
    permissions: { messages: { read: true, write: true }, nodes: { read: false, write: false } },
    scope,
  })
})
afterEach(() => mesh.app.close())

const json = async (answer: Promise<Response>) => Object(await (await answer).json())
const begin = async (): Promise<string> => (await json(admin.send('POST', `/api/users/${anna.id}/see-as`))).seeAs
const as = (client: Client, ticket: string, path: string, method = 'GET', body?: unknown) =>
  client.send(method, path, body, { 'x-see-as': ticket })

test('an administrator sees what a user sees, and no more; the start is recorded', async () => {
  const ticket = await begin()
  expect(auditRows(mesh.app).at(-1)).toEqual({
    action: 'view_started',
    username: 'admin',
    details: { userId: anna.id, username: 'anna' },
  })
  const status = await json(as(admin, ticket, '/api/auth/status'))
  expect([status.authenticated, status.user.username, status.permissions.messages]).toEqual([
    true,
    'anna',
    { read: true, write: false },
  ])
  const { messages } = await json(as(admin, ticket, '/api/messages'))
  expect(messages.map((message: { text: string }) => message.text)).toEqual(['on the first'])
  expect(await outcomeOf(as(admin, ticket, '/api/nodes'))).toBe('403 forbidden')
  expect(await outcomeOf(as(admin, ticket, '/api/users'))).toBe('403 admin_required')
  expect((await admin.send('GET', '/api/users')).status).toBe(200)
})

test('nothing is changed in the name of the user, and personal data stays hidden', async () => {
  const ticket = await begin()
  const entries = auditRows(mesh.app).length
  const forbidden: [string, string, unknown?][] = [
    ['POST', '/api/messages', { channel: 0, text: 'x' }],
    ['POST', '/api/auth/logout'],
    ['POST', '/api/auth/change-password', { currentPassword: 'x', newPassword: 'y' }],
    ['DELETE', `/api/users/${anna.id}`],
    ['GET', '/api/tokens'],
    ['GET', '/api/auth/sessions'],
    ['GET', '/api/auth/factors'],
    ['GET', '/api/events'],
  ]
  for (const [method, path, body] of forbidden) {
    expect([path, await outcomeOf(as(admin, ticket, path, method, body))]).toEqual([path, '403 see_as_refused'])
  }
  expect(auditRows(mesh.app).length).toBe(entries)
})

test('a ticket works for half an hour, only in the session that created it, and only for an administrator', async () => {
  const ticket = await begin()
  expect(await outcomeOf(as(mesh.app.client(), ticket, '/api/messages'))).toBe('403 see_as_refused')
  expect(await outcomeOf(as(anna, ticket, '/api/messages'))).toBe('403 see_as_refused')
  expect(await outcomeOf(as(await mesh.app.admin(), ticket, '/api/messages'))).toBe('403 see_as_refused')
  expect(await outcomeOf(as(admin, `${ticket}x`, '/api/messages'))).toBe('403 see_as_refused')
  expect(await outcomeOf(as(admin, 'null', '/api/messages'))).toBe('403 see_as_refused')
  mesh.app.clock.advance(30 * 60_000 - 1)
  expect(await outcomeOf(as(admin, ticket, '/api/messages'))).toBe('200')
  mesh.app.clock.advance(1)
  expect(await outcomeOf(as(admin, ticket, '/api/messages'))).toBe('403 see_as_refused')
})

test('it ends with the user, and is refused for administrators and with a token', async () => {
  const ticket = await begin()
  const { token } = await json(admin.send('POST', '/api/tokens', { name: 'x', scopes: ['messages:read'] }))
  const bearer = { authorization: `Bearer ${token}`, 'x-see-as': ticket }
  expect(await outcomeOf(mesh.app.client().send('GET', '/api/messages', undefined, bearer))).toBe('403 see_as_refused')
  await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: true })
  expect(await outcomeOf(as(admin, ticket, '/api/messages'))).toBe('403 see_as_refused')
  expect(await outcomeOf(admin.send('POST', `/api/users/${anna.id}/see-as`))).toBe('400 invalid_request')
  expect(await outcomeOf(admin.send('POST', '/api/users/999/see-as'))).toBe('404 user_not_found')
  await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: false })
  await admin.send('DELETE', `/api/users/${anna.id}`)
  expect(await outcomeOf(admin.send('POST', `/api/users/${anna.id}/see-as`))).toBe('409 user_inactive')
  expect(await outcomeOf(as(admin, ticket, '/api/messages'))).toBe('403 see_as_refused')
})

test('a preview shows only to its administrator what anonymous callers would see', async () => {
  const READ = { read: true, write: false }
  const access = {
    enabled: false,
    permissions: { dashboard: READ, nodes: READ, messages: READ, info: READ },
    channels: [2],
    positionPrecisionBits: 13,
    hideSilentAfterDays: null,
  }
  const { seeAs } = await json(admin.send('POST', '/api/public-access/preview', access))
  expect(auditRows(mesh.app).at(-1)).toMatchObject({ action: 'view_started', details: { publicAccess: access } })
  const answer = await as(admin, seeAs, '/api/messages')
  expect(answer.headers.get('cache-control')).toBe('no-store')
  const { messages } = Object(await answer.json())
  expect(messages.map((message: { text: string }) => message.text)).toEqual(['on the second'])
  expect(await json(as(admin, seeAs, '/api/auth/status'))).toMatchObject({ authenticated: false, user: null })
  expect(await outcomeOf(as(admin, seeAs, '/api/users'))).toBe('401 unauthenticated')
  expect(await outcomeOf(mesh.app.client().send('GET', '/api/messages'))).toBe('401 unauthenticated')
})
