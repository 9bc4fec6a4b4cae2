import { afterAll, beforeAll, expect, test } from 'vitest'
import { featuresOf, shapesOf } from '../../../../src/shared/mesh/overlay.ts'
import { MAX_OVERLAY_SHAPES, MAX_OVERLAYS, MAX_SHAPE_POINTS } from '../../../../src/shared/limits.ts'
import { auditRows, type Client, createTestApp, type TestApp } from '../../../support/app.ts'
import { OPEN } from '../../../support/public-access.ts'

const PATH = '/api/map/overlays'

let app: TestApp
let admin: Client
let reader: Client

beforeAll(async () => {
  app = await createTestApp()
  admin = await app.admin()
  const read = { read: true, write: false }
  reader = await app.user('reader', { nodes: read, settings: read })
})
afterAll(() => app.close())

const point = (properties: unknown = {}, coordinates: unknown = [8, 47]) => ({
  type: 'Feature',
  properties,
  geometry: { type: 'Point', coordinates },
})
const add = (features: readonly unknown[], more: object = {}) => {
  return admin.send('POST', PATH, { name: 'Valley', features, ...more })
}
async function added(features: readonly unknown[], more: object = {}): Promise<number> {
  const answer = await add(features, more)
  expect(answer.status).toBe(201)
  return Object(await answer.json()).id
}
const refusal = async (answer: Response) => [answer.status, Object(await answer.json()).detail]
const namesFor = async (client: Client): Promise<string[]> => {
  const { overlays } = Object(await (await client.send('GET', PATH)).json())
  return overlays.map(({ name }: { name: string }) => name)
}
const read = async (id: number, client = reader) => Object(await (await client.send('GET', `${PATH}/${id}`)).json())

test('shapes lose everything that the map does not show, and keep their places', async () => {
  const script = '<script>fetch("//evil.example")</script>'
  const id = await added([
    point({
      name: `  Hut\u202e\n${script} `,
      description: 'javascript:alert(1)',
      icon: 'data:image/svg+xml,<svg onload=alert(1)>',
      'marker-color': '#ABC',
      stroke: 'url(//evil.example/x)',
      link: 'https://evil.example',
    }),
    {
      type: 'MultiPolygon',
      coordinates: [
        [
          [
            [0, 0],
            [1, 0],
            [1, 1.00000049],
            [0, 0],
          ],
        ],
        [
          [
            [5, 5, 900],
            [6, 5, 900],
            [6, 6, 900],
          ],
        ],
      ],
      onclick: 'alert(1)',
    },
    { type: 'Feature', geometry: null, properties: { name: 'nowhere' } },
    {
      type: 'Feature',
      properties: null,
      geometry: {
        type: 'GeometryCollection',
        geometries: [
          {
            type: 'LineString',
            coordinates: [
              [179.9, -89],
              [-180, 90],
            ],
          },
        ],
      },
    },
  ])
  expect(await read(id)).toStrictEqual({
    type: 'FeatureCollection',
    features: [
      {
        type: 'Feature',
        geometry: { type: 'Point', coordinates: [8, 47] },
        // Plain text: the page never reads it as markup.
        properties: { name: `Hut ${script}`, description: 'javascript:alert(1)', colour: '#abc' },
      },
      {
        type: 'Feature',
        properties: {},
        geometry: {
          type: 'Polygon',
          coordinates: [
            [
              [0, 0],
              [1, 0],
              [1, 1],
              [0, 0],
            ],
          ],
        },
      },
      {
        type: 'Feature',
        properties: {},
        geometry: {
          type: 'Polygon',
          coordinates: [
            [
              [5, 5],
              [6, 5],
              [6, 6],
            ],
          ],
        },
      },
      {
        type: 'Feature',
        properties: {},
        geometry: {
          type: 'LineString',
          coordinates: [
            [179.9, -89],
            [-180, 90],
          ],
        },
      },
    ],
  })
  const lines = (await (await reader.send('GET', `${PATH}/${id}`)).text()).split('\n')
  expect(lines).toHaveLength(4 + 3)
  expect((await admin.send('DELETE', `${PATH}/${id}`)).status).toBe(204)
})

const ring = (points: number) => Array.from({ length: points }, (_, index) => [index % 170, index % 80])
const nested = (depth: number): unknown =>
  depth === 0 ? { type: 'Point', coordinates: [1, 1] } : { type: 'GeometryCollection', geometries: [nested(depth - 1)] }

test.each([
  ['strings as coordinates', point({}, ['8', '47']), 'Shape 2 has coordinates that are no places in the world'],
  ['a number that JSON cannot say', point({}, [null, 47]), 'Shape 2 has coordinates that are no places in the world'],
  ['a place outside the world', point({}, [8, 90.1]), 'Shape 2 has coordinates that are no places in the world'],
  ['one coordinate', point({}, [8]), 'Shape 2 has coordinates that are no places in the world'],
  ['a line of one place', { type: 'LineString', coordinates: [[1, 1]] }, 'Shape 2 has coordinates'],
  [
    'deeper coordinates',
    {
      type: 'LineString',
      coordinates: [
        [
          [1, 1],
          [2, 2],
        ],
        [
          [1, 1],
          [2, 2],
        ],
      ],
    },
    'Shape 2 has coordi',
  ],
  ['an unknown geometry', { type: 'Feature', geometry: { type: 'Circle' } }, 'Shape 2 has a kind of geometry'],
  ['collections in collections', nested(5), 'Shape 2 has a kind of geometry'],
  ['something else', { type: 'Topology', arcs: [] }, 'Shape 2 is no feature of GeoJSON'],
  ['a name of every object', { type: 'constructor' }, 'Shape 2 is no feature of GeoJSON'],
  ['no object', 'Point', 'Shape 2 is no feature of GeoJSON'],
  [
    'a shape of too many points',
    { type: 'Polygon', coordinates: [ring(MAX_SHAPE_POINTS + 1)] },
    'Shape 2 has more than',
  ],
])('a file with %s is refused in one sentence', async (_what, feature, sentence) => {
  expect(await refusal(await add([point(), feature]))).toEqual([400, expect.stringContaining(sentence)])
  expect(await namesFor(admin)).toEqual([])
})

test('numbers that are none, and endless nesting, are no shapes', () => {
  for (const bad of [Number.NaN, Infinity, -Infinity]) expect(shapesOf(point({}, [bad, 1]))).toBe('coordinates')
  expect(shapesOf(nested(5000))).toBe('geometry')
  expect(featuresOf({ features: [] })).toBeNull()
  const keys: unknown = JSON.parse('{"__proto__":{"name":"x"},"constructor":{"prototype":{"name":"x"}}}')
  expect(shapesOf(point(keys))).toStrictEqual([point()])
  // What a prototype has was not in the file.
  expect(shapesOf(Object.create(point()))).toBe('format')
})

test('keys that reach a prototype, too many shapes and too large bodies are refused', async () => {
  const polluted = `{"name":"x","features":[{"type":"Point","coordinates":[1,1],"__proto__":{"isAdmin":true}}]}`
  const send = (body: string) =>
    app.request(PATH, {
      method: 'POST',
      headers: { cookie: String(admin.cookie), origin: app.origin, 'content-type': 'application/json' },
      body,
    })
  expect((await send(polluted)).status).toBe(400)
  expect((await send(`{"name":"x","features":[${'['.repeat(50_000)}${']'.repeat(50_000)}]}`)).status).toBe(400)
  const tiny = { type: 'MultiPoint', coordinates: Array.from({ length: MAX_OVERLAY_SHAPES + 1 }, () => [1, 1]) }
  expect(await refusal(await add([tiny]))).toEqual([400, expect.stringMatching(/at most 20,000 shapes/)])
  // A small request that would be 20 MB.
  const swollen = { type: 'MultiPoint', coordinates: tiny.coordinates.slice(1) }
  const named = { type: 'Feature', properties: { description: 'x'.repeat(1000) }, geometry: swollen }
  expect(await refusal(await add([named]))).toEqual([400, expect.stringMatching(/bytes/)])
  expect((await add(Array.from({ length: 10_000 }, () => point()))).status).toBe(413)
  const packed = await app.request(PATH, {
    method: 'POST',
    headers: {
      cookie: String(admin.cookie),
      origin: app.origin,
      'content-type': 'application/json',
      'content-encoding': 'gzip',
    },
    body: new Uint8Array([31, 139, 8, 0]),
  })
  expect(packed.status).toBe(400)
  expect(await namesFor(admin)).toEqual([])
})

test('a large overlay arrives in parts, and nobody sees it before it is whole', async () => {
  const part = Array.from({ length: 900 }, (_, index) => ({
    type: 'LineString',
    coordinates: [
      [index / 9, 1],
      [2, 2],
    ],
  }))
  const id = await added(part, { isWhole: false })
  const before = auditRows(app).length
  expect(await namesFor(admin)).toEqual([])
  expect((await admin.send('GET', `${PATH}/${id}`)).status).toBe(404)
  expect((await admin.send('POST', `${PATH}/${id}/shapes`, { features: part, isWhole: false })).status).toBe(204)
  expect((await admin.send('POST', `${PATH}/${id}/shapes`, { features: part })).status).toBe(204)
  // It is whole.
  expect((await admin.send('POST', `${PATH}/${id}/shapes`, { features: part })).status).toBe(404)
  const file = await admin.send('GET', `${PATH}/${id}`, undefined, { 'accept-encoding': 'gzip' })
  expect(file.headers.get('content-encoding')).toBe('gzip')
  const tag = String(file.headers.get('etag'))
  expect(
    (await admin.send('GET', `${PATH}/${id}`, undefined, { 'accept-encoding': 'gzip', 'if-none-match': tag })).status,
  ).toBe(304)
  const { features } = await read(id)
  expect(features).toHaveLength(2700)
  expect(features[1801].geometry.coordinates).toEqual([
    [0.111111, 1],
    [2, 2],
  ])
  expect(auditRows(app).slice(before)).toEqual([
    expect.objectContaining({ action: 'map_overlay_updated', username: 'admin' }),
  ])
  await admin.send('DELETE', `${PATH}/${id}`)
})

test('what never got whole goes after an hour, and there is room for so many', async () => {
  for (let n = 0; n < MAX_OVERLAYS; n += 1) await added([point()], { isWhole: false, name: `Draft ${n}` })
  expect(await refusal(await add([point()]))).toEqual([400, 'At most 20 overlays are possible'])
  app.clock.advance(3_700_000)
  admin = await app.admin()
  reader = await app.signIn('reader')
  const id = await added([point()])
  expect(app.store.sqlite.prepare('select count(*) as n from overlay_parts').get()).toEqual({ n: 1 })
  await admin.send('DELETE', `${PATH}/${id}`)
})

test('only who may change settings puts shapes on the map; visitors without an account see the public ones', async () => {
  const own = await added([point({ name: 'secret hut' })], { name: 'For members' })
  const shared = await added([point()], { name: 'For all', isPublic: true })
  expect((await reader.send('POST', PATH, { name: 'x', features: [point()] })).status).toBe(403)
  expect((await reader.send('PUT', `${PATH}/${own}`, { name: 'x', isPublic: true })).status).toBe(403)
  expect((await reader.send('DELETE', `${PATH}/${own}`)).status).toBe(403)
  expect(await namesFor(reader)).toEqual(['For all', 'For members'])
  expect(Object(await (await reader.send('GET', PATH)).json()).overlays[0]).toMatchObject({
    createdBy: null,
    shapes: 1,
  })
  const visitor = app.client()
  expect((await visitor.send('GET', PATH)).status).toBe(401)
  await admin.send('PUT', '/api/public-access', OPEN)
  expect(await namesFor(visitor)).toEqual(['For all'])
  expect((await visitor.send('GET', `${PATH}/${shared}`)).status).toBe(200)
  expect((await visitor.send('GET', `${PATH}/${own}`)).status).toBe(404)
  // What was published ends with its publication, also for who has seen it.
  await admin.send('PUT', `${PATH}/${shared}`, { name: 'For all', isPublic: false })
  expect((await visitor.send('GET', `${PATH}/${shared}`)).status).toBe(404)
  const [last] = auditRows(app).slice(-1)
  expect(last?.details).toMatchObject({ before: { isPublic: true }, after: { isPublic: false } })
})
