import { afterAll, describe, expect, test } from 'vitest'
import { readRange } from '../../../../src/app/mesh/map/byte-range.ts'
import { auditRows, type Client, createTestApp, type TestApp } from '../../../support/app.ts'

const apps: TestApp[] = []
afterAll(() => apps.forEach((app) => app.close()))

async function open(env: Record<string, string>): Promise<{ app: TestApp; admin: Client }> {
  const app = await createTestApp({ env })
  apps.push(app)
  return { app, admin: await app.admin() }
}

test('by default the map has no tiles and no file', async () => {
  const { admin } = await open({})
  expect(await (await admin.send('GET', '/api/map')).json()).toEqual({ tiles: null })
  const none = await admin.send('GET', '/api/map/archive')
  expect([none.status, await none.json()]).toEqual([404, expect.objectContaining({ code: 'not_found' })])
})

test('the page gets the address of the tiles and their attribution', async () => {
  const { admin } = await open({
    MAP_TILE_URL: 'https://tiles.example.org/{z}/{x}/{y}{r}.png?key=abc',
    MAP_TILE_ATTRIBUTION: '© Somebody & others',
    MAP_TILE_MAX_ZOOM: '17',
  })
  expect(await (await admin.send('GET', '/api/map')).json()).toEqual({
    tiles: {
      kind: 'url',
      url: 'https://tiles.example.org/{z}/{x}/{y}{r}.png?key=abc',
      darkUrl: null,
      maxZoom: 17,
      attribution: '© Somebody & others',
    },
  })
})

test('without a disk there is no map file, whatever is configured', async () => {
  const { admin } = await open({ MAP_PMTILES: '/map.pmtiles' })
  expect(await (await admin.send('GET', '/api/map')).json()).toEqual({ tiles: null })
  const answer = await admin.send('GET', '/api/map/archive')
  expect([answer.status, await answer.json()]).toEqual([404, expect.objectContaining({ code: 'not_found' })])
})

test.each([
  ['https://tiles.example.org:8443/{z}/{x}/{y}.png', "'self' data: https://tiles.example.org:8443"],
  ['http://127.0.0.1:9000/{z}/{x}/{y}.png', "'self' data: http://127.0.0.1:9000"],
  ['/tiles/{z}/{x}/{y}.png', "'self' data:"],
  ['', "'self' data:"],
])('with the tiles %s pages may show images from %s, and other answers only their own', async (url, sources) => {
  const { app } = await open({ MAP_TILE_URL: url })
  const page = await app.request('/map')
  expect(page.headers.get('content-security-policy')).toContain(`; img-src ${sources}; `)
  const health = await app.request('/api/health')
  expect(health.headers.get('content-security-policy')).toContain("; img-src 'self' data:; ")
})

const CHOSEN = {
  kind: 'url',
  url: 'https://own.example.org/{z}/{x}/{y}.png',
  darkUrl: 'https://night.example.org/{z}/{x}/{y}.png',
  maxZoom: 12,
  attribution: '© Own',
} as const

test('tiles chosen in Settings replace those of the variables, also in the content security policy of pages', async () => {
  const { app, admin } = await open({ MAP_TILE_URL: 'https://tiles.example.org/{z}/{x}/{y}.png' })
  const policy = async () => (await app.request('/map')).headers.get('content-security-policy')
  expect(await policy()).toContain("; img-src 'self' data: https://tiles.example.org; ")
  expect((await admin.send('PUT', '/api/settings', { mapTiles: CHOSEN })).status).toBe(200)
  expect(await (await admin.send('GET', '/api/map')).json()).toEqual({ tiles: CHOSEN })
  expect(await policy()).toContain("; img-src 'self' data: https://own.example.org https://night.example.org; ")
  expect(auditRows(app).at(-1)).toMatchObject({
    action: 'settings_updated',
    details: { before: { mapTiles: { kind: 'configured' } }, after: { mapTiles: CHOSEN } },
  })
  const { length } = auditRows(app)
  expect((await admin.send('PUT', '/api/settings', { mapTiles: CHOSEN })).status).toBe(200)
  expect(auditRows(app)).toHaveLength(length)
  await admin.send('PUT', '/api/settings', { mapTiles: { kind: 'none' } })
  expect(await (await admin.send('GET', '/api/map')).json()).toEqual({ tiles: null })
  expect(await policy()).toContain("; img-src 'self' data:; ")
  const script = await app.request('/assets/none.js')
  expect(script.headers.get('content-security-policy')).toContain("; img-src 'self' data:; ")
})

test('while the database does not answer, the policy of pages allows the tiles of the variables', async () => {
  const { app } = await open({ MAP_TILE_URL: 'https://tiles.example.org/{z}/{x}/{y}.png' })
  app.store.sqlite.exec('drop table settings')
  const page = await app.request('/map')
  expect(page.headers.get('content-security-policy')).toContain("; img-src 'self' data: https://tiles.example.org; ")
})

describe('the preview of tiles', () => {
  const of = (url: string, more: object = {}) =>
    `/api/map/preview?${new URLSearchParams({ url, latitude: '49.8917', longitude: '10.8871', zoom: '12', ...more }).toString()}`

  test('shows tiles around a place, may load images from that host only, and runs no script', async () => {
    const { admin } = await open({})
    const answer = await admin.send('GET', of('https://own.example.org/{z}/{x}/{y}{r}.png?key="&<b>'))
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8'])
    expect(answer.headers.get('content-security-policy')).toBe(
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; img-src 'self' https://own.example.org",
    )
    expect(answer.headers.get('referrer-policy')).toBe('origin')
    const page = await answer.text()
    // The tile of Bamberg in the usual numbering of web maps.
    expect(page).toContain('href="https://own.example.org/12/2171/1391.png?key=&quot;&amp;&lt;b>"')
    expect(page.match(/<image /g)).toHaveLength(6)
  })

  test('of the whole world has one row', async () => {
    const { admin } = await open({})
    const page = await (await admin.send('GET', of('/{z}/{x}/{y}', { zoom: '0' }))).text()
    expect(new Set(page.match(/href="[^"]*"/g))).toEqual(new Set(['href="/0/0/0"']))
  })

  test.each([
    of('http://own.example.org/{z}/{x}/{y}'),
    of('https://own.example.org/'),
    of('/{z}/{x}/{y}', { zoom: '25' }),
    of('/{z}/{x}/{y}', { zoom: '' }),
    of('/{z}/{x}/{y}', { latitude: '86' }),
    of('/{z}/{x}/{y}', { longitude: 'x' }),
    of('/{z}/{x}/{y}', { more: '1' }),
  ])('refuses %s', async (path) => {
    const { admin } = await open({})
    const answer = await admin.send('GET', path)
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid_request' }])
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'self'")
  })
})

test.each([
  [undefined, null],
  ['bytes=0-0', { first: 0, last: 0 }],
  ['bytes=2-5', { first: 2, last: 5 }],
  ['bytes=2-', { first: 2, last: 9 }],
  ['bytes=2-99', { first: 2, last: 9 }],
  ['bytes=-3', { first: 7, last: 9 }],
  ['bytes=-99', { first: 0, last: 9 }],
  ['bytes=9-', { first: 9, last: 9 }],
  ['bytes=10-', 'unsatisfiable'],
  ['bytes=10-20', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
  ['bytes=5-2', null],
  ['bytes=-', null],
  ['bytes=0-1,4-5', null],
  ['items=0-1', null],
  ['bytes=0x1-2', null],
  ['bytes=1-99999999999999999999', null],
])('of ten bytes, Range %s is %j', (header, range) => {
  expect(readRange(header, 10)).toEqual(range)
})
