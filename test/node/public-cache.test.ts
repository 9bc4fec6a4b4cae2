import { request } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildService, type Service, signInAt, startService } from '../support/built/built-service.ts'

const PASSWORD = 'what a shared cache may keep'
const READ = { read: true, write: false }
const ALL = { dashboard: READ, nodes: READ, messages: READ, info: READ }
const SHARED = ['/api/nodes', '/api/messages', '/api/channels', '/api/waypoints', '/api/neighbors', '/api/dashboard']
const WHOLE = 'public, max-age=5'

let service: Service
let cookie: string
let token: string
const dir = mkdtempSync(join(tmpdir(), 'mesh-cache-'))
beforeAll(async () => {
  // No proxy is trusted.
  service = await startService(buildService(), { DATA_DIR: dir, ADMIN_PASSWORD: PASSWORD })
  cookie = await signInAt(service.url, PASSWORD)
  const scopes = ['nodes:read', 'messages:read', 'info:read', 'dashboard:read']
  token = Object(JSON.parse((await ask('/api/tokens', { cookie }, 'POST', { name: 'x', scopes })).body)).token
  const opened = await ask('/api/public-access', { cookie }, 'PUT', { enabled: true, permissions: ALL, channels: [0] })
  expect(opened.status).toBe(200)
})
afterAll(async () => {
  await service.stop('SIGTERM')
  rmSync(dir, { recursive: true })
})

type Answer = { readonly status: number; readonly headers: Readonly<Record<string, unknown>>; readonly body: string }

/** Sends any headers, even Host, which `fetch` sets itself. */
function ask(path: string, headers: Record<string, string> = {}, method = 'GET', json?: unknown): Promise<Answer> {
  const { port } = new URL(service.url)
  return new Promise((resolve, reject) => {
    const type = json === undefined ? {} : { 'content-type': 'application/json' }
    const asked = request({ port, host: '127.0.0.1', path, method, headers: { ...type, ...headers } }, (answer) => {
      let body = ''
      answer.on('data', (part) => (body += String(part)))
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }))
    })
    asked.on('error', reject)
    asked.end(json === undefined ? undefined : JSON.stringify(json))
  })
}

/** As a shared cache decides (RFC 9111): whether it stores the answer, and the headers by which it varies. */
const keptBy = ({ headers }: Answer) => ({
  isKept: /(?:public|s-maxage)/.test(String(headers['cache-control'])),
  by: String(headers['vary']).toLowerCase().split(/,\s*/),
})

test.each(SHARED)('%s is cached for anonymous visitors only, not for requests with credentials', async (path) => {
  const anonymous = await ask(path)
  expect([anonymous.status, anonymous.headers['cache-control'], anonymous.headers['set-cookie']]).toEqual([
    200,
    WHOLE,
    undefined,
  ])
  expect(keptBy(anonymous).by).toEqual(expect.arrayContaining(['cookie', 'authorization', 'accept-encoding']))
  const others = {
    'a session': { cookie },
    'a token': { authorization: `Bearer ${token}` },
    'both, one bad': { cookie, authorization: 'Bearer mm_bad' },
    'a cookie of another site': { cookie: 'theme=dark' },
    'a planted cookie': { cookie: 'mesh_session=planted.by-somebody' },
    'a forged ticket': { 'x-see-as': 'forged' },
    'an empty authorization': { authorization: '' },
  }
  for (const [who, headers] of Object.entries(others)) {
    expect([who, keptBy(await ask(path, headers)).isKept]).toEqual([who, false])
  }
})

test('an ETag gives no access: an anonymous visitor who sends the ETag of a user gets their own body', async () => {
  for (const path of SHARED) {
    const users = await ask(path, { cookie })
    const etag = String(users.headers['etag'])
    const own = await ask(path)
    // Some tags stand for the body alone: then the same tag says that it is the same body.
    const isSame = own.headers['etag'] === etag
    if (isSame) expect([path, own.body]).toEqual([path, users.body])
    const status = isSame ? 304 : 200
    const answer = await ask(path, { 'if-none-match': etag })
    expect([path, answer.status, keptBy(answer).isKept]).toEqual([path, status, true])
    const anonymousTag = String(answer.headers['etag'])
    expect([path, (await ask(path, { cookie, 'if-none-match': anonymousTag })).status]).toEqual([path, status])
    expect([path, (await ask(path, { 'if-none-match': anonymousTag })).status]).toEqual([path, 304])
  }
})

test('headers about the address and host of a client change no body, and evade no limit', async () => {
  const lies = {
    host: 'evil.example',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    'x-forwarded-prefix': '/evil',
    'x-original-url': '/api/users',
    'x-rewrite-url': '/api/users',
    'x-http-method-override': 'DELETE',
    forwarded: 'for=203.0.113.9;host=evil.example',
  }
  for (const path of SHARED) {
    const [plain, lied] = [await ask(path), await ask(path, lies)]
    expect([path, lied.status, lied.body]).toEqual([path, plain.status, plain.body])
    expect(JSON.stringify(lied.headers)).not.toContain('evil')
  }
  let refused = await ask('/api/nodes')
  for (let n = 0; n < 400 && refused.status === 200; n++) {
    refused = await ask('/api/nodes', { 'x-forwarded-for': `203.0.113.${n % 250}` })
  }
  expect([refused.status, keptBy(refused).isKept, Number(refused.headers['retry-after']) >= 1]).toEqual([
    429,
    false,
    true,
  ])
  expect((await ask('/api/nodes', { cookie })).status).toBe(200)
})
