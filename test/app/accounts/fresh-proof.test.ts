import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { outcomeOf } from '../../support/answers.ts'
import {
  ADMIN_PASSWORD,
  auditRows,
  type Client,
  createTestApp,
  type TestApp,
  USER_PASSWORD,
} from '../../support/app.ts'
import { codeAt } from '../../support/factors/oathtool.ts'

const QUARTER_MS = 15 * 60_000

let app: TestApp
let admin: Client
let annaId: number
beforeEach(async () => {
  app = await createTestApp()
  annaId = (await app.user('anna')).id
  admin = await app.admin()
})
afterEach(() => app.close())

const needs: readonly [method: string, path: () => string, body?: unknown][] = [
  ['POST', () => '/api/system/backup'],
  ['GET', () => '/api/system/backup/download/2026-01-01_000000'],
  ['POST', () => '/api/tokens', { name: 'one', scopes: ['nodes:read'] }],
  ['POST', () => '/api/auth/factors/totp'],
  ['DELETE', () => '/api/auth/factors/totp'],
  ['POST', () => '/api/auth/factors/recovery-codes'],
  ['PUT', () => `/api/users/${annaId}/admin`, { isAdmin: true }],
  ['POST', () => '/api/users', { username: 'bert', isAdmin: true }],
  ['POST', () => '/api/users', { username: 'bert', invite: true, email: 'bert@example.org' }],
  ['PUT', () => '/api/auth/email', { email: 'admin@example.org' }],
  ['PUT', () => `/api/users/${annaId}`, { email: 'thief@example.org' }],
  ['PUT', () => '/api/users/1', { user: { email: 'thief@example.org' } }],
  ['POST', () => `/api/users/${annaId}/reset-password`],
  ['POST', () => `/api/users/${annaId}/reset-second-factor`],
  ['POST', () => `/api/users/prepared`, { username: 'bert' }],
  ['POST', () => `/api/users/${annaId}/invitation`, {}],
  ['DELETE', () => `/api/users/${annaId}/link`],
  ['POST', () => '/api/auth/oidc/link', {}],
  ['DELETE', () => '/api/auth/oidc/link'],
  ['POST', () => '/api/system/restore/reapply', { ids: [1] }],
  ['PUT', () => '/api/public-access', {}],
  ['PUT', () => '/api/configuration/lora', {}],
  ['POST', () => '/api/configuration/transfer/channels/share', { channels: [0] }],
  ['POST', () => '/api/configuration/transfer/channels/preview', { url: 'x' }],
  ['PUT', () => '/api/configuration/transfer/channels', { url: 'x' }],
  ['POST', () => '/api/configuration/transfer/file/export', {}],
  ['POST', () => '/api/configuration/transfer/file/preview', { yaml: 'x' }],
  ['PUT', () => '/api/configuration/transfer/file', { yaml: 'x', sections: ['lora'] }],
]

test.each(needs)('%s %s needs a sign-in within the last 15 minutes, or a new proof', async (method, path, body) => {
  const send = () => outcomeOf(admin.send(method, path(), body))
  app.clock.advance(QUARTER_MS)
  const rows = auditRows(app).length
  expect(await send()).toBe('403 reauthentication_required')
  expect(auditRows(app).length).toBe(rows)
  expect((await admin.send('POST', '/api/auth/reauthenticate', { password: ADMIN_PASSWORD })).status).toBe(204)
  expect(await send()).not.toBe('403 reauthentication_required')
})

test('no proof is asked for within 15 minutes, or ever for requests that are not listed', async () => {
  app.clock.advance(QUARTER_MS - 1)
  expect(await outcomeOf(admin.send('GET', '/api/auth/reauthenticate'))).toBe('204')
  app.clock.advance(1)
  expect(await outcomeOf(admin.send('GET', '/api/auth/reauthenticate'))).toBe('403 reauthentication_required')
  for (const path of ['/api/users', '/api/audit', '/api/auth/factors', '/api/tokens']) {
    expect(await outcomeOf(admin.send('GET', path))).toBe('200')
  }
  expect(await outcomeOf(admin.send('POST', '/api/users', { username: 'carl' }))).toBe('201')
})

test('an administrator comes back only with a proof, another user and other fields without one', async () => {
  app.store.sqlite.prepare('update users set is_active = 0, is_admin = 1 where id = ?').run(annaId)
  app.clock.advance(QUARTER_MS)
  const change = (body: object) => outcomeOf(admin.send('PUT', `/api/users/${annaId}`, body))
  expect(await change({ isActive: true })).toBe('403 reauthentication_required')
  expect(await change({ displayName: 'Anna', email: null, isActive: false })).toBe('200')
  app.store.sqlite.prepare('update users set is_admin = 0 where id = ?').run(annaId)
  expect(await change({ isActive: true })).toBe('200')
})

test('requests with a token need no proof', async () => {
  const made = await admin.send('POST', '/api/tokens', { name: 'backups', scopes: ['backup'] })
  const { token } = Object(await made.json())
  app.clock.advance(10 * QUARTER_MS)
  const headers = { authorization: `Bearer ${token}` }
  expect(await outcomeOf(app.client().send('POST', '/api/system/backup', undefined, headers))).toBe(
    '501 unsupported_on_this_runtime',
  )
})

test('a sign-in while the clock was ahead does not stay fresh', async () => {
  app.store.sqlite.prepare('update sessions set authenticated_at = ?').run(app.clock.now + 3_600_000)
  expect(await outcomeOf(admin.send('GET', '/api/auth/reauthenticate'))).toBe('403 reauthentication_required')
})

test('in a session from before the upgrade the proof dates from the start of the session', async () => {
  app.store.sqlite.prepare('update sessions set authenticated_at = null, factors = null').run()
  expect(await outcomeOf(admin.send('GET', '/api/auth/reauthenticate'))).toBe('204')
  app.clock.advance(QUARTER_MS)
  expect(await outcomeOf(admin.send('GET', '/api/auth/reauthenticate'))).toBe('403 reauthentication_required')
})

describe('reauthentication', () => {
  test('by password gives a new cookie with the same expiry, and one audit entry', async () => {
    const before = admin.cookie
    app.clock.advance(QUARTER_MS)
    const rows = auditRows(app).length
    expect(await outcomeOf(admin.send('POST', '/api/auth/reauthenticate', { password: 'wrong' }))).toBe(
      '403 wrong_password',
    )
    expect((await admin.send('POST', '/api/auth/reauthenticate', { password: ADMIN_PASSWORD })).status).toBe(204)
    expect(auditRows(app).slice(rows)).toEqual([
      {
        action: 'login_failed',
        username: 'admin',
        details: { username: 'admin', provider: 'local', reason: 'reauthentication', way: 'password' },
      },
      { action: 'reauthenticated', username: 'admin', details: { way: 'password' } },
    ])
    expect(admin.cookie).not.toBe(before)
    const old = app.client()
    old.cookie = before
    expect(await outcomeOf(old.send('GET', '/api/users'))).toBe('401 unauthenticated')
    expect(
      app.store.sqlite
        .prepare(
          'select created_at, authenticated_at from sessions where user_id = 1 order by authenticated_at desc limit 1',
        )
        .all(),
    ).toEqual([{ created_at: app.clock.now - QUARTER_MS, authenticated_at: app.clock.now }])
  })

  test('by a code of the app works once', async () => {
    const { secret, enrolment } = Object(await (await admin.send('POST', '/api/auth/factors/totp')).json())
    const confirmed = { enrolment, code: codeAt(secret, app.clock.now) }
    expect((await admin.send('POST', '/api/auth/factors/totp/confirm', confirmed)).status).toBe(200)
    app.clock.advance(QUARTER_MS)
    const refused = await admin.send('GET', '/api/auth/reauthenticate')
    expect(Object(await refused.json()).ways).toEqual(['password', 'totp'])
    const proof = { code: codeAt(secret, app.clock.now) }
    const outcomes = await Promise.all(
      [0, 1, 2].map(() => outcomeOf(copyOf(admin).send('POST', '/api/auth/reauthenticate', proof))),
    )
    expect(outcomes.filter((outcome) => outcome === '204')).toHaveLength(1)
  })

  test('is limited, and reveals nothing about other users', async () => {
    for (let i = 0; i < 10; i++) {
      expect(await outcomeOf(admin.send('POST', '/api/auth/reauthenticate', { password: USER_PASSWORD }))).toBe(
        '403 wrong_password',
      )
    }
    expect(await outcomeOf(admin.send('POST', '/api/auth/reauthenticate', { password: ADMIN_PASSWORD }))).toBe(
      '429 rate_limited',
    )
  })

  function copyOf(client: Client): Client {
    const copy = app.client()
    copy.cookie = client.cookie
    return copy
  }
})
