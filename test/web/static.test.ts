import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../../src/app/app.ts'
import type { Pages } from '../../src/app/http/pages.ts'
import { serveSite } from '../../src/node/http/static.ts'
import { createTestApp, type TestApp } from '../support/app.ts'

const HTML = '<script type="module" src="/assets/main-abc.js"></script>'
const SCRIPT = 'console.log("mesh")'
const PIECE = Buffer.from([0, 255, 7])
const home = mkdtempSync(join(tmpdir(), 'mesh-static-'))
const site = join(home, 'web')
let pages: Pages
let app: TestApp

beforeAll(async () => {
  mkdirSync(join(site, 'assets'), { recursive: true })
  writeFileSync(join(home, 'secret.js'), 'secret')
  writeFileSync(join(site, 'index.html'), HTML)
  writeFileSync(join(site, 'assets/main-abc.js'), SCRIPT)
  writeFileSync(join(site, '_headers'), 'not for the browser')
  mkdirSync(join(site, 'assets/world-abc'))
  writeFileSync(join(site, 'assets/world-abc/0-0-0.bin'), PIECE)
  pages = serveSite(site, null)
  app = await createTestApp()
})
afterAll(() => {
  app.close()
  rmSync(home, { recursive: true })
})

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  pages(new Request(`http://mesh.test${path}`, { headers, method }))

test.each(['/', '/login', '/users/7', '/nodes/!a0cb0001?sort=name', '/nodes/'])(
  '%s is the application',
  async (path) => {
    const answer = await get(path)
    expect([answer.status, await answer.text()]).toEqual([200, HTML])
    expect(answer.headers.get('cache-control')).toBe('no-cache')
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
  },
)

test.each(['/apiary', '/other/nodes', '/nodes/!a0cb00011', '/users/0'])(
  '%s is not found, and the page says so',
  async (path) => {
    const etag = (await get('/')).headers.get('etag') ?? ''
    const answer = await get(path, { 'if-none-match': etag })
    expect([answer.status, await answer.text()]).toEqual([404, HTML])
    expect(answer.headers.get('cache-control')).toBe('no-cache')
  },
)

test('a hashed file may be cached forever, and never becomes a page when it is missing', async () => {
  const answer = await get('/assets/main-abc.js')
  expect(await answer.text()).toBe(SCRIPT)
  expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect((await get('/assets/main-old.js')).status).toBe(404)
  const piece = await get('/assets/world-abc/0-0-0.bin', { 'accept-encoding': 'br' })
  expect(Buffer.from(await piece.arrayBuffer())).toEqual(PIECE)
  expect(piece.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(piece.headers.get('content-encoding')).toBe(null)
  expect((await get('/assets/world-abc/0-0-1.bin')).status).toBe(404)
  expect((await get('/assets/world-abc/..%2F..%2F..%2Fsecret.js')).status).toBe(404)
  expect((await get('/favicon.ico')).status).toBe(404)
})

test.each([
  '/../secret.js',
  '/assets/../../secret.js',
  '/assets/..%2f..%2fsecret.js',
  '/%2e%2e/secret.js',
  '/assets\\..\\..\\secret.js',
  '/_headers.js',
  '/secret.js%00.html',
])('%s leads nowhere', async (path) => {
  const answer = await get(path)
  expect([200, 404]).toContain(answer.status)
  expect(await answer.text()).not.toContain('secret')
})

test('an unchanged file is sent without a body, also when compressed', async () => {
  const etag = (await get('/')).headers.get('etag') ?? ''
  expect(etag).toMatch(/^W\/"[\w-]{22}"$/)
  const again = await get('/', { 'if-none-match': etag, 'accept-encoding': 'br' })
  expect([again.status, await again.text()]).toEqual([304, ''])
  expect((await get('/assets/main-abc.js', { 'if-none-match': etag })).status).toBe(200)
})

test('files are compressed as the browser prefers, or not at all if it refuses', async () => {
  const packed = async (accepted: string) => {
    const answer = await get('/assets/main-abc.js', { 'accept-encoding': accepted })
    return [answer.headers.get('content-encoding'), Buffer.from(await answer.arrayBuffer())] as const
  }
  const [br, brotli] = await packed('gzip, deflate, br')
  expect([br, brotliDecompressSync(brotli).toString()]).toEqual(['br', SCRIPT])
  const [gz, gzip] = await packed('gzip;q=0.8')
  expect([gz, gunzipSync(gzip).toString()]).toEqual(['gzip', SCRIPT])
  const [none, plain] = await packed('br;q=0, identity')
  expect([none, plain.toString()]).toEqual([null, SCRIPT])
})

test('HEAD has no body; every other method is refused, as by the API', async () => {
  const head = await get('/', {}, 'HEAD')
  expect([head.status, await head.text(), head.headers.get('content-length')]).toEqual([200, '', String(HTML.length)])
  const whole = createApp(() => app.ports, pages)
  for (const method of ['OPTIONS', 'POST', 'DELETE']) {
    const refused = await whole.request('/login', { method })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect(await refused.json()).toMatchObject({ code: 'method_not_allowed' })
  }
})

test('behind a proxy with a path, the page names its files below that path', async () => {
  const below = serveSite(site, 'https://example.org/mesh/')
  const answer = await below(new Request('http://mesh.test/'))
  expect(await answer.text()).toContain('src="/mesh/assets/main-abc.js"')
})

test('without a build it says what to do', async () => {
  const answer = await serveSite(join(home, 'nothing'), null)(new Request('http://mesh.test/'))
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('npm run build')])
})

test('pages have the security headers and need no session; paths of the API still reach the API', async () => {
  const whole = createApp(() => app.ports, pages)
  const page = await whole.request('/users')
  expect(await page.text()).toBe(HTML)
  expect(page.headers.get('content-security-policy')).toContain("default-src 'self'")
  expect(page.headers.get('x-content-type-options')).toBe('nosniff')
  expect(page.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  expect(page.headers.get('set-cookie')).toBeNull()
  for (const path of ['/api', '/api/', '/api/nowhere']) {
    expect([path, (await whole.request(path)).headers.get('content-type')]).toEqual([path, 'application/problem+json'])
  }
  expect((await whole.request('/users', { method: 'POST' })).status).toBe(405)
})
