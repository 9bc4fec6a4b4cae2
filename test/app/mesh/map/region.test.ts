import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { MapRegions } from '../../../../src/app/mesh/map/region/port.ts'
import { suggestArea } from '../../../../src/app/mesh/map/region/suggestion.ts'
import { type Client, createTestApp, type TestApp } from '../../../support/app.ts'
import { OPEN } from '../../../support/public-access.ts'
import { turnsDuring } from '../../../support/turns.ts'

const asked: unknown[] = []
const refused = async () => {
  throw new Error('not asked here')
}
const PORT: MapRegions = {
  state: async () => ({
    state: 'failed',
    source: 'planet.lan',
    bounds: [1, 2, 3, 4],
    maxZoom: 9,
    bytes: 5,
    t: 6,
    attribution: '© Somebody',
    wanted: { bounds: [1, 2, 3, 5], maxZoom: 9 },
    fetchedBytes: 7,
    totalBytes: 8,
    problem: 'The disk of this service has no room for this map',
  }),
  measure: async (area) => {
    asked.push(area)
    return { bytes: 1, tiles: 2, free: 3 }
  },
  start: refused,
  cancel: refused,
  remove: refused,
  open: refused,
}

let app: TestApp
let admin: Client

beforeAll(async () => {
  app = await createTestApp({ ports: { mapRegions: PORT } })
  admin = await app.admin()
})
afterAll(() => app.close())

const stateFor = async (client: Client, headers: Record<string, string> = {}) =>
  Object(await (await client.send('GET', '/api/map/region', undefined, headers)).json())

/** A node with a position from channel 1. */
function placeNode(nodeNum: number, latitude: number, longitude: number): void {
  app.store.sqlite
    .prepare('insert into nodes (node_num, latitude, longitude, position_channel, first_heard) values (?, ?, ?, 1, 1)')
    .run(nodeNum, latitude, longitude)
}

test('only who may change settings learns the source, the problem, and an area around the nodes they see', async () => {
  placeNode(101, 50, 11)
  const known = { bounds: [1, 2, 3, 4], bytes: 5, attribution: '© Somebody', state: 'failed' }
  expect(await stateFor(admin, { 'accept-language': 'de' })).toMatchObject({
    ...known,
    source: 'planet.lan',
    problem: 'Auf der Festplatte dieses Dienstes ist kein Platz für diese Karte',
    suggestion: { bounds: [10.9581, 49.9731, 11.0419, 50.0269], maxZoom: 15 },
  })
  const may = { read: true, write: false }
  const reader = await app.user('reader', { nodes: may })
  const nothing = { source: '', problem: null, suggestion: null }
  expect(await stateFor(reader)).toMatchObject({ ...known, ...nothing })

  const scope = { channels: { read: [0], write: [] }, direct: { read: false, write: false } }
  const write = { read: true, write: true }
  const elsewhere = await app.user('elsewhere', { nodes: may, settings: write }, scope)
  expect(await stateFor(elsewhere)).toMatchObject({ source: 'planet.lan', suggestion: null })
  const blind = await app.user('blind', { nodes: { read: false, write: false }, settings: write })
  expect((await blind.send('GET', '/api/map/region')).status).toBe(403)

  expect((await app.client().send('GET', '/api/map/region')).status).toBe(401)
  expect((await admin.send('PUT', '/api/public-access', OPEN)).status).toBe(200)
  expect(await stateFor(app.client())).toMatchObject({ ...known, ...nothing })
})

test.each([
  [{ bounds: [170, -20, -170, -10], maxZoom: 5 }, 'a region cannot cross the 180th meridian'],
  [{ bounds: [5, 50, 5, 51], maxZoom: 5 }, 'West must be less than east'],
  [{ bounds: [5, 51, 6, 51], maxZoom: 5 }, 'South must be less than north'],
  [{ bounds: [5, 50, 6, 85.06], maxZoom: 5 }, 'bounds'],
  [{ bounds: [-181, 50, 6, 51], maxZoom: 5 }, 'bounds'],
  [{ bounds: [5, 50, 6], maxZoom: 5 }, 'bounds'],
  [{ bounds: [5, 50, 6, 51], maxZoom: 16 }, 'maxZoom'],
  [{ bounds: [5, 50, 6, 51], maxZoom: 4.5 }, 'maxZoom'],
  [{ bounds: [5, 50, 6, 51], maxZoom: 5, url: 'http://127.0.0.1/' }, 'url'],
])('the area %j is refused', async (area, why) => {
  for (const path of ['/api/map/region', '/api/map/region/preview']) {
    const answer = await admin.send('POST', path, area)
    expect([answer.status, Object(await answer.json()).detail]).toEqual([400, expect.stringContaining(why)])
  }
  expect(asked).toEqual([])
})

describe('the suggested area', () => {
  const around = (latitude: number, longitude: number, n = 20) =>
    Array.from({ length: n }, (_, i) => ({ latitude: latitude + (i % 5) / 50, longitude: longitude + (i % 4) / 50 }))
  const holds = (bounds: readonly number[], latitude: number, longitude: number) =>
    longitude > (bounds[0] ?? 0) &&
    latitude > (bounds[1] ?? 0) &&
    longitude < (bounds[2] ?? 0) &&
    latitude < (bounds[3] ?? 0)

  test('lies around the mesh with some space, and leaves out the node at 0° 0° and those far away', () => {
    const mesh = around(49.9, 10.9)
    const found = suggestArea([
      ...mesh,
      { latitude: 0, longitude: 0 },
      { latitude: 35, longitude: 139 },
      { latitude: -89, longitude: 3 },
    ])
    if (found === null) throw new Error('no area')
    expect(mesh.every(({ latitude, longitude }) => holds(found.bounds, latitude, longitude))).toBe(true)
    const [west, south, east, north] = found.bounds
    expect([east - west < 0.2, north - south < 0.2, found.maxZoom]).toEqual([true, true, 15])
    expect(suggestArea(mesh)).toEqual(found)
  })

  test('of one node is a few kilometres wide; without a position there is none', () => {
    const found = suggestArea([{ latitude: 60, longitude: 25 }])
    expect(found?.bounds).toEqual([24.9461, 59.9731, 25.0539, 60.0269])
    expect(suggestArea([{ latitude: 0, longitude: 0 }])).toBeNull()
    expect(suggestArea([])).toBeNull()
  })

  test('of a mesh across a continent has a lower zoom level', () => {
    const found = suggestArea([...around(40, -4), ...around(48, 2), ...around(52, 13), ...around(60, 25)])
    expect(found?.maxZoom).toBeLessThan(13)
    expect(holds(found?.bounds ?? [], 52, 13)).toBe(true)
  })

  test('of a mesh on both sides of the 180th meridian is the side of most nodes, and a region that is accepted', async () => {
    const found = suggestArea([...around(-17, 179.8), ...around(-17, -179.95, 5)])
    expect(found?.bounds[2]).toBe(180)
    expect(holds(found?.bounds ?? [], -17, 179.85)).toBe(true)
    expect((await admin.send('POST', '/api/map/region/preview', found)).status).toBe(200)
    expect(asked).toEqual([found])
  })
})

test('others get their turns while the places of 20,000 nodes are read', async () => {
  const large = await createTestApp({ ports: { mapRegions: PORT } })
  large.store.sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 20000)
    insert into nodes (node_num, latitude, longitude, first_heard) select n, 47 + n / 1e6, 8, 1 from i`)
  const client = await large.admin()
  // The list of nodes itself is made before.
  await client.send('GET', '/api/nodes?limit=1')
  const turns = await turnsDuring(async () => {
    const answer = await client.send('GET', '/api/map/region')
    expect(Object(await answer.json()).suggestion).not.toBeNull()
  })
  large.close()
  expect(turns).toBeGreaterThanOrEqual(20_000 / 500)
})
