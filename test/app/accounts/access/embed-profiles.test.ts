import { afterEach, expect, test } from 'vitest'
import { createApp } from '../../../../src/app/app.ts'
import { auditRows, type Client, createTestApp, type TestApp } from '../../../support/app.ts'

const TOWN = 'https://town.example.org'
const CLUB = 'https://club.example.org:8443'
const PROFILE = {
  name: 'Town hall',
  origins: [TOWN],
  center: { latitude: 47.1, longitude: 8.25 },
  zoom: 11,
  layers: ['labels', 'links'],
  width: 800,
  height: 500,
}

let app: TestApp
let admin: Client
afterEach(() => app.close())

async function open(env: Record<string, string> = {}): Promise<void> {
  app = await createTestApp({ env })
  admin = await app.admin()
  await admin.send('PUT', '/api/public-access', { enabled: true })
}

const body = async (answer: Response) => Object(await answer.json())
const frames = '/api/public-access/frames'
const make = async (more: object = {}) => body(await admin.send('POST', frames, { ...PROFILE, ...more }))
const page = (path: string) =>
  createApp(
    () => app.ports,
    async () => new Response('page'),
  ).request(path)
const ancestors = (answer: Response) =>
  /frame-ancestors ([^;]+)/.exec(answer.headers.get('content-security-policy') ?? '')?.[1]

/** Status, sites and place of the page that a frame shows. */
async function shown(path: string): Promise<readonly unknown[]> {
  const answer = await page(path)
  return [answer.status, ancestors(answer), answer.headers.get('location')]
}

test('a frame is for its own sites and begins as it says, at once and without a restart', async () => {
  await open()
  const { id } = await make()
  const query = `?profile=${id}&center=47.1%2C8.25&zoom=11&layers=labels%2Clinks`
  expect(await shown(`/embed/map?profile=${id}`)).toStrictEqual([302, `'self' ${TOWN}`, query])
  expect(await shown(`/embed/map${query}`)).toStrictEqual([200, `'self' ${TOWN}`, null])
  expect(await shown(`/embed/node/!a0cb0001?profile=${id}&layers=`)).toStrictEqual([200, `'self' ${TOWN}`, null])
  const changed = { ...PROFILE, origins: [CLUB], center: null, zoom: null, layers: [] }
  expect((await admin.send('PUT', `${frames}/${id}`, changed)).status).toBe(200)
  expect(await shown(`/embed/map?profile=${id}`)).toStrictEqual([302, `'self' ${CLUB}`, `?profile=${id}&layers=`])
  expect((await admin.send('DELETE', `${frames}/${id}`)).status).toBe(204)
  expect(await shown(`/embed/map?profile=${id}`)).toStrictEqual([404, "'none'", null])
  const entries = auditRows(app).filter(({ action }) => action === 'embed_profile_updated')
  expect(entries.map(({ details }) => details)).toStrictEqual([
    { id, before: null, after: PROFILE },
    { id, before: PROFILE, after: changed },
    { id, before: changed, after: null },
  ])
})

test('a frame exists only while public access shows nodes, and no other page may be framed', async () => {
  await open()
  const { id } = await make()
  expect((await shown(`/map?profile=${id}`))[1]).toBe("'none'")
  expect((await shown(`/embed/users?profile=${id}&layers=`))[1]).toBe(`'self' ${TOWN}`)
  expect(ancestors(await page(`/api/nodes?profile=${id}`))).toBe("'none'")
  await admin.send('PUT', '/api/public-access', { enabled: false })
  expect(await shown(`/embed/map?profile=${id}`)).toStrictEqual([404, "'none'", null])
})

test('a browser that stored a frame asks for the sites that may show it now', async () => {
  await open()
  const { id } = await make()
  const stored = '"stored"'
  const pages = async (request: Request) =>
    new Response(null, { status: request.headers.get('if-none-match') === stored ? 304 : 200 })
  const again = () =>
    createApp(() => app.ports, pages).request(`/embed/map?profile=${id}&layers=`, {
      headers: { 'if-none-match': stored },
    })
  expect((await again()).status).toBe(200)
  await admin.send('DELETE', `${frames}/${id}`)
  expect((await again()).status).toBe(404)
})

test.each(['0123456789ab', '', '..', '%25', "x'; script-src *", '0123456789AB', '0123456789ab0'])(
  'no site may show a frame of an unknown profile: %j',
  async (id) => {
    await open({ EMBED_ORIGINS: TOWN })
    expect(await shown(`/embed/map?profile=${encodeURIComponent(id)}`)).toStrictEqual([404, "'none'", null])
    expect(await shown('/embed/map')).toStrictEqual([200, TOWN, null])
  },
)

test.each([
  ['http://town.example.org'],
  ['https://town.example.org/'],
  ['https://town.example.org/path'],
  ['https://*.example.org'],
  ['*'],
  ["'self'"],
  ['https:'],
  ['data:'],
  ['https://town.example.org; script-src *'],
  ['https://town.example.org;script-src'],
  ['https://town.example.org https://evil.example'],
  ['https://town.example.org\n'],
  ['https://town.example.org\r\nX-Other: 1'],
  ['https://town.example.org,https://evil.example'],
  ['https://user:secret@town.example.org'],
  ['https://TOWN.example.org'],
  ['https://town.example.org:443'],
  ['https://tówn.example.org'],
])('an origin that is none is refused: %j', async (origin) => {
  await open()
  const { id } = await make()
  for (const answer of [
    await admin.send('POST', frames, { ...PROFILE, origins: [origin] }),
    await admin.send('PUT', `${frames}/${id}`, { ...PROFILE, origins: [TOWN, origin] }),
  ]) {
    expect([answer.status, (await body(answer)).code]).toStrictEqual([400, 'invalid_request'])
  }
  expect((await body(await admin.send('GET', frames))).profiles).toStrictEqual([{ id, ...PROFILE }])
})

test.each([
  { origins: [] },
  { origins: [TOWN, TOWN] },
  { origins: Array.from({ length: 21 }, (_, i) => `https://s${i}.example.org`) },
  { name: ' ' },
  { center: { latitude: 91, longitude: 0 } },
  { zoom: 21 },
  { zoom: -1 },
  { layers: ['nodes'] },
  { layers: ['links', 'links'] },
  { width: 10 },
  { height: 4001 },
  { other: 1 },
])('%j is refused', async (wrong) => {
  await open()
  expect((await admin.send('POST', frames, { ...PROFILE, ...wrong })).status).toBe(400)
})

test('EMBED_ORIGINS limits what a frame may name, also one that was made before', async () => {
  await open({ EMBED_ORIGINS: `${TOWN},${CLUB}` })
  expect((await body(await admin.send('GET', frames))).limit).toStrictEqual([TOWN, CLUB])
  const { id } = await make({ origins: [TOWN, CLUB] })
  const refused = await admin.send('POST', frames, { ...PROFILE, origins: [TOWN, 'https://evil.example'] })
  expect([refused.status, (await body(refused)).detail]).toStrictEqual([
    400,
    'EMBED_ORIGINS does not allow https://evil.example',
  ])
  const narrow = { ...app.ports, config: { ...app.ports.config, EMBED_ORIGINS: [CLUB] } }
  const answer = await createApp(
    () => narrow,
    async () => new Response('page'),
  ).request(`/embed/map?profile=${id}&layers=`)
  expect(ancestors(answer)).toBe(`'self' ${CLUB}`)
})

test('only administrators with a fresh proof change frames', async () => {
  await open()
  const { id } = await make()
  const anna = await app.user('anna', { settings: { read: true, write: true }, users: { read: true, write: true } })
  const requests = [
    ['POST', frames, PROFILE],
    ['PUT', `${frames}/${id}`, { ...PROFILE, origins: [CLUB] }],
    ['DELETE', `${frames}/${id}`, undefined],
  ] as const
  for (const [method, path, data] of requests) {
    expect([method, (await anna.send(method, path, data)).status]).toStrictEqual([method, 403])
    expect([method, (await app.client().send(method, path, data)).status]).toStrictEqual([method, 401])
  }
  expect((await anna.send('GET', frames)).status).toBe(403)
  app.clock.advance(16 * 60_000)
  for (const [method, path, data] of requests) {
    const stale = await admin.send(method, path, data)
    expect([method, (await body(stale)).code]).toStrictEqual([method, 'reauthentication_required'])
  }
  expect((await body(await admin.send('GET', frames))).profiles).toStrictEqual([{ id, ...PROFILE }])
})

test('unknown frames are not found, and there are at most 50', async () => {
  await open()
  for (const id of ['0123456789ab', 'publicAccess', '%2e%2e', 'x'.repeat(100)]) {
    expect((await admin.send('PUT', `${frames}/${id}`, PROFILE)).status).toBe(404)
    expect((await admin.send('DELETE', `${frames}/${id}`)).status).toBe(404)
  }
  for (let i = 0; i < 50; i++) expect((await admin.send('POST', frames, PROFILE)).status).toBe(201)
  expect((await body(await admin.send('POST', frames, PROFILE))).detail).toMatch(/^There are 50 frames already/)
})
