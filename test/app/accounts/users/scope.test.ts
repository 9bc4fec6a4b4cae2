import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { outcomeOf } from '../../../support/answers.ts'
import { auditRows, type Client, createTestApp, type TestApp } from '../../../support/app.ts'

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
const NEW = { channels: 'all', direct: NONE }
const GUEST = { channels: { read: [0], write: [] }, direct: NONE }

const path = () => `/api/users/${anna.id}/permissions`
const put = (scope: unknown, permissions: unknown = {}) => admin.send('PUT', path(), { permissions, scope })
const stored = async () => Object(await (await admin.send('GET', path())).json()).scope
const seen = async (client: Client) => Object(await (await client.send('GET', '/api/auth/status')).json()).scope

describe('the scope of a user', () => {
  test('is everything for administrators, all but direct messages for new users, and nothing for anonymous visitors', async () => {
    expect([await seen(anna), await stored()]).toEqual([NEW, NEW])
    expect(await seen(admin)).toEqual({ channels: 'all', direct: { read: true, write: true } })
    expect(await seen(app.client())).toEqual({ channels: { read: [], write: [] }, direct: NONE })
  })

  test('is set beside the permissions, applies at the next request, and is recorded before and after', async () => {
    const answer = await put(GUEST, { nodes: { read: true, write: true } })
    expect([answer.status, Object(await answer.json()).scope]).toEqual([200, GUEST])
    expect([await stored(), await seen(anna)]).toEqual([GUEST, GUEST])
    expect(auditRows(app).at(-1)).toEqual({
      action: 'permissions_updated',
      username: 'admin',
      details: {
        userId: anna.id,
        username: 'anna',
        before: { nodes: { read: true, write: false }, scope: NEW },
        after: { nodes: { read: true, write: true }, scope: GUEST },
      },
    })
  })

  test('is given with a new user, and an administrator is not made with a narrower one', async () => {
    const body = { username: 'karl', scope: GUEST }
    const made = await admin.send('POST', '/api/users', body)
    const { user } = Object(await made.json())
    const path = `/api/users/${user.id}/permissions`
    expect([made.status, Object(await (await admin.send('GET', path)).json()).scope]).toEqual([201, GUEST])
    expect(auditRows(app).at(-1)).toMatchObject({ action: 'user_created', details: { username: 'karl', scope: GUEST } })
    expect(await outcomeOf(admin.send('POST', '/api/users', { ...body, username: 'emma', isAdmin: true }))).toBe(
      '400 invalid_request',
    )
  })

  test('stays the same if a body omits it, and setting the same scope is not a change', async () => {
    await put(GUEST)
    const entries = auditRows(app).length
    expect((await put(undefined)).status).toBe(200)
    expect((await put({ channels: { read: [0, 0], write: [] }, direct: NONE })).status).toBe(200)
    expect([await stored(), auditRows(app).length]).toEqual([GUEST, entries])
  })

  test.each([
    ['some'],
    [{ channels: 'none', direct: NONE }],
    [{ channels: 'all' }],
    [{ channels: { read: [0], write: [1] }, direct: NONE }],
    [{ channels: { read: [-1], write: [] }, direct: NONE }],
    [{ channels: { read: [0.5], write: [] }, direct: NONE }],
    [{ channels: { read: Array.from({ length: 65 }, (_, n) => n), write: [] }, direct: NONE }],
    [{ channels: 'all', direct: { read: false, write: true } }],
    [{ channels: 'all', direct: NONE, more: 1 }],
  ])('%j is refused', async (scope) => {
    expect(await outcomeOf(put(scope))).toBe('400 invalid_request')
    expect(await stored()).toEqual(NEW)
  })

  test('cannot be narrowed for an administrator, and is reset to that of a new user by a demotion', async () => {
    await put({ channels: 'all', direct: { read: true, write: true } })
    await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: true })
    expect(await outcomeOf(put(GUEST))).toBe('400 invalid_request')
    await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: false })
    expect(await stored()).toEqual(NEW)
  })

  test('applies to the tokens of the user', async () => {
    const { token } = Object(
      await (await anna.send('POST', '/api/tokens', { name: 'x', scopes: ['messages:read'] })).json(),
    )
    await put(GUEST)
    const answer = await app.client().send('GET', '/api/auth/status', undefined, { Authorization: `Bearer ${token}` })
    expect(Object(await answer.json()).scope).toEqual(GUEST)
  })
})
