import { afterAll, expect, test } from 'vitest'
import { readRange } from '../../../../src/app/mesh/map/byte-range.ts'
import { type Client, createTestApp, type TestApp } from '../../../support/app.ts'

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
])('tiles of %s: pages may show images of %s, the API sends no such header', async (url, sources) => {
  const { app } = await open({ MAP_TILE_URL: url })
  const page = await app.request('/map')
  expect(page.headers.get('content-security-policy')).toContain(`; img-src ${sources}; `)
  const health = await app.request('/api/health')
  expect(health.headers.get('content-security-policy')).toContain("; img-src 'self' data:; ")
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
