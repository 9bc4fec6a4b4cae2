import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { keepUp } from '../../../../src/app/upkeep/upkeep.ts'
import { auditRows, type Client, START } from '../../../support/app.ts'
import {
  createTestMesh,
  FAR,
  packet,
  position,
  seconds,
  store,
  telemetry,
  type TestMesh,
  text,
  user,
} from '../../../support/mesh/mesh.ts'

let mesh: TestMesh
let admin: Client

beforeEach(async () => {
  mesh = await createTestMesh()
  admin = await mesh.app.admin()
  await store(mesh.ingest, [packet(user({ longName: 'Far Hill', shortName: 'FH' }))])
})
afterEach(() => mesh.app.close())

const get = (query = '', headers: Record<string, string> = {}) =>
  admin.send('GET', `/api/nodes${query}`, undefined, headers)

async function numbers(query: string): Promise<unknown[]> {
  const answer = await get(query)
  expect(answer.status).toBe(200)
  return Object(await answer.json()).map((node: Record<string, unknown>) => node['nodeNum'])
}

describe('GET /api/nodes', () => {
  it('is a bare array with all known fields', async () => {
    expect(await (await get()).json()).toStrictEqual([
      {
        nodeNum: FAR,
        nodeId: '!a0cb0002',
        longName: 'Far Hill',
        shortName: 'FH',
        nameAltered: false,
        status: null,
        hwModel: null,
        firmwareVersion: null,
        role: 'CLIENT',
        isLicensed: false,
        publicKey: null,
        position: null,
        deviceMetrics: null,
        snr: 6.25,
        rssi: -70,
        hopsAway: 0,
        lastHeard: START,
        lastHeardByRadio: START,
        lastHeardByBroker: null,
        firstHeard: START,
        viaMqtt: false,
        channel: 0,
        isFavorite: false,
        isIgnored: false,
        isMuted: false,
        isLocal: false,
        hidden: false,
        keyMismatch: false,
        signed: false,
        spoofSuspected: false,
        notes: '',
      },
    ])
  })

  it('has the latest heard first, those never heard last, and a limit', async () => {
    await store(mesh.ingest, [packet(text('x'), { from: 7 })], { at: START + 2 })
    await store(mesh.ingest, [packet(text('x'), { from: 8 })], { at: START + 1 })
    await store(mesh.ingest, [{ case: 'nodeInfo', value: { num: 9 } }])
    expect(await numbers('')).toStrictEqual([7, 8, FAR, 9])
    expect(await numbers('?limit=2')).toStrictEqual([7, 8])
    expect(await numbers('?limit=1')).toStrictEqual([7])
  })

  it('filters by time, age and a part of names or id', async () => {
    await store(mesh.ingest, [packet(user({ longName: '100% solar', shortName: 'Ü' }), { from: 7 })], {
      at: START + 60_000,
    })
    expect(await numbers(`?since=${START + 1}`)).toStrictEqual([7])
    expect(await numbers(`?since=${START}`)).toStrictEqual([7, FAR])
    expect(await numbers('?q=HILL')).toStrictEqual([FAR])
    expect(await numbers('?q=%25')).toStrictEqual([7])
    expect(await numbers('?q=!A0cb')).toStrictEqual([FAR])
    expect(await numbers(`?ids=7,!a0cb0002,9`)).toStrictEqual([7, FAR])
    expect(await numbers(`?ids=7&q=hill`)).toStrictEqual([])
    mesh.app.clock.advance(120_000)
    expect(await numbers('?activeWithin=60')).toStrictEqual([7])
    expect(await numbers('?activeWithin=120&q=hill')).toStrictEqual([FAR])
  })

  it.each([
    'limit=0',
    'limit=5001',
    'limit=1.5',
    'since=-1',
    'since=now',
    'q=',
    'activeWithin=0',
    'activeWithin=x',
    'ids=',
    'ids=7,',
    'ids=0',
    'ids=7;8',
    `ids=${Array.from({ length: 101 }, (_, index) => index + 1).join(',')}`,
  ])('refuses %s', async (query) => {
    const answer = await get(`?${query}`)
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ code: 'invalid_request' })
  })
})

describe('the ETag of GET /api/nodes', () => {
  const tagOf = async (query = '') => (await get(query)).headers.get('etag') ?? ''

  it('answers 304 without a body while nothing has changed', async () => {
    const etag = await tagOf()
    expect(etag).toMatch(/^"[^"]+"$/)
    for (const header of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await get('', { 'if-none-match': header })
      expect([answer.status, await answer.text(), answer.headers.get('etag')]).toStrictEqual([304, '', etag])
    }
    const other = await get('', { 'if-none-match': '"other", W/"another"' })
    expect([other.status, other.headers.get('etag')]).toStrictEqual([200, etag])
  })

  it('changes with each change of a node', async () => {
    const seen = new Set([await tagOf()])
    await store(mesh.ingest, [packet(text('x'))], { at: START + 1 })
    seen.add(await tagOf())
    await admin.send('PUT', `/api/nodes/${FAR}`, { notes: 'x' })
    seen.add(await tagOf())
    await admin.send('DELETE', `/api/nodes/${FAR}`)
    seen.add(await tagOf())
    expect(seen.size).toBe(4)
    expect(await numbers('')).toStrictEqual([])
  })

  it('differs between queries', async () => {
    const queries = ['', '?limit=1', '?q=hill', `?since=${START}`, '?activeWithin=60', '?ids=7']
    const tags = await Promise.all(queries.map(tagOf))
    expect(new Set(tags).size).toBe(queries.length)
  })

  it('changes when a node becomes inactive by time alone', async () => {
    const query = '?activeWithin=60'
    const etag = await tagOf(query)
    mesh.app.clock.advance(59_000)
    expect((await get(query, { 'if-none-match': etag })).status).toBe(304)
    mesh.app.clock.advance(2000)
    const answer = await get(query, { 'if-none-match': etag })
    expect([answer.status, await answer.json()]).toStrictEqual([200, []])
  })
})

describe('/api/nodes/:id', () => {
  it.each([String(FAR), '!a0cb0002', '!A0CB0002'])('is found as %s', async (id) => {
    const answer = await get(`/${id}`)
    expect([answer.status, await answer.json()]).toMatchObject([200, { nodeNum: FAR, longName: 'Far Hill' }])
  })

  it.each(['0', '01', '-1', '4294967295', '99999999999', '!a0cb00', 'a0cb0002', '1.0', '%20'])(
    'refuses %s',
    async (id) => {
      for (const method of ['GET', 'DELETE']) {
        const answer = await admin.send(method, `/api/nodes/${id}`)
        expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid_request' }])
      }
    },
  )

  it('is 404 for an unknown node', async () => {
    for (const [method, path, body] of [
      ['GET', '/api/nodes/5'],
      ['PUT', '/api/nodes/5', { notes: 'x' }],
      ['DELETE', '/api/nodes/5'],
      ['GET', '/api/nodes/!00000005/positions'],
    ] as const) {
      const answer = await admin.send(method, path, body)
      expect([answer.status, await answer.json()]).toMatchObject([404, { code: 'node_not_found' }])
    }
  })

  it('stores what users enter for a node, and records the change', async () => {
    const changes = { isFavorite: true, isIgnored: false, notes: 'on the roof\nsouth' }
    const answer = await admin.send('PUT', '/api/nodes/!a0cb0002', changes)
    expect([answer.status, await answer.json()]).toMatchObject([200, { nodeNum: FAR, ...changes }])
    const node = { nodeNum: FAR, nodeId: '!a0cb0002' }
    const change = { before: { isFavorite: false, notes: '' }, after: { isFavorite: true, notes: changes.notes } }
    const entry = { action: 'node_updated', username: 'admin', details: { ...node, ...change } }
    expect(auditRows(mesh.app).at(-1)).toStrictEqual(entry)
    const length = auditRows(mesh.app).length
    expect((await admin.send('PUT', `/api/nodes/${FAR}`, changes)).status).toBe(200)
    expect((await admin.send('PUT', `/api/nodes/${FAR}`, {})).status).toBe(200)
    expect(auditRows(mesh.app)).toHaveLength(length)
  })

  it.each([{ longName: 'x' }, { notes: 5 }, { notes: 'x'.repeat(2001) }, { notes: '\0' }, { isFavorite: 'yes' }, []])(
    'refuses %j',
    async (body) => {
      const answer = await admin.send('PUT', `/api/nodes/${FAR}`, body)
      expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid_request' }])
    },
  )

  it('deletes a node with its track and telemetry, and treats it as new afterwards', async () => {
    const place = position({ latitudeI: 1, longitudeI: 2 })
    await store(mesh.ingest, [
      packet(place),
      packet(place, { from: 7 }),
      packet(telemetry({ variant: { case: 'deviceMetrics', value: { voltage: 4 } } })),
    ])
    expect([mesh.count('positions'), mesh.count('telemetry')]).toStrictEqual([2, 1])
    expect((await admin.send('DELETE', `/api/nodes/${FAR}`)).status).toBe(204)
    expect(mesh.count('nodes')).toBe(1)
    await keepUp(mesh.app.ports, async () => true)
    expect([mesh.count('positions'), mesh.count('telemetry'), mesh.count('nodes')]).toStrictEqual([1, 0, 1])
    expect(auditRows(mesh.app).at(-1)).toStrictEqual({
      action: 'node_deleted',
      username: 'admin',
      details: { nodeNum: FAR, nodeId: '!a0cb0002', longName: 'Far Hill' },
    })
    expect((await admin.send('DELETE', `/api/nodes/${FAR}`)).status).toBe(404)
    await store(mesh.ingest, [packet(text('back'))], { at: START + 5 })
    expect(await mesh.node()).toMatchObject({ longName: null, position: null, firstHeard: START + 5 })
  })
})

describe('GET /api/nodes/:id/positions', () => {
  const MINUTE = 60_000
  const path = `/${FAR}/positions`

  beforeEach(async () => {
    for (const minute of [3, 1, 2, 4]) {
      const time = seconds(START - minute * MINUTE)
      await store(mesh.ingest, [packet(position({ latitudeI: minute * 1e7, longitudeI: 1e7, altitude: 9, time }))])
    }
  })

  it('is the track, oldest first', async () => {
    const track = Object(await (await get(path)).json())
    expect(track.positions.map((each: { latitude: number }) => each.latitude)).toStrictEqual([4, 3, 2, 1])
    const first = { time: START - 4 * MINUTE, latitude: 4, longitude: 1, altitude: 9, precisionBits: null }
    expect(track).toMatchObject({ positions: [first, {}, {}, {}], nextFrom: null })
  })

  it('covers a time range, and says where a cut track continues', async () => {
    const between = await (await get(`${path}?from=${START - 3 * MINUTE}&to=${START - 2 * MINUTE}`)).json()
    expect(between).toMatchObject({ positions: [{ latitude: 3 }, { latitude: 2 }], nextFrom: null })
    const cut = await (await get(`${path}?limit=3`)).json()
    expect(cut).toMatchObject({ positions: [{}, {}, { latitude: 2 }], nextFrom: START - MINUTE })
  })

  it.each(['from=-1', 'to=x', 'limit=0', 'limit=10001', 'from=5&to=4'])('refuses %s', async (query) => {
    const answer = await get(`${path}?${query}`)
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid_request' }])
  })
})

describe('access to nodes', () => {
  it.each([
    ['GET', '/api/nodes', undefined, 'read', 200],
    ['GET', `/api/nodes/${FAR}`, undefined, 'read', 200],
    ['GET', `/api/nodes/${FAR}/positions`, undefined, 'read', 200],
    ['PUT', `/api/nodes/${FAR}`, { notes: 'x' }, 'write', 200],
    ['DELETE', `/api/nodes/${FAR}`, undefined, 'write', 204],
  ] as const)('%s %s needs its permission, and changes are audited', async (method, path, body, action, status) => {
    const without = { nodes: { read: action === 'write', write: false } }
    const other = await mesh.app.user('other', without)
    const holder = await mesh.app.user('holder', { nodes: { read: true, write: action === 'write' } })
    const { length } = auditRows(mesh.app)
    expect((await mesh.app.client().send(method, path, body)).status).toBe(401)
    const refused = await other.send(method, path, body)
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      { code: 'forbidden', required: { resource: 'nodes', action } },
    ])
    expect(auditRows(mesh.app)).toHaveLength(length)
    expect(await mesh.node()).toMatchObject({ notes: '' })
    const signedIn = auditRows(mesh.app).length
    expect((await holder.send(method, path, body)).status).toBe(status)
    const actions = auditRows(mesh.app).slice(signedIn)
    const expected = { GET: [], PUT: ['node_updated'], DELETE: ['node_deleted'] }[method]
    expect(actions.map(({ action, username }) => [action, username])).toStrictEqual(
      expected.map((action) => [action, 'holder']),
    )
  })
})
