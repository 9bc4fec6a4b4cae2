import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodes, traceroutes } from '../../../../src/db/schema.ts'
import { type Client, createTestApp, START, type TestApp } from '../../../support/app.ts'

const READ = { read: true, write: false }
const [HALL, HUT, CASTLE, TOWER, SECRET] = [11, 12, 13, 14, 15]

let app: TestApp
let admin: Client
let town: Client
beforeAll(async () => {
  app = await createTestApp()
  admin = await app.admin()
  const user = await app.user('town', { info: READ, nodes: READ })
  town = user
  const scope = { channels: { read: [0], write: [] }, direct: READ }
  const answer = await admin.send('PUT', `/api/users/${user.id}/permissions`, { permissions: {}, scope })
  expect(answer.status).toBe(200)
  await app.store.db.insert(nodes).values({ nodeNum: SECRET, firstHeard: START, isHidden: true })
  const trace = (requestId: number, channel: number, hops: number[] | null, more: object = {}) => ({
    fromNodeNum: HALL,
    toNodeNum: HUT,
    requestId,
    timestamp: START + requestId,
    answeredAt: hops === null ? null : START + requestId,
    state: hops === null ? ('unknown' as const) : ('delivered' as const),
    route: hops === null ? null : JSON.stringify({ route: hops, snrTowards: [], routeBack: [], snrBack: [] }),
    requestedBy: 'admin',
    channel,
    ...more,
  })
  await app.store.db
    .insert(traceroutes)
    .values([
      trace(1, 0, [CASTLE, SECRET]),
      trace(2, 0, [TOWER], { fromNodeNum: CASTLE, requestedBy: null }),
      trace(3, 2, [TOWER]),
      trace(4, 0, null),
      trace(5, 0, [CASTLE]),
    ])
})
afterAll(() => app.close())

async function list(client: Client, query = ''): Promise<Record<string, unknown>[]> {
  const answer = await client.send('GET', `/api/traceroutes${query}`)
  expect(answer.status).toBe(200)
  return Object(await answer.json()).traceroutes
}

test('each answer has the route before it between the same ends, as far as the viewer may see that', async () => {
  const previousOf = async (client: Client) =>
    (await list(client)).map(({ requestId, previous }) => [requestId, Object(previous).route ?? previous])
  expect(await previousOf(admin)).toStrictEqual([
    [5, [TOWER]],
    [4, undefined],
    [3, [CASTLE, SECRET]],
    [2, null],
    [1, null],
  ])
  // Nothing of the one on another channel, and no number of the hidden node.
  expect(await previousOf(town)).toStrictEqual([
    [5, [CASTLE, null]],
    [4, undefined],
    [2, null],
    [1, null],
  ])
})

test('however many traceroutes to a node others make up, only some are searched for the one before', async () => {
  const LAKE = 16
  const to = (requestId: number, fromNodeNum: number) => ({
    fromNodeNum,
    toNodeNum: LAKE,
    requestId,
    channel: 0,
    timestamp: START,
    answeredAt: START,
    state: 'delivered' as const,
    route: JSON.stringify({ route: [fromNodeNum], snrTowards: [], routeBack: [], snrBack: [] }),
  })
  const others = (first: number, count: number) => Array.from({ length: count }, (_, i) => to(first + i, 1000 + i))
  const add = (rows: ReturnType<typeof to>[]) => app.store.db.insert(traceroutes).values(rows)
  const latest = async () => Object((await list(admin, `?node=${LAKE}&limit=1`))[0]?.['previous']).route
  await add([to(100, HALL), ...others(200, 199), to(101, HALL)])
  expect(await latest()).toStrictEqual([HALL])
  await add([...others(400, 200), to(102, HALL)])
  expect(await latest()).toBeUndefined()
  await app.store.db.delete(traceroutes).where(eq(traceroutes.toNodeNum, LAKE))
})

test('own and overheard ones, with and without a reply, and those between two nodes', async () => {
  const idsOf = async (query: string) => (await list(admin, query)).map(({ requestId }) => requestId)
  expect(await idsOf('?origin=own')).toEqual([5, 4, 3, 1])
  expect(await idsOf('?origin=overheard')).toEqual([2])
  expect(await idsOf('?answered=false')).toEqual([4])
  expect(await idsOf('?answered=true&origin=own')).toEqual([5, 3, 1])
  expect(await idsOf(`?node=${HUT}&with=${CASTLE}`)).toEqual([2])
  expect((await admin.send('GET', '/api/traceroutes?origin=nobody')).status).toBe(400)
})

test('an unchanged list is an empty answer', async () => {
  for (const path of ['/api/traceroutes', '/api/neighbors']) {
    const etag = (await admin.send('GET', path)).headers.get('etag') ?? ''
    expect((await admin.send('GET', path, undefined, { 'if-none-match': etag })).status).toBe(304)
  }
})

test('a list is narrowed to the time of the requests, and goes on below what was searched', async () => {
  const ids = async (query: string) => (await list(admin, query)).map(({ requestId }) => requestId)
  expect(await ids(`?since=${START + 2}&until=${START + 4}`)).toEqual([3, 2])
  expect(await ids(`?since=${START + 4}&node=${HALL}`)).toEqual([5, 4])
  expect(await ids(`?until=${START + 1}`)).toEqual([])
  const first = await admin.send('GET', `/api/traceroutes?since=${START + 2}&limit=1`)
  const { nextBefore } = Object(await first.json())
  expect(await ids(`?since=${START + 2}&limit=1&before=${nextBefore}`)).toEqual([4])
  // Between far ids, nothing is read for long.
  const [row] = await app.store.db.select().from(traceroutes).where(eq(traceroutes.requestId, 5)).all()
  const far = { ...row, id: 900_000, requestId: 900, timestamp: START + 900 }
  if (row !== undefined) await app.store.db.insert(traceroutes).values({ ...row, ...far })
  const page = Object(await (await admin.send('GET', `/api/traceroutes?until=${START + 2}`)).json())
  expect(page).toEqual({ traceroutes: [], nextBefore: 800_001 })
  await app.store.db.delete(traceroutes).where(eq(traceroutes.requestId, 900))
})
