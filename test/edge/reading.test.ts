import { afterEach, beforeEach, expect, test } from 'vitest'
import { databaseSessions } from '../../src/app/accounts/sessions/database-sessions.ts'
import { nodes } from '../../src/db/schema.ts'
import { d1Store } from '../../src/edge/d1.ts'
import { serveNearest } from '../../src/edge/reading/own-writes.ts'
import { openReplicas, STALE_MS } from '../../src/edge/reading/replicas.ts'
import { ADMIN_PASSWORD, createTestApp, START, type TestApp, USER_PASSWORD } from '../support/app.ts'
import { type LaggingD1, laggingD1 } from './lagging-d1.ts'

const NODE = '/api/nodes/!00000007'

let d1: LaggingD1
let clock: { now: number }
const isolates: Isolate[] = []
beforeEach(() => {
  d1 = laggingD1()
  clock = { now: START }
})
afterEach(() => {
  for (const { app } of isolates.splice(0)) app.close()
  d1.close()
})

type Isolate = { readonly app: TestApp; readonly fetch: (request: Request) => Promise<Response> }

/** An isolate of the worker: what it knows of the database is its own. */
async function startIsolate(): Promise<Isolate> {
  const now = () => clock.now
  const replicas = openReplicas(d1.database, now, 1)
  const store = d1Store(replicas.primary)
  const ports = { store, sessions: databaseSessions(store), radio: null, compressor: null, now }
  const app = await createTestApp({ ports })
  const isolate = { app, fetch: serveNearest({}, app.ports, replicas, () => {}) }
  isolates.push(isolate)
  return isolate
}

type Browser = {
  readonly cookies: Map<string, string>
  send(
    at: Isolate,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: unknown; set: readonly string[] }>
}

function openBrowser(): Browser {
  const cookies = new Map<string, string>()
  return {
    cookies,
    async send({ app, fetch }, method, path, body, headers = {}) {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const answer = await fetch(
        new Request(new URL(path, app.origin), {
          method,
          headers: {
            ...(cookie !== '' && { cookie }),
            ...(body !== undefined && { 'content-type': 'application/json' }),
            ...headers,
          },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        }),
      )
      const set = answer.headers.getSetCookie()
      for (const line of set) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (/max-age=0/i.test(line)) cookies.delete(name)
        else cookies.set(name, value)
      }
      const text = await answer.text()
      return {
        status: answer.status,
        body: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text,
        set,
      }
    },
  }
}

async function signIn(at: Isolate, username = 'admin', password = ADMIN_PASSWORD): Promise<Browser> {
  const browser = openBrowser()
  expect((await browser.send(at, 'POST', '/api/auth/login', { username, password })).status).toBe(200)
  return browser
}

/** Two isolates that have both asked the primary, an administrator, and a user who reads nodes. */
async function start() {
  const [a, b] = [await startIsolate(), await startIsolate()]
  await a.app.ports.store.db.insert(nodes).values({ nodeNum: 7, firstHeard: START }).run()
  const admin = await signIn(a)
  const made = await admin.send(a, 'POST', '/api/users', { username: 'anna', password: USER_PASSWORD })
  const { id } = Object(made.body).user
  const permissions = { nodes: { read: true, write: true } }
  expect((await admin.send(a, 'PUT', `/api/users/${id}/permissions`, { permissions })).status).toBe(200)
  const anna = await signIn(b, 'anna', USER_PASSWORD)
  d1.catchUp()
  d1.takeAsked()
  return { a, b, admin, anna, id: Number(id) }
}

test('a browser sees its own changes on every isolate and in every tab, and nobody goes back in time there', async () => {
  const { a, b, admin, anna } = await start()
  expect(await admin.send(b, 'GET', NODE)).toMatchObject({ status: 200, body: { notes: '' } })
  expect((await admin.send(a, 'PUT', NODE, { notes: 'on the roof' })).status).toBe(200)
  expect(new Set(d1.takeAsked())).toStrictEqual(new Set(['replica', 'primary']))
  // Before the second isolate knows of the change, whoever did not make it gets the earlier state.
  expect(await anna.send(b, 'GET', NODE)).toMatchObject({ body: { notes: '' } })
  expect(new Set(d1.takeAsked())).toStrictEqual(new Set(['replica']))
  for (const tab of [1, 2]) {
    expect([tab, (await admin.send(b, 'GET', NODE)).body]).toMatchObject([tab, { notes: 'on the roof' }])
  }
  // The isolate never goes back: neither what it keeps nor what it reads.
  for (const browser of [anna, admin, anna]) {
    expect(await browser.send(b, 'GET', NODE)).toMatchObject({ body: { notes: 'on the roof' } })
    expect((await browser.send(b, 'GET', '/api/nodes')).body).toMatchObject([{ notes: 'on the roof' }])
  }
  d1.takeAsked()
  expect((await admin.send(b, 'PUT', NODE, { notes: 'gone' })).status).toBe(200)
  expect(new Set(d1.takeAsked())).toStrictEqual(new Set(['primary']))
  expect(await anna.send(b, 'GET', NODE)).toMatchObject({ body: { notes: 'gone' } })
})

test('an account that was closed reads for at most five seconds, only contents, and changes nothing', async () => {
  const { a, b, admin, anna, id } = await start()
  anna.cookies.delete('mesh_bookmark')
  expect((await admin.send(a, 'PUT', `/api/users/${id}`, { isActive: false })).status).toBe(200)
  expect((await anna.send(b, 'GET', NODE)).status).toBe(200)
  expect((await anna.send(b, 'GET', '/api/auth/sessions')).status).toBe(401)
  // The isolate has learnt it from the primary.
  expect((await anna.send(b, 'GET', NODE)).status).toBe(401)

  expect((await admin.send(a, 'PUT', `/api/users/${id}`, { isActive: true })).status).toBe(200)
  const again = await signIn(b, 'anna', USER_PASSWORD)
  expect((await admin.send(a, 'PUT', `/api/users/${id}`, { isActive: false })).status).toBe(200)
  again.cookies.delete('mesh_bookmark')
  clock.now += STALE_MS - 1
  expect((await again.send(b, 'GET', NODE)).status).toBe(200)
  clock.now += 1
  expect((await again.send(b, 'GET', NODE)).status).toBe(401)
  expect((await again.send(b, 'PUT', NODE, { notes: 'x' })).status).toBe(401)
})

test('after an event a page asks for the latest state, and gets it', async () => {
  const { a, b, admin, anna } = await start()
  anna.cookies.delete('mesh_bookmark')
  await admin.send(a, 'PUT', NODE, { notes: 'new' })
  for (const ask of ['no-cache', 'max-age=0']) {
    d1.takeAsked()
    const answer = await anna.send(b, 'GET', NODE, undefined, { 'cache-control': ask })
    expect([answer, d1.takeAsked()]).toMatchObject([
      { body: { notes: 'new' } },
      expect.not.arrayContaining(['replica']),
    ])
  }
})

test('made-up bookmarks reach D1 never, and harm nobody', async () => {
  const { a, b, admin, anna } = await start()
  await admin.send(a, 'PUT', NODE, { notes: 'new' })
  const forged = ['f'.repeat(100), 'ffffffff-ffffffff-ffffffff-ffffffff', 'z', '', '%FF', 'first-unconstrained']
  for (const bookmark of [...forged, 'f'.repeat(8000), '0', '00000000-00000000-00000000-00000000']) {
    anna.cookies.set('mesh_bookmark', bookmark)
    expect((await anna.send(b, 'GET', NODE)).status).toBe(200)
  }
  expect(d1.waiting).toBe(0)
  // The next reader is as near to the replica as before.
  anna.cookies.delete('mesh_bookmark')
  d1.takeAsked()
  await anna.send(b, 'GET', NODE)
  expect(new Set(d1.takeAsked())).toStrictEqual(new Set(['replica']))
})

test('a replica that does not answer is left alone for a minute, and no reader notices', async () => {
  const { b, anna } = await start()
  d1.stop()
  expect((await anna.send(b, 'GET', NODE)).status).toBe(200)
  expect(d1.waiting).toBe(1)
  clock.now += 59_000
  for (const path of [NODE, '/api/nodes']) expect((await anna.send(b, 'GET', path)).status).toBe(200)
  expect(d1.waiting).toBe(1)
})

test('only contents of the mesh come from a replica, and only for browsers', async () => {
  const { a, admin } = await start()
  const made = await admin.send(a, 'POST', '/api/tokens', { name: 'script', scopes: ['nodes:read'] })
  const { token } = Object(made.body)
  d1.takeAsked()
  for (const path of [
    '/api/auth/status',
    '/api/auth/sessions',
    '/api/tokens',
    '/api/users',
    '/api/audit',
    '/api/alerts',
    '/api/alerts/deliveries',
    '/api/settings',
    '/api/public-access',
    '/api/system',
    '/api/automation',
    '/api/connections',
    '/api/metrics',
  ]) {
    const { status } = await admin.send(a, 'GET', path)
    expect([path, status, d1.takeAsked()]).toStrictEqual([path, 200, expect.not.arrayContaining(['replica'])])
  }
  const script = openBrowser()
  const headers = { authorization: `Bearer ${token}` }
  expect((await script.send(a, 'GET', NODE, undefined, headers)).status).toBe(200)
  expect(d1.takeAsked()).not.toContain('replica')
  expect(await script.send(a, 'PUT', NODE, { notes: 'x' }, headers)).toMatchObject({ status: 403, set: [] })
  d1.takeAsked()
  for (const path of [NODE, '/api/nodes', '/api/messages', '/api/dashboard', '/api/packets', '/api/info']) {
    const { status } = await admin.send(a, 'GET', path)
    expect([path, status, new Set(d1.takeAsked())]).toStrictEqual([path, 200, new Set(['replica'])])
  }
})

test('the cookie comes with changes alone, and goes nowhere else', async () => {
  const { a, admin } = await start()
  const SHAPE = /^mesh_bookmark=[0-9a-f-]{59}; Max-Age=10; Path=\/; HttpOnly; SameSite=Lax$/
  const changed = await admin.send(a, 'PUT', NODE, { notes: 'new' })
  expect(changed.set).toStrictEqual([expect.stringMatching(SHAPE)])
  for (const [method, path, body] of [
    ['GET', NODE],
    ['GET', '/api/auth/status'],
    ['PUT', '/api/nodes/!000000ff', { notes: 'x' }],
  ] as const) {
    expect((await admin.send(a, method, path, body)).set).toStrictEqual([])
  }
  a.app.origin = 'https://mesh.example.org'
  const browser = await signIn(a)
  expect([...browser.cookies.keys()]).toContain('__Host-mesh_bookmark')
  const { set } = await browser.send(a, 'PUT', NODE, { notes: 'newer' })
  expect(set).toStrictEqual([
    expect.stringMatching(/^__Host-mesh_bookmark=.*; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
  ])
})
