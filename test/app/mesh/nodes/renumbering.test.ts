import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { followRenumbered } from '../../../../src/app/mesh/nodes/identity/renumbering.ts'
import { rollUp } from '../../../../src/app/mesh/telemetry/roll-up.ts'
import { type Client, START } from '../../../support/app.ts'
import { createSigner } from '../../../support/mesh/signer.ts'
import {
  createTestMesh,
  nodeInfo,
  packet,
  position,
  seconds,
  store,
  telemetry,
  type TestMesh,
  text,
  user,
} from '../../../support/mesh/mesh.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const OLD = 0xc0000001
const NEW = 0xc0000002
const NEWEST = 0xc0000003

let mesh: TestMesh
let admin: Client

beforeEach(async () => {
  mesh = await createTestMesh()
  admin = await mesh.app.admin()
})
afterEach(() => mesh.app.close())

const key = (n: number) => new Uint8Array(32).fill(n)

/** A node sends its name, its position and its battery level. */
async function speak(
  from: number,
  at: number,
  { publicKey = key(1), level = 50, longName = `Node ${from % 16}` } = {},
) {
  const power = { case: 'deviceMetrics', value: { batteryLevel: level } } as const
  const said = [
    user({ longName, shortName: 'N', publicKey }),
    position({ latitudeI: level * 10_000_000, longitudeI: 10_000_000, time: seconds(at) }),
    telemetry({ time: seconds(at), variant: power }),
    text('hello'),
  ]
  await store(
    mesh.ingest,
    said.map((data) => packet(data, { from })),
    { at },
  )
}

async function follow(at: number): Promise<void> {
  await followRenumbered({ store: mesh.app.store, log: mesh.app.ports.log, now: () => at }, async () => true)
}

async function get(path: string): Promise<Record<string, unknown> | null> {
  const answer = await admin.send('GET', path)
  return answer.status === 404 ? null : Object(await answer.json())
}
const node = (nodeNum: number) => get(`/api/nodes/${nodeNum}`)

/** The battery levels and latitudes of a node, oldest first. */
async function history(nodeNum: number): Promise<{ levels: number[]; latitudes: number[] }> {
  const range = `nodeId=${nodeNum}&metric=deviceMetrics.batteryLevel&from=${START - DAY}&to=${START + DAY}`
  const { series } = Object(await get(`/api/telemetry?${range}`))
  const { positions: points } = Object(await get(`/api/nodes/${nodeNum}/positions`))
  return {
    levels: series.map(([, level]: [number, number]) => level),
    latitudes: points.map(({ latitude }: { latitude: number }) => latitude),
  }
}

describe('a node with a new number and its old key', () => {
  beforeEach(async () => {
    await speak(OLD, START, { level: 10 })
    await admin.send('PUT', `/api/nodes/${OLD}`, { notes: 'on the mast', isFavorite: true })
    await speak(NEW, START + HOUR, { level: 20, longName: 'Renewed' })
  })

  it('keeps its number while it is our own radio, which reports its number itself', async () => {
    await store(mesh.ingest, [{ case: 'myInfo', value: { myNodeNum: OLD } }], { at: START })
    const told = { longName: 'Ours', publicKey: key(1) }
    await store(mesh.ingest, [nodeInfo({ num: OLD, user: told, lastHeard: seconds(START) })], { at: START })
    await speak(NEW, START + HOUR)
    await follow(START + 3 * HOUR)
    expect(await node(OLD)).toMatchObject({ nodeNum: OLD, longName: 'Ours', isLocal: true })
    await store(mesh.ingest, [{ case: 'myInfo', value: { myNodeNum: NEW } }], { at: START + 3 * HOUR })
    await follow(START + 3 * HOUR)
    expect(await node(OLD)).toMatchObject({ nodeNum: NEW })
  })

  it("keeps its history and users' entries, once the old number was silent for an hour", async () => {
    await follow(START + 2 * HOUR - 1)
    expect([await node(OLD), await node(NEW)]).toMatchObject([
      { notes: 'on the mast' },
      { notes: '', formerNodeNums: [] },
    ])
    await follow(START + 2 * HOUR)
    // The new number is also found by the old one.
    expect(await node(OLD)).toStrictEqual(await node(NEW))
    expect(await history(OLD)).toStrictEqual(await history(NEW))
    expect((await admin.send('PUT', `/api/nodes/${OLD}`, { notes: 'x' })).status).toBe(404)
    expect((await admin.send('DELETE', `/api/nodes/${OLD}`)).status).toBe(404)
    expect(await node(NEW)).toMatchObject({
      notes: 'on the mast',
      isFavorite: true,
      longName: 'Renewed',
      firstHeard: START,
      lastHeard: START + HOUR,
      position: { latitude: 20 },
      deviceMetrics: { batteryLevel: 20 },
      formerNodeNums: [OLD],
    })
    expect(await history(NEW)).toStrictEqual({ levels: [10, 20], latitudes: [10, 20] })
    const { messages } = Object(await get('/api/messages'))
    expect(messages).toMatchObject([{ fromNodeNum: NEW }, { fromNodeNum: OLD }])
    await speak(NEW, START + 3 * HOUR, { level: 30 })
    await follow(START + 5 * HOUR)
    expect(await history(NEW)).toMatchObject({ levels: [10, 20, 30] })
    expect((await mesh.nodes()).map((each) => each['nodeNum'])).toStrictEqual([NEW])
    expect(mesh.count('telemetry')).toBe(3)
  })

  it('goes back when the old number is heard again, and is not followed a second time', async () => {
    await rollUp(mesh.app.store, async () => true)
    await follow(START + 2 * HOUR)
    await speak(NEW, START + 3 * HOUR, { level: 30, longName: 'Impostor' })
    await speak(OLD, START + 4 * HOUR, { level: 40, longName: 'Original' })
    for (let hours = 4; hours < 10; hours++) await follow(START + hours * HOUR)
    expect(await node(OLD)).toMatchObject({
      notes: 'on the mast',
      isFavorite: true,
      longName: 'Original',
      firstHeard: START,
      position: { latitude: 40 },
      formerNodeNums: [],
    })
    expect(await node(NEW)).toMatchObject({
      notes: '',
      isFavorite: false,
      longName: 'Impostor',
      firstHeard: START + HOUR,
      position: { latitude: 30 },
      formerNodeNums: [],
    })
    expect(await history(OLD)).toStrictEqual({ levels: [10, 40], latitudes: [10, 40] })
    expect(await history(NEW)).toStrictEqual({ levels: [20, 30], latitudes: [20, 30] })
    await rollUp(mesh.app.store, async () => true)
    expect(mesh.count('telemetry_hourly')).toBe(4)
    expect(mesh.app.logged.filter((line) => line.includes('heard under its old one'))).toHaveLength(1)
  })

  it('is followed twice, and each number that is heard again gets its own data back', async () => {
    await follow(START + 2 * HOUR)
    await speak(NEWEST, START + 3 * HOUR, { level: 30 })
    await follow(START + 4 * HOUR)
    expect(await node(NEWEST)).toMatchObject({ formerNodeNums: [OLD, NEW], notes: 'on the mast' })
    await speak(NEW, START + 5 * HOUR, { level: 50 })
    await follow(START + 5 * HOUR)
    expect(await node(NEW)).toMatchObject({ formerNodeNums: [OLD], notes: 'on the mast' })
    expect(await node(NEWEST)).toMatchObject({ formerNodeNums: [], notes: '' })
    expect(await history(NEW)).toMatchObject({ levels: [10, 20, 50] })
    expect(await history(NEWEST)).toMatchObject({ levels: [30] })
  })

  it('stays one node if a radio remembers the old number, and others do not see two', async () => {
    await follow(START + 2 * HOUR)
    await admin.send('PUT', `/api/nodes/${NEW}`, { notes: 'moved' })
    const remembered = { num: OLD, lastHeard: seconds(START), user: { longName: 'Of old', shortName: 'O' } }
    await store(mesh.ingest, [nodeInfo(remembered)], { at: START + 3 * HOUR })
    await follow(START + 3 * HOUR)
    expect((await mesh.nodes()).map((each) => each['nodeNum'])).toStrictEqual([NEW])
    expect(await node(NEW)).toMatchObject({
      longName: 'Renewed',
      notes: 'moved',
      formerNodeNums: [OLD],
      firstHeard: START,
    })
    expect(mesh.count('renumberings')).toBe(1)
  })

  it('is followed once by simultaneous runs', async () => {
    await Promise.all([follow(START + 2 * HOUR), follow(START + 2 * HOUR)])
    expect(mesh.count('renumberings')).toBe(1)
    expect(await node(NEW)).toMatchObject({ notes: 'on the mast', formerNodeNums: [OLD] })
    await speak(OLD, START + 3 * HOUR, { level: 30 })
    await Promise.all([follow(START + 3 * HOUR), follow(START + 3 * HOUR)])
    expect(await node(OLD)).toMatchObject({ notes: 'on the mast', firstHeard: START })
    expect(await node(NEW)).toMatchObject({ notes: '', firstHeard: START + HOUR })
    expect([await history(OLD), await history(NEW)]).toMatchObject([{ levels: [10, 30] }, { levels: [20] }])
  })

  it('is deleted with its former numbers', async () => {
    await follow(START + 2 * HOUR)
    expect((await admin.send('DELETE', `/api/nodes/${NEW}`)).status).toBe(204)
    await speak(NEW, START + 3 * HOUR)
    await speak(OLD, START + 3 * HOUR)
    await follow(START + 3 * HOUR)
    expect([await node(OLD), await node(NEW)]).toMatchObject([{ formerNodeNums: [] }, { formerNodeNums: [] }])
  })
})

describe('a long history', () => {
  const LONG = 1300

  beforeEach(async () => {
    const power = (level: number) => ({ case: 'deviceMetrics', value: { batteryLevel: level } }) as const
    const years = Array.from({ length: LONG }, (_, n) => START - (LONG - n) * HOUR)
    for (const at of years) {
      const said = [telemetry({ time: seconds(at), variant: power(10) })]
      await store(
        mesh.ingest,
        said.map((data) => packet(data, { from: OLD })),
        { at },
      )
    }
    await speak(OLD, START, { level: 10 })
    await rollUp(mesh.app.store, async () => true)
    await admin.send('PUT', `/api/nodes/${OLD}`, { notes: 'on the mast' })
    await speak(NEW, START + HOUR, { level: 20 })
  })

  const rows = (table: string, nodeNum: number) =>
    mesh.app.store.sqlite
      .prepare(`select count(*) from ${table} where node_id = (select id from nodes where node_num = ?)`)
      .pluck()
      .get(nodeNum)
  const followSlices = async (at: number, slices: number) => {
    let left = slices
    const needs = { store: mesh.app.store, log: mesh.app.ports.log, now: () => at }
    await followRenumbered(needs, async () => --left > 0)
  }

  it('is moved in slices, as many per run as time allows', async () => {
    const deleted = () => LONG + 1 - Number(rows('telemetry_hourly', OLD))
    await followSlices(START + 2 * HOUR, 1)
    expect(deleted()).toBe(500)
    await followSlices(START + 2 * HOUR, 2)
    expect(deleted()).toBe(LONG + 1)
    expect(rows('telemetry', OLD)).toBe(LONG + 1)
    for (let run = 0; run < 20; run++) await followSlices(START + 2 * HOUR, 1)
    await rollUp(mesh.app.store, async () => true)
    expect(await mesh.nodes()).toHaveLength(1)
    expect([rows('telemetry', NEW), mesh.count('telemetry')]).toStrictEqual([LONG + 2, LONG + 2])
    expect([rows('telemetry_hourly', NEW), mesh.count('telemetry_hourly')]).toStrictEqual([LONG + 2, LONG + 2])
    const sums = mesh.app.store.sqlite.prepare('select sum(n) from telemetry_daily').pluck()
    expect([sums.get(), mesh.count('telemetry_dirty')]).toStrictEqual([LONG + 2, 0])
  })

  it('returns completely if the old number is heard during the move', async () => {
    await followSlices(START + 2 * HOUR, 6)
    expect([rows('telemetry', OLD), rows('telemetry', NEW)]).toStrictEqual([LONG + 1 - 500, 501])
    await speak(OLD, START + 2 * HOUR, { level: 30 })
    for (let run = 0; run < 20; run++) await followSlices(START + 2 * HOUR, 1)
    await rollUp(mesh.app.store, async () => true)
    expect([rows('telemetry', OLD), rows('telemetry', NEW)]).toStrictEqual([LONG + 2, 1])
    expect([rows('telemetry_hourly', OLD), rows('telemetry_hourly', NEW)]).toStrictEqual([LONG + 2, 1])
    expect(await node(OLD)).toMatchObject({ notes: 'on the mast', formerNodeNums: [] })
    expect(await node(NEW)).toMatchObject({ notes: '', formerNodeNums: [], firstHeard: START + HOUR })
  })

  it('returns with its days even if the measurements themselves are no longer kept', async () => {
    await followSlices(START + 2 * HOUR, 50)
    await rollUp(mesh.app.store, async () => true)
    mesh.app.store.sqlite.exec('delete from telemetry')
    await speak(OLD, START + 40 * DAY)
    await followSlices(START + 40 * DAY, 50)
    await rollUp(mesh.app.store, async () => true)
    const days = mesh.app.store.sqlite
      .prepare(
        'select node_num, sum(n) as n from telemetry_daily join nodes on nodes.id = node_id group by 1 order by 1',
      )
      .all()
    // The day on which the number changed belongs to both: what was counted once stays counted.
    expect(days).toStrictEqual([
      { node_num: OLD, n: LONG + 3 },
      { node_num: NEW, n: 1 },
    ])
  })

  it('is deleted if its node is deleted during the move', async () => {
    await followSlices(START + 2 * HOUR, 6)
    await admin.send('DELETE', `/api/nodes/${OLD}`)
    await followSlices(START + 2 * HOUR, 50)
    expect(await node(OLD)).toBeNull()
    expect(await node(NEW)).toMatchObject({ formerNodeNums: [], notes: '' })
  })
})

describe('a number is not followed', () => {
  const expectBoth = async (at: number) => {
    await follow(at)
    expect([await node(OLD), await node(NEW)]).toMatchObject([{ formerNodeNums: [] }, { formerNodeNums: [] }])
    expect(mesh.count('renumberings')).toBe(0)
  }

  it('while the old number is heard', async () => {
    await speak(OLD, START)
    await speak(NEW, START + HOUR)
    await speak(OLD, START + 2 * HOUR)
    await expectBoth(START + 10 * HOUR)
  })

  it('when a broker reports the new number, and our own radio heard the old one', async () => {
    await speak(OLD, START)
    const said = packet(user({ longName: 'Thief', publicKey: key(1) }), { from: NEW, viaMqtt: true })
    await store(mesh.ingest, [said], { at: START + HOUR, source: { kind: 'mqtt', name: 'mqtt://broker' } })
    await follow(START + 3 * HOUR)
    expect(await node(OLD)).toMatchObject({ nodeNum: OLD, longName: 'Node 1' })
  })

  it('when a third node has the key', async () => {
    await speak(OLD, START)
    await speak(NEWEST, START)
    await speak(NEW, START + HOUR)
    await expectBoth(START + 10 * HOUR)
  })

  it('without a key, with another one, or with one that was changed', async () => {
    await speak(OLD, START, { publicKey: key(1) })
    await speak(NEW, START + HOUR, { publicKey: key(2) })
    await expectBoth(START + 10 * HOUR)
    await speak(NEW, START + 10 * HOUR, { publicKey: key(1) })
    await expectBoth(START + 12 * HOUR)
    await speak(NEWEST, START, { publicKey: new Uint8Array(0) })
    await speak(NEWEST + 1, START + HOUR, { publicKey: new Uint8Array(0) })
    await expectBoth(START + 13 * HOUR)
  })

  it('from a number that was derived from the key', async () => {
    const { nodeNum, publicKey: derived } = createSigner(1)
    const publicKey = Uint8Array.from(derived)
    await speak(nodeNum, START, { publicKey })
    await speak(NEW, START + HOUR, { publicKey })
    await follow(START + 10 * HOUR)
    expect([await node(nodeNum), await node(NEW)]).toMatchObject([{ formerNodeNums: [] }, { formerNodeNums: [] }])
  })

  it('from a node that signed, whose number is that of its key', async () => {
    const signer = createSigner(1)
    await store(mesh.ingest, [signer.packet(signer.user({ longName: 'Hill', shortName: 'N' }))], { at: START })
    await speak(NEW, START + HOUR, { publicKey: Uint8Array.from(signer.publicKey) })
    await follow(START + 10 * HOUR)
    expect(await node(NEW)).toMatchObject({ formerNodeNums: [], signed: false })
  })

  it('to a number that has been known for more than a week', async () => {
    await speak(OLD, START)
    await speak(NEW, START + HOUR)
    await expectBoth(START + 8 * DAY)
  })
})
