import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { eq } from 'drizzle-orm'
import * as z from 'zod'
import { nodes, positions } from '../../../../src/db/schema.ts'
import { listOperations } from '../../../../src/app/http/openapi/document.ts'
import { outcomeOf } from '../../../support/answers.ts'
import { auditRows, type Client, START } from '../../../support/app.ts'
import { createTestMesh, FAR, LOCAL, myInfo, packet, store, type TestMesh, text } from '../../../support/mesh/mesh.ts'
import { OPEN } from '../../../support/public-access.ts'

let mesh: TestMesh
let admin: Client
let anonymous: Client
beforeEach(async () => {
  mesh = await createTestMesh()
  admin = await mesh.app.admin()
  anonymous = mesh.app.client()
})
afterEach(() => mesh.app.close())

const READ = { read: true, write: false }
const NONE = { read: false, write: false }
const OFF = {
  enabled: false,
  permissions: { dashboard: NONE, nodes: READ, messages: NONE, info: NONE },
  channels: [],
  positionPrecisionBits: 13,
  hideSilentAfterDays: 30,
}
const put = (body: unknown) => admin.send('PUT', '/api/public-access', body)
const json = async (answer: Response | Promise<Response>) => Object(await (await answer).json())
const see = (path: string, headers: Record<string, string> = {}) => anonymous.send('GET', path, undefined, headers)

describe('the settings of public access', () => {
  test('are off by default, can be changed field by field, and each change is recorded once', async () => {
    expect(await json(admin.send('GET', '/api/public-access'))).toEqual(OFF)
    const answer = await put({ enabled: true, channels: [2, 0, 2] })
    const after = { ...OFF, enabled: true, channels: [0, 2] }
    expect([answer.status, await json(answer)]).toEqual([200, after])
    expect(auditRows(mesh.app).at(-1)).toEqual({
      action: 'public_access_updated',
      username: 'admin',
      details: { before: OFF, after },
    })
    const entries = auditRows(mesh.app).length
    expect((await put(after)).status).toBe(200)
    expect(auditRows(mesh.app).length).toBe(entries)
  })

  test.each([
    [{ enabled: 'yes' }],
    [{ permissions: { nodes: { read: true, write: true } } }],
    [{ permissions: { ...OPEN.permissions, nodes: { read: true, write: true } } }],
    [{ permissions: { ...OPEN.permissions, settings: READ } }],
    [{ channels: [-1] }],
    [{ channels: 'all' }],
    [{ positionPrecisionBits: 9 }],
    [{ positionPrecisionBits: 33 }],
    [{ hideSilentAfterDays: 0 }],
    [{ direct: READ }],
  ])('%j is refused', async (body) => {
    expect(await outcomeOf(put(body))).toBe('400 invalid_request')
    expect(await json(admin.send('GET', '/api/public-access'))).toEqual(OFF)
  })

  test('need a sign-in within the last quarter of an hour', async () => {
    mesh.app.clock.advance(16 * 60_000)
    expect(await outcomeOf(put({ enabled: true }))).toBe('403 reauthentication_required')
  })
})

describe('an anonymous caller', () => {
  const PLACE = { latitude: 50.1234567, longitude: 8.7654321, altitude: 123, precisionBits: 32, positionTime: START }
  beforeEach(async () => {
    await store(mesh.ingest, [
      myInfo,
      packet(text('for the town'), { channel: 0 }),
      packet(text('for the family'), { channel: 2 }),
      packet(text('for one alone'), { channel: 0, to: LOCAL }),
    ])
    const heard = { firstHeard: START, lastHeard: START, notes: 'under the roof', isFavorite: true }
    await mesh.app.store.db
      .insert(nodes)
      .values([
        { nodeNum: 101, longName: 'Shown', ...heard, ...PLACE, positionChannel: 0, snr: 5, rssi: -70 },
        {
          nodeNum: 102,
          longName: 'Told elsewhere',
          ...heard,
          ...PLACE,
          positionChannel: 2,
          metricsChannel: 2,
          voltage: 4,
        },
        { nodeNum: 103, longName: 'Not known where', ...heard, ...PLACE },
        { nodeNum: 104, longName: 'Hidden', ...heard, ...PLACE, positionChannel: 0, isHidden: true },
        { nodeNum: 105, longName: 'Ignored', ...heard, ...PLACE, positionChannel: 0, isIgnored: true },
        {
          nodeNum: 106,
          longName: 'Silent',
          ...heard,
          ...PLACE,
          positionChannel: 0,
          lastHeard: START - 31 * 86_400_000,
        },
        { nodeNum: 107, longName: 'Heard elsewhere', ...heard, ...PLACE, positionChannel: 0 },
      ])
      .run()
    hearAll(101, 199)
    mesh.app.store.sqlite.exec(
      'update channel_hearings set channel = 2 where node_id in (select id from nodes where node_num = 107)',
    )
  })
  /** Nodes with these numbers were heard on the first channel. */
  const hearAll = (from: number, to: number) =>
    mesh.app.store.sqlite.exec(`insert into channel_hearings
      select id, 0, first_heard, last_heard, 1, 0 from nodes where node_num between ${from} and ${to}`)
  const nodesSeen = async () => {
    const list = z.array(z.looseObject({ nodeNum: z.int() })).parse(await (await see('/api/nodes')).json())
    return new Map(list.filter(({ nodeNum }) => nodeNum > 100 && nodeNum < 200).map((node) => [node.nodeNum, node]))
  }

  test('sees nothing while public access is off, and the chosen data from the next request on', async () => {
    expect(await outcomeOf(see('/api/nodes'))).toBe('401 unauthenticated')
    await put({ ...OPEN, permissions: { ...OPEN.permissions, messages: NONE } })
    expect(await outcomeOf(see('/api/nodes'))).toBe('200')
    expect(await outcomeOf(see('/api/messages'))).toBe('401 unauthenticated')
    expect(await json(see('/api/auth/status'))).toMatchObject({
      authenticated: false,
      user: null,
      permissions: { nodes: READ, messages: NONE, dashboard: READ, info: READ, settings: NONE, automation: NONE },
      scope: { channels: { read: [0], write: [] }, direct: NONE },
    })
    await put({ enabled: false })
    expect(await outcomeOf(see('/api/nodes'))).toBe('401 unauthenticated')
    expect((await json(see('/api/auth/status'))).permissions.nodes).toEqual(NONE)
  })

  test('sees the nodes without notes, marks, exact positions, and data of other channels', async () => {
    await put(OPEN)
    const seen = await nodesSeen()
    expect(new Set(seen.keys())).toEqual(new Set([101, 102, 103]))
    expect(seen.get(101)).toMatchObject({ notes: '', isFavorite: false, snr: null, rssi: null, publicKey: null })
    const { position } = Object(seen.get(101))
    expect(position).toMatchObject({ altitude: null, precisionBits: 13 })
    const cell = 2 ** 19 / 1e7
    expect(position.latitude).not.toBe(PLACE.latitude)
    expect(Math.abs(position.latitude - PLACE.latitude)).toBeLessThanOrEqual(cell / 2)
    expect(Math.abs(position.longitude - PLACE.longitude)).toBeLessThanOrEqual(cell / 2)
    expect(seen.get(102)).toMatchObject({ position: null, deviceMetrics: null })
    expect(seen.get(103)).toMatchObject({ position: null })
    for (const hidden of [104, 105, 106, 107])
      expect(await outcomeOf(see(`/api/nodes/${hidden}`))).toBe('404 node_not_found')
    expect(await json(see('/api/nodes/101'))).toMatchObject({ longName: 'Shown', notes: '', position })
    await put({ hideSilentAfterDays: null, positionPrecisionBits: null })
    expect(new Set((await nodesSeen()).keys())).toEqual(new Set([101, 102, 103, 106]))
    expect((await nodesSeen()).get(101)).toMatchObject({ position: { latitude: PLACE.latitude, altitude: 123 } })
  })

  test('sees the rounded track on the shown channels', async () => {
    const insert = mesh.app.store.sqlite.prepare(
      `insert into positions (node_id, t, latitude, longitude, channel) select id, ?, ?, 8.5, ? from nodes where node_num = 101`,
    )
    for (const [t, latitude, channel] of [
      [1, 50.001, 0],
      [2, 50.002, 0],
      [3, 51.5, 2],
      [4, 52.5, 0],
      [5, 53.5, -1],
    ])
      insert.run(t, latitude, channel)
    await put(OPEN)
    const { positions } = await json(see('/api/nodes/101/positions'))
    expect(positions.map(({ time }: { time: number }) => time)).toEqual([1, 4])
    expect(JSON.stringify(positions)).not.toMatch(/50\.001|52\.5[,}]/)
  })

  test('sees messages of the shown channels, never direct ones, and no id that counts the others', async () => {
    await put(OPEN)
    const { messages, nextBefore } = await json(see('/api/messages'))
    expect(messages.map(({ text: said }: { text: string }) => said)).toEqual(['for the town'])
    expect(messages[0]).toMatchObject({ rxSnr: null, sentBy: null, radio: null, direction: 'in', fromNodeNum: FAR })
    expect([messages[0].id > 1_000_000, nextBefore]).toEqual([true, null])
    expect((await json(see('/api/messages?channel=2'))).messages).toEqual([])
    expect(await outcomeOf(see('/api/messages?q=family'))).toBe('400 invalid_request')
  })

  test('is refused everything outside the list of public routes, which is complete', async () => {
    await put(OPEN)
    const all = listOperations(mesh.app.routes)
    const shared = all.filter(({ descriptions }) => descriptions.some((one) => one.shared))
    expect(shared.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual([
      'GET /api/channels',
      'GET /api/dashboard',
      'GET /api/events',
      'GET /api/info',
      'GET /api/map',
      'GET /api/map/archive',
      'GET /api/map/overlays',
      'GET /api/map/overlays/:id',
      'GET /api/map/region',
      'GET /api/map/region.pmtiles',
      'GET /api/messages',
      'GET /api/neighbors',
      'GET /api/nodes',
      'GET /api/nodes/:id',
      'GET /api/nodes/:id/positions',
      'GET /api/telemetry',
      'GET /api/traceroutes',
      'GET /api/waypoints',
    ])
    const others = all.filter((route) => !shared.includes(route) && route.rule.kind !== 'anyone')
    for (const { method, path } of others) {
      const url = path.replace(/:(\w+)(?:\{.*?\})?/g, '101')
      const body = method === 'GET' || method === 'DELETE' ? undefined : {}
      expect([path, await outcomeOf(anonymous.send(method, url, body))]).toEqual([path, '401 unauthenticated'])
    }
  })

  test('gets bodies that caches may share for a moment; a request with credentials gets its own', async () => {
    await put(OPEN)
    const answer = await see('/api/nodes')
    expect(answer.headers.get('cache-control')).toBe('public, max-age=5')
    expect(answer.headers.get('vary')).toMatch(/^Cookie, Authorization,/)
    expect([answer.headers.get('x-robots-tag'), answer.headers.get('set-cookie')]).toEqual(['noindex', null])
    const etag = String(answer.headers.get('etag'))
    expect((await see('/api/nodes', { 'if-none-match': etag })).status).toBe(304)
    const planted = await see('/api/nodes', { cookie: 'mesh_session=planted.by-somebody' })
    expect([planted.status, planted.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(await planted.text()).toBe(await answer.text())
    expect((await admin.send('GET', '/api/nodes')).headers.get('cache-control')).toBe('no-store')
    expect(await outcomeOf(see('/api/nodes', { authorization: 'Bearer mm_bad' }))).toBe('401 unauthenticated')
    expect(await outcomeOf(see('/api/nodes?limit=1&notes=1'))).toBe('400 invalid_request')
  })

  test('has a limit per address, which does not affect other addresses', async () => {
    await put(OPEN)
    const outcomes = new Map<string, number>()
    for (let n = 0; n < 200; n++) {
      const outcome = await outcomeOf(see('/api/nodes'))
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    }
    expect(Object.fromEntries(outcomes)).toEqual({ '200': 120, '429 rate_limited': 80 })
    mesh.app.ip = '192.0.2.2'
    expect(await outcomeOf(see('/api/nodes'))).toBe('200')
    expect(await outcomeOf(admin.send('GET', '/api/nodes'))).toBe('200')
  })

  test('gets every limit of a list from one cached body, whoever asks', async () => {
    await put(OPEN)
    await fill(300)
    const whole = z.array(z.unknown()).parse(await json0(see('/api/nodes')))
    const etags = new Set<string | null>()
    for (let limit = 1; limit <= 200; limit++) {
      mesh.app.ip = `192.0.2.${limit}`
      const answer = await see(`/api/nodes?limit=${limit}`)
      expect([limit, answer.status]).toEqual([limit, 200])
      etags.add(answer.headers.get('etag'))
      if (limit % 50 === 0) expect(await answer.json()).toEqual(whole.slice(0, limit))
      else await answer.arrayBuffer()
    }
    expect(etags.size).toBe(200)
    const cut = await see('/api/nodes?limit=7')
    const again = await see('/api/nodes?limit=7', { 'if-none-match': String(cut.headers.get('etag')) })
    expect([again.status, (await see('/api/nodes?limit=5000')).headers.get('etag')]).toEqual([
      304,
      (await see('/api/nodes')).headers.get('etag'),
    ])
    expect(await json(see('/api/messages?limit=1'))).toMatchObject({ messages: [{ text: 'for the town' }] })
    expect(await json(see('/api/messages'))).toMatchObject({ nextBefore: null })
  })

  test('has a budget of time for bodies of its own, the networks of IPv6 as one address', async () => {
    await put(OPEN)
    await walk(1000)
    // Each body takes 3 ms or more, however fast this machine is.
    let at = 0
    const watch = vi.spyOn(performance, 'now').mockImplementation(() => (at += 3))
    onTestFinished(() => watch.mockRestore())
    const outcomes = new Set<string>()
    for (let n = 0; n < 119 && outcomes.size < 2; n++) {
      mesh.app.ip = `2001:db8:0:1::${n.toString(16)}`
      outcomes.add(await track(n))
    }
    expect([...outcomes]).toEqual(['200', '429 rate_limited'])
    // What is kept still comes, and so does anything for others.
    expect(await outcomeOf(see('/api/nodes'))).toBe('200')
    mesh.app.ip = '2001:db8:0:2::1'
    expect(await track(9999)).toBe('200')
    expect(await outcomeOf(admin.send('GET', '/api/nodes/101/positions?from=7'))).toBe('200')
  })

  test('who asks for much at once uses only their own share', async () => {
    await put(OPEN)
    await walk(1000)
    mesh.app.ip = '2001:db8:0:1::1'
    const greedy = await Promise.all(Array.from({ length: 110 }, (_, n) => track(n)))
    expect(greedy).toContain('200')
    const others: string[] = []
    for (let n = 0; n < 50; n++) {
      mesh.app.ip = `2001:db8:0:${(n + 2).toString(16)}::1`
      others.push(await track(1000 + n))
    }
    expect(others.filter((outcome) => outcome !== '200')).toEqual([])
  })

  test('a body that is refused to one caller is made for the next one who wants the same', async () => {
    await put(OPEN)
    await walk(1000)
    let at = 0
    const watch = vi.spyOn(performance, 'now').mockImplementation(() => (at += 30))
    onTestFinished(() => watch.mockRestore())
    const ask = (n: number, network: number) => {
      mesh.app.ip = `2001:db8:0:${network}::1`
      return track(n)
    }
    for (let n = 0; (await ask(n, 1)) === '200'; n++);
    // Both want the body while it is under way.
    expect(await Promise.all([ask(5000, 1), ask(5000, 2)])).toEqual(['429 rate_limited', '200'])
  })

  test('shares such a budget with all others; cached answers are still served', async () => {
    await put(OPEN)
    const outcomes = new Set<string>()
    for (let n = 0; n < 4000 && outcomes.size < 2; n++) {
      mesh.app.ip = `198.51.${n >> 8}.${n & 255}`
      outcomes.add(await track(n))
    }
    expect([...outcomes]).toEqual(['200', '429 rate_limited'])
    expect(await outcomeOf(see('/api/nodes'))).toBe('200')
    expect(await outcomeOf(see('/api/nodes?limit=2'))).toBe('200')
    mesh.app.clock.advance(60_000)
    expect(await track(9999)).toBe('200')
  })

  const track = (n: number) => outcomeOf(see(`/api/nodes/101/positions?from=${n}`))
  const walk = async (count: number) => {
    const [node] = await mesh.app.store.db.select().from(nodes).where(eq(nodes.nodeNum, 101)).all()
    const way = Array.from({ length: count }, (_, n) => ({
      nodeId: node?.id ?? 0,
      t: START - n * 1000,
      latitude: 52 + n / 100,
      longitude: 13,
      channel: 0,
    }))
    for (let from = 0; from < count; from += 100) {
      await mesh.app.store.db
        .insert(positions)
        .values(way.slice(from, from + 100))
        .run()
    }
  }
  const fill = async (count: number) => {
    await mesh.app.store.db
      .insert(nodes)
      .values(
        Array.from({ length: count }, (_, n) => ({
          nodeNum: 10_000 + n,
          longName: `Straße ${n}`,
          firstHeard: START,
          lastHeard: START - n,
        })),
      )
      .run()
    hearAll(10_000, 10_000 + count)
  }
  const json0 = async (answer: Response | Promise<Response>) => (await answer).json()
})
