import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { refreshViewer } from '../../../../src/app/accounts/access/viewer.ts'
import type { Ctx, Viewer } from '../../../../src/app/base/context.ts'
import { auditedBy, outcomeOf } from '../../../support/answers.ts'
import { WHOLE_VIEW } from '../../../../src/app/accounts/access/visible.ts'
import { WHOLE_SCOPE } from '../../../../src/shared/access/scope.ts'
import { auditRows, type Client, createTestApp, START, type TestApp } from '../../../support/app.ts'

const DAY = 86_400_000

let app: TestApp
let anna: Client & { id: number }
beforeEach(async () => {
  app = await createTestApp()
  anna = await app.user('anna', { nodes: { read: true, write: true } })
})
afterEach(() => app.close())

const make = (body: unknown, client: Client = anna) => client.send('POST', '/api/tokens', body)

async function made(scopes: string[], more: Record<string, unknown> = {}, client: Client = anna) {
  const answer = await make({ name: 'meter', scopes, ...more }, client)
  expect(answer.status).toBe(201)
  return Object(await answer.json())
}

const bearer = (token: string, path = '/api/auth/status', scheme = 'Bearer') =>
  app.request(path, { headers: { authorization: `${scheme} ${token}` } })
const statusOf = async (token: string, scheme?: string) =>
  Object(await (await bearer(token, '/api/auth/status', scheme)).json())

describe('creating a token', () => {
  test('shows it once, stores its SHA-256, and records how it begins', async () => {
    const { token, secretShown, ...rest } = await made(['nodes:read', 'nodes:write'], { expiresInDays: 30 })
    expect(secretShown).toBe(true)
    expect(token).toMatch(/^mm_[\w-]{43}$/)
    const prefix = token.slice(0, 9)
    const listed = {
      id: 1,
      name: 'meter',
      prefix,
      scopes: ['nodes:read', 'nodes:write'],
      createdAt: START,
      expiresAt: START + 30 * DAY,
      lastUsedAt: null,
      heldAt: null,
    }
    expect(rest).toStrictEqual(listed)
    expect(await (await anna.send('GET', '/api/tokens')).json()).toStrictEqual({ tokens: [listed] })
    expect(auditRows(app).at(-1)).toStrictEqual({
      action: 'token_created',
      username: 'anna',
      details: { name: 'meter', prefix, scopes: ['nodes:read', 'nodes:write'], expiresAt: START + 30 * DAY },
    })
    const dump = JSON.stringify([
      app.store.sqlite.prepare('select * from api_tokens').all(),
      app.store.sqlite.prepare('select * from audit_log').all(),
      app.logged,
    ])
    expect(dump).not.toContain(token)
    expect(dump).not.toContain(token.slice(3))
  })

  test.each([
    [{}],
    [{ name: 'x' }],
    [{ name: 'x', scopes: [] }],
    [{ name: '', scopes: ['nodes:read'] }],
    [{ name: 'x'.repeat(101), scopes: ['nodes:read'] }],
    [{ name: 'a\nb', scopes: ['nodes:read'] }],
    [{ name: 'x', scopes: ['nodes:read', 'nodes:read'] }],
    [{ name: 'x', scopes: ['users:read'] }],
    [{ name: 'x', scopes: ['nodes'] }],
    [{ name: 'x', scopes: ['*'] }],
    [{ name: 'x', scopes: 'nodes:read' }],
    [{ name: 'x', scopes: ['nodes:read'], expiresInDays: 0 }],
    [{ name: 'x', scopes: ['nodes:read'], expiresInDays: 3651 }],
    [{ name: 'x', scopes: ['nodes:read'], expiresInDays: 1.5 }],
    [{ name: 'x', scopes: ['nodes:read'], userId: 1 }],
    [{ name: 'x', scopes: ['nodes:read'], token: 'mm_mine' }],
  ])('%j is refused', async (body) => {
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(make(body))).toBe('400 invalid_request')
    })
    expect(audited).toStrictEqual([])
  })

  test.each([
    [{}, START + 90 * DAY],
    [{ expiresInDays: 3650 }, START + 3650 * DAY],
    [{ expiresInDays: null }, null],
  ])('with %j sets its expiry to %j: "never" must be explicit', async (more, expiresAt) => {
    expect((await made(['nodes:read'], more)).expiresAt).toBe(expiresAt)
    expect(auditRows(app).at(-1)?.details).toMatchObject({ expiresAt })
  })

  test('is refused beyond fifty, also at the same instant, until one is revoked', async () => {
    for (let n = 0; n < 48; n++) await made(['nodes:read'])
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => outcomeOf(make({ name: 'x', scopes: ['nodes:read'] }))))
    expect(outcomes.toSorted()).toStrictEqual(['201', '201', '409 too_many_tokens', '409 too_many_tokens'])
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(make({ name: 'x', scopes: ['nodes:read'] }))).toBe('409 too_many_tokens')
    })
    expect(audited).toStrictEqual([])
    const { tokens } = Object(await (await anna.send('GET', '/api/tokens')).json())
    expect(tokens).toHaveLength(50)
    expect((await anna.send('DELETE', `/api/tokens/${tokens[0].id}`)).status).toBe(204)
    await made(['nodes:read'])
    await made(['nodes:read'], {}, await app.admin())
  })

  test('for backups is for administrators', async () => {
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(make({ name: 'x', scopes: ['backup'] }))).toBe('403 admin_required')
    })
    expect(audited).toStrictEqual([])
    await made(['backup'], {}, await app.admin())
  })

  test('for deliveries needs the permission to change the configuration', async () => {
    const audited = await auditedBy(app, async () => {
      const answer = await make({ name: 'x', scopes: ['nodes:write', 'ingest'] })
      expect(answer.status).toBe(403)
      expect(await answer.json()).toMatchObject({
        code: 'forbidden',
        required: { resource: 'configuration', action: 'write' },
      })
    })
    expect(audited).toStrictEqual([])
    await made(['ingest'], {}, await app.admin())
    await made(['ingest'], {}, await app.user('keeper', { configuration: { read: true, write: true } }))
  })

  test('for metrics needs the permission to read telemetry', async () => {
    const client = await app.user('blind', { info: { read: false, write: false } })
    expect(await outcomeOf(make({ name: 'x', scopes: ['metrics'] }, client))).toBe('403 forbidden')
    await made(['metrics'])
  })

  test('with a token is refused, like listing and revoking', async () => {
    const { token, id } = await made(['nodes:read'])
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ name: 'x', scopes: ['nodes:read'] })
    const answers = [
      app.request('/api/tokens', { method: 'POST', headers, body }),
      app.request('/api/tokens', { headers }),
      app.request(`/api/tokens/${id}`, { method: 'DELETE', headers }),
      app.request('/api/auth/sessions', { headers }),
    ]
    for (const answer of answers) expect(await outcomeOf(answer)).toBe('403 forbidden')
  })
})

describe('using a token', () => {
  test("acts as its owner within its scopes, never beyond the owner's own permissions", async () => {
    const { token } = await made(['nodes:read', 'messages:write', 'settings:read'])
    expect(await statusOf(token)).toMatchObject({
      authenticated: true,
      user: { username: 'anna' },
      permissions: {
        nodes: { read: true, write: false },
        messages: { read: false, write: false },
        settings: { read: false, write: false },
        dashboard: { read: false, write: false },
      },
    })
    const admin = await app.admin()
    await admin.send('PUT', `/api/users/${anna.id}/permissions`, {
      permissions: { nodes: { read: false, write: false } },
    })
    expect((await statusOf(token)).permissions.nodes).toStrictEqual({ read: false, write: false })
  })

  test('compares the scheme without regard to case, the token exactly', async () => {
    const { token } = await made(['nodes:read'])
    expect((await statusOf(token, 'bearer')).authenticated).toBe(true)
    expect((await statusOf(token, 'Bearer  ')).authenticated).toBe(true)
    const letter = token.search(/[a-z][\w-]*$/)
    const wrong = [
      token.slice(0, letter) + token.charAt(letter).toUpperCase() + token.slice(letter + 1),
      `MM_${token.slice(3)}`,
      token.slice(0, -1),
      `${token}x`,
      `${token} x`,
      `${token}, ${token}`,
      token.slice(3),
      '',
    ]
    for (const text of wrong) expect((await statusOf(text)).authenticated, text).toBe(false)
    expect((await statusOf(token, 'Basic')).authenticated).toBe(false)
    expect((await statusOf(token, 'Token')).authenticated).toBe(false)
  })

  test('the cookie is ignored if there is an Authorization header', async () => {
    const { token } = await made(['nodes:read'])
    const cookie = String(anna.cookie)
    const status = async (authorization: string) =>
      Object(await (await app.request('/api/auth/status', { headers: { cookie, authorization } })).json())
    for (const wrong of ['Bearer mm_x', 'Bearer', 'Basic YTpi', `Bearer ${token.slice(0, -1)}`]) {
      expect(await status(wrong), wrong).toMatchObject({ authenticated: false, user: null })
    }
    expect((await status(`Bearer ${token}`)).permissions.dashboard.read).toBe(false)
  })

  test('ends at its expiry to the millisecond', async () => {
    const { token } = await made(['nodes:read'], { expiresInDays: 1 })
    app.clock.advance(DAY - 1)
    expect((await statusOf(token)).authenticated).toBe(true)
    app.clock.advance(1)
    expect((await statusOf(token)).authenticated).toBe(false)
  })

  test('writes its last use at most once in five minutes', async () => {
    const { token } = await made(['nodes:read'])
    const lastUsed = () => app.store.sqlite.prepare('select last_used_at from api_tokens').pluck().get()
    await bearer(token)
    expect(lastUsed()).toBe(START)
    app.clock.advance(299_999)
    await bearer(token)
    expect(lastUsed()).toBe(START)
    app.clock.advance(1)
    await bearer(token)
    expect(lastUsed()).toBe(START + 300_000)
  })

  test('loses what a demoted owner loses', async () => {
    const admin = await app.admin()
    await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: true })
    const { token } = await made(['configuration:write', 'configuration:read', 'backup'])
    expect((await statusOf(token)).permissions.configuration.write).toBe(true)
    await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: false })
    expect((await statusOf(token)).permissions.configuration.write).toBe(false)
  })
})

describe('permissions that its owner has lost since', () => {
  const grant = async (permissions: object) =>
    (await app.admin()).send('PUT', `/api/users/${anna.id}/permissions`, { permissions })
  const FULL = { read: true, write: true }
  const NONE = { read: false, write: false }

  test.each([
    ['ingest', 'configuration', 'POST', '/api/ingest', '403 forbidden'],
    ['metrics', 'info', 'GET', '/api/metrics', '403 forbidden'],
  ])('%s is lost with %s and returns with it', async (scope, resource, method, path, refused) => {
    await grant({ [resource]: FULL })
    const { token } = await made([scope])
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const ask = () => outcomeOf(app.request(path, { method, headers, ...(method === 'POST' && { body: '{}' }) }))
    const granted = method === 'POST' ? '400 invalid_request' : '200'
    expect(await ask()).toBe(granted)
    await grant({ [resource]: NONE })
    expect(await ask()).toBe(refused)
    await grant({ [resource]: FULL })
    expect(await ask()).toBe(granted)
  })

  test('backups are lost with the role', async () => {
    const admin = await app.admin()
    await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: true })
    const { token } = await made(['backup', 'ingest'])
    await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: false })
    expect(await outcomeOf(bearer(token, '/api/system/backup'))).toBe('403 admin_required')
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    expect(await outcomeOf(app.request('/api/ingest', { method: 'POST', headers, body: '{}' }))).toBe('403 forbidden')
  })
})

describe('revoking a token', () => {
  test('takes effect at once, is recorded once, and works only for one’s own', async () => {
    const { token, id } = await made(['nodes:read'])
    const admin = await app.admin()
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(admin.send('DELETE', `/api/tokens/${id}`))).toBe('404 token_not_found')
      expect(await outcomeOf(anna.send('DELETE', '/api/tokens/99'))).toBe('404 token_not_found')
      expect(await outcomeOf(anna.send('DELETE', '/api/tokens/x'))).toBe('400 invalid_request')
      expect((await statusOf(token)).authenticated).toBe(true)
      expect(await outcomeOf(anna.send('DELETE', `/api/tokens/${id}`))).toBe('204')
      expect(await outcomeOf(anna.send('DELETE', `/api/tokens/${id}`))).toBe('404 token_not_found')
    })
    expect(audited).toStrictEqual(['token_revoked'])
    expect(auditRows(app).at(-1)?.details).toStrictEqual({ tokenId: id, name: 'meter', prefix: token.slice(0, 9) })
    expect((await statusOf(token)).authenticated).toBe(false)
  })

  test('users see only their own tokens', async () => {
    await made(['nodes:read'])
    const admin = await app.admin()
    expect(await (await admin.send('GET', '/api/tokens')).json()).toStrictEqual({ tokens: [] })
  })
})

describe('a refusal names what is missing', () => {
  const detailOf = async (answer: Response | Promise<Response>) => {
    const { code, detail, title } = Object(await (await answer).json())
    return [code, title, detail]
  }
  const FORBIDDEN = ['forbidden', 'Permission missing'] as const
  const METRICS = 'A token with the scope metrics needs an owner with read access to info'

  test.each([
    ['/api/system/backup', [...FORBIDDEN, 'This API token lacks the scope backup']],
    ['/api/metrics', [...FORBIDDEN, 'This API token lacks the scope metrics']],
    ['/api/settings', [...FORBIDDEN, 'This API token lacks the scope settings:read']],
    [
      '/api/users',
      ['admin_required', 'Administrators only', "This needs an administrator's session; an API token is not enough"],
    ],
  ])("for an administrator's token without the scope of %s", async (path, refusal) => {
    const { token } = await made(['nodes:read'], {}, await app.admin())
    expect(await detailOf(bearer(token, path))).toStrictEqual(refusal)
  })

  test.each([
    ['/api/system/backup', 'admin_required', 'A token with the scope backup needs an administrator'],
    ['/api/metrics', 'forbidden', METRICS],
    ['/api/settings', 'forbidden', 'This needs read access to settings'],
    ['/api/nodes', 'forbidden', 'This API token lacks the scope nodes:read'],
  ])('for the token of a user without the permission, at %s', async (path, code, detail) => {
    await (
      await app.admin()
    ).send('PUT', `/api/users/${anna.id}/permissions`, { permissions: { info: { read: false, write: false } } })
    const { token } = await made(['messages:read', 'settings:read'])
    expect(await detailOf(bearer(token, path))).toMatchObject([code, expect.any(String), detail])
  })

  test('an open stream of events loses the scopes that the owner loses', async () => {
    const admin = await app.admin()
    await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: true })
    const { token } = await made(['backup', 'nodes:read'])
    const ctx: Ctx = { ...app.ports, viewer: null, ip: null, requestId: 'test' }
    const { user } = await statusOf(token)
    const held = (await statusOf(token)).permissions
    const viewer: Viewer = {
      user,
      permissions: held,
      scope: WHOLE_SCOPE,
      view: WHOLE_VIEW,
      mustChangePassword: false,
      secondFactor: { isSetUp: false, resetAt: null },
      language: null,
      units: null,
      credential: { kind: 'token', tokenId: 1, scopes: ['backup', 'nodes:read'], held },
    }
    await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: false })
    const now = await refreshViewer(ctx, viewer)
    expect(now).toMatchObject({ user: { isAdmin: false }, credential: { scopes: ['nodes:read'] } })
  })
})
