import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type SqliteStore } from '../../../../src/node/database.ts'
import { ADMIN_PASSWORD, type Client, createTestApp, type TestApp } from '../../../support/app.ts'
import { openMemoryStore } from '../../../support/memory-store.ts'

const CREDENTIALS = { username: 'admin', password: ADMIN_PASSWORD }

let app: TestApp
beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

const isSignedIn = async (client: Client) => (await client.send('GET', '/api/auth/sessions')).status === 200

describe('the cookie', () => {
  const TOKEN = String.raw`[\w-]{43}\.[\w-]{43}`

  test.each([
    ['http://localhost', {}, `^mesh_session=${TOKEN}; Max-Age=2592000; Path=/; HttpOnly; SameSite=Lax$`],
    [
      'https://a.example',
      {},
      `^__Host-mesh_session=${TOKEN}; Max-Age=2592000; Path=/; HttpOnly; Secure; SameSite=Lax$`,
    ],
    ['http://localhost', { COOKIE_SECURE: 'true' }, `^__Host-mesh_session=${TOKEN}; .*; Secure; `],
    [
      'http://localhost',
      { PUBLIC_URL: 'HTTPS://mesh.example.org/radio' },
      `^__Host-mesh_session.radio=${TOKEN}; Max-Age=2592000; Path=/; HttpOnly; Secure; SameSite=Lax$`,
    ],
    [
      'http://localhost',
      { PUBLIC_URL: 'http://mesh.example.org/my_mesh/caf%C3%A9/a.b/' },
      `^mesh_session.my%5Fmesh.caf%25C3%25A9.a%2Eb=${TOKEN}; Max-Age=2592000; Path=/; HttpOnly; SameSite=Lax$`,
    ],
    [
      'http://localhost',
      { PUBLIC_URL: 'http://mesh.example.org' },
      `^mesh_session=${TOKEN}; Max-Age=2592000; Path=/; HttpOnly; SameSite=Lax$`,
    ],
    [
      'http://localhost',
      { COOKIE_SECURE: 'false', PUBLIC_URL: 'https://mesh.example.org' },
      `^mesh_session=${TOKEN}; Max-Age=2592000; Path=/; HttpOnly; SameSite=Lax$`,
    ],
    [
      'https://a.example',
      { COOKIE_SECURE: 'false' },
      `^mesh_session=${TOKEN}; Max-Age=2592000; Path=/; HttpOnly; SameSite=Lax$`,
    ],
    ['http://localhost', { SESSION_ABSOLUTE_TIMEOUT_SECONDS: '31536000' }, 'Max-Age=31536000;'],
  ])('at %s with %j matches %s at sign-in, and when cleared at sign-out', async (origin, env, pattern) => {
    app.close()
    app = await createTestApp({ env })
    app.origin = origin
    const client = app.client()
    const [cookie] = (await client.send('POST', '/api/auth/login', CREDENTIALS)).headers.getSetCookie()
    expect(cookie).toMatch(new RegExp(pattern))
    expect(await isSignedIn(client)).toBe(true)
    const [cleared] = (await client.send('POST', '/api/auth/logout')).headers.getSetCookie()
    expect(cleared).toMatch(/=; Max-Age=0; Path=\//)
    expect(cleared?.split('=')[0]).toBe(cookie?.split('=')[0])
    expect(cleared?.includes('Secure')).toBe(cookie?.includes('Secure'))
  })

  test('without its prefix signs nobody in over HTTPS, even with a valid token', async () => {
    const client = await app.admin()
    expect(await isSignedIn(client)).toBe(true)
    app.origin = 'https://mesh.example.org'
    expect(await isSignedIn(client)).toBe(false)
    client.cookie = `__Host-${client.cookie}`
    expect(await isSignedIn(client)).toBe(true)
  })

  test('with a tampered, cut, swapped or foreign token is anonymous and never an error', async () => {
    const { cookie } = await app.admin()
    const [name, value = ''] = String(cookie).split('=')
    const [token = '', mac = ''] = value.split('.')
    const last = (text: string, by: string) => text.slice(0, -1) + by
    const values = [
      ...[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
        .filter((character) => !mac.endsWith(character))
        .map((character) => `${token}.${last(mac, character)}`),
      `${last(token, token.endsWith('A') ? 'B' : 'A')}.${mac}`,
      `${mac}.${token}`,
      token,
      `${token}.`,
      `${value}.${mac}`,
      `${value}=`,
      `${value}%00`,
      '%',
      '%ff%fe',
      '',
      'x'.repeat(8000),
      `"${value}`,
    ]
    for (const wrong of values) {
      const answer = await app.request('/api/auth/status', { headers: { cookie: `${name}=${wrong}` } })
      expect(answer.status, wrong).toBe(200)
      expect(await answer.json(), wrong).toMatchObject({ authenticated: false })
    }
  })

  test('planted by somebody else is not taken over at sign-in', async () => {
    const planted = await app.user('mallory')
    const victim = app.client()
    victim.cookie = planted.cookie
    expect((await victim.send('POST', '/api/auth/login', CREDENTIALS)).status).toBe(200)
    expect(victim.cookie).not.toBe(planted.cookie)
    const status = await planted.send('GET', '/api/auth/status')
    expect(await status.json()).toMatchObject({ authenticated: false })
  })

  test('gets a new token at each sign-in, which ends the previous one', async () => {
    const client = await app.admin()
    const first = client.cookie
    await client.send('POST', '/api/auth/login', CREDENTIALS)
    const second = client.cookie
    expect(second).not.toBe(first)
    client.cookie = first
    expect(await isSignedIn(client)).toBe(false)
    client.cookie = second
    expect(await isSignedIn(client)).toBe(true)
  })

  test('survives a failed sign-in', async () => {
    const client = await app.admin()
    await client.send('POST', '/api/auth/login', { ...CREDENTIALS, password: 'wrong' })
    expect(await isSignedIn(client)).toBe(true)
  })

  test('only the SHA-256 of the token is stored, and nothing of it is logged or audited', async () => {
    const client = await app.admin()
    const token = /=([\w-]+)\./.exec(String(client.cookie))?.[1] ?? ''
    expect(token).toHaveLength(43)
    // A virtual table keeps its contents in other tables.
    const isKept = "type = 'table' and sql not like 'create virtual%'"
    const tables = app.store.sqlite.prepare(`select name from sqlite_master where ${isKept}`).pluck().all()
    const dump = tables.flatMap((name) => app.store.sqlite.prepare(`select * from "${String(name)}"`).all())
    expect(JSON.stringify(dump)).not.toContain(token)
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token))
    expect(JSON.stringify(dump)).toContain(Buffer.from(digest).toString('hex'))
    expect(app.logged.join('\n')).not.toContain(token)
  })

  test('anonymous requests create no session or other row; health and bearer requests set no cookie', async () => {
    const admin = await app.admin()
    const made = await admin.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'] })
    const { token } = Object(await made.json())
    const count = () =>
      app.store.sqlite
        .prepare(
          'select (select count(*) from sessions) + (select count(*) from audit_log) + (select count(*) from rate_limits)',
        )
        .pluck()
        .get()
    const before = count()
    const headers = { authorization: `Bearer ${token}` }
    for (const path of ['/api/health', '/api/auth/status', '/api/users', '/api/nothing', '/api/openapi.json']) {
      expect((await app.request(path)).headers.getSetCookie()).toStrictEqual([])
      expect((await app.request(path, { headers })).headers.getSetCookie()).toStrictEqual([])
    }
    expect(count()).toBe(before)
  })
})

describe('SESSION_SECRET', () => {
  const [OLD, NEW, OTHER] = ['o'.repeat(40), 'n'.repeat(40), 'x'.repeat(40)]
  let store: SqliteStore
  beforeEach(() => {
    store = openMemoryStore()
  })
  afterEach(() => store.close())

  const appWith = (secrets: string) => createTestApp({ store, env: { SESSION_SECRET: secrets } })

  test('can be rotated: the first signs, all verify, and a removed one no longer counts', async () => {
    const { cookie } = await (await appWith(OLD)).admin()
    const signedIn = async (secrets: string) => {
      const client = (await appWith(secrets)).client()
      client.cookie = cookie
      return isSignedIn(client)
    }
    expect(await signedIn(`${NEW},${OLD}`)).toBe(true)
    expect(await signedIn(`${NEW}, ${OLD} `)).toBe(true)
    expect(await signedIn(`${OLD},${NEW}`)).toBe(true)
    expect(await signedIn(NEW)).toBe(false)
    expect(await signedIn(`${NEW},${OTHER}`)).toBe(false)
    const rotated = await (await appWith(`${NEW},${OLD}`)).admin()
    const client = (await appWith(NEW)).client()
    client.cookie = rotated.cookie
    expect(await isSignedIn(client)).toBe(true)
  })
})
