import type { Heard } from '../../../../src/app/mesh/heard/heard.ts'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MAX_NEW_NODES } from '../../../../src/app/mesh/ingest/trust/newcomers.ts'
import { identifyChannel, MAX_HEARD_CHANNELS, numberChannel } from '../../../../src/meshtastic/channel-identity.ts'
import { forgetSurplusNodes } from '../../../../src/app/mesh/nodes/deletion/surplus.ts'
import { START } from '../../../support/app.ts'
import {
  createTestMesh,
  heard,
  myInfo,
  nodeInfo,
  packet,
  seconds,
  store,
  type TestMesh,
  text,
  user,
} from '../../../support/mesh/mesh.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const BROKER = { kind: 'mqtt', name: 'broker' } as const
const OTHER_BROKER = { kind: 'mqtt', name: 'other' } as const
const RADIO = { kind: 'tcp', name: 'radio-1' } as const

let mesh: TestMesh

beforeEach(async () => {
  mesh = await createTestMesh()
})
afterEach(() => mesh.app.close())

const numbers = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index)

/** A text of each node, in batches as large as those of a radio. */
async function hear(nodeNums: readonly number[], at: number, source: Heard['source'], more = {}): Promise<void> {
  for (let first = 0; first < nodeNums.length; first += 1000) {
    const batch = nodeNums.slice(first, first + 1000)
    await mesh.ingest.store(batch.map((from) => heard(packet(text('hi'), { from, ...more }), { at, source })))
  }
}

const countOf = (where: string) =>
  mesh.app.store.sqlite.prepare(`select count(*) from nodes where ${where}`).pluck().get()
const evidence = (nodeNum: number) =>
  mesh.app.store.sqlite
    .prepare('select days_heard days, heard_by_radio radio from nodes where node_num = ?')
    .get(nodeNum)
const forget = (most: number, now: number) => forgetSurplusNodes(mesh.app.store, async () => true, { most, now })

describe('the days on which a node was heard', () => {
  it('are counted once each, however much it sends', async () => {
    for (const at of [START, START + HOUR, START + DAY, START + DAY, START + 5 * DAY]) await hear([7], at, BROKER)
    expect(evidence(7)).toStrictEqual({ days: 3, radio: 0 })
  })

  it("are days of this service's clock, because a publisher dates packets as it likes", async () => {
    for (let day = 30; day >= 0; day--) await hear([7], START, BROKER, { rxTime: seconds(START - day * DAY) })
    const kept = numbers(0, 30).map((day) =>
      heard(packet(text('hi'), { from: 8, rxTime: seconds(START - day * DAY) }), { source: BROKER, replayed: true }),
    )
    await mesh.ingest.store(kept.map((each) => ({ ...each, event: { ...each.event, gateway: 9 } })).toReversed())
    expect([evidence(7), evidence(8)]).toStrictEqual([
      { days: 1, radio: 0 },
      { days: 0, radio: 0 },
    ])
  })

  it('are limited to seven for late data and for the memory of a radio', async () => {
    for (let day = 30; day >= 0; day--) {
      const at = START - day * DAY
      await mesh.ingest.store([{ ...heard(packet(text('hi'), { from: 7 }), { at, source: BROKER }), isLate: true }])
      await store(mesh.ingest, [nodeInfo({ num: 8, lastHeard: seconds(at) })], { at })
    }
    expect([evidence(7), evidence(8)]).toStrictEqual([
      { days: 7, radio: 0 },
      { days: 7, radio: 1 },
    ])
    await hear([7, 8], START + DAY, BROKER)
    expect([evidence(7), evidence(8)]).toMatchObject([{ days: 8 }, { days: 8 }])
  })

  it('still count after a clock that was years ahead', async () => {
    for (const at of [START, START + 1000 * DAY, START + DAY, START + 2 * DAY]) await hear([7], at, RADIO)
    expect(evidence(7)).toStrictEqual({ days: 4, radio: 1 })
  })

  it('are derived from the first and last time, a week at most, in an older database', async () => {
    mesh.app.store.sqlite.exec(`insert into nodes (node_num, first_heard, last_heard) values
      (1, ${START - 400 * DAY}, ${START}), (2, ${START - 2 * DAY}, ${START}), (3, ${START}, null)`)
    await hear([1, 2, 3], START + DAY, BROKER)
    expect([1, 2, 3].map(evidence)).toMatchObject([{ days: 8 }, { days: 4 }, { days: 2 }])
  })
})

describe('beyond the limit of nodes', () => {
  it('newcomers displace newcomers, but no node that has been known for a week', async () => {
    const real = numbers(1, 300)
    for (let day = 7; day > 0; day--) await hear(real, START - day * DAY, BROKER)
    await hear(numbers(10_000, 2500), START, BROKER)
    await hear(numbers(10_000, 2500), START + 1, BROKER)
    expect(await forget(1000, START)).toBe(1800)
    expect([countOf('node_num <= 300'), countOf('node_num > 300')]).toStrictEqual([300, 700])
  })

  it('made-up nodes at a broker displace none that a radio of ours heard, however long they are repeated', async () => {
    const real = numbers(1, 200)
    await hear(real, START + 2 * DAY, RADIO)
    for (let day = 0; day < 40; day++) await hear(numbers(10_000, 310), START + day * DAY, BROKER)
    expect(await forget(200, START + 40 * DAY)).toBe(310)
    expect(countOf('node_num <= 200')).toBe(200)
  })

  it('made-up nodes repeated for days at one broker displace none of another', async () => {
    await hear(numbers(1, 100), START, OTHER_BROKER)
    await hear(numbers(1, 100), START + DAY, OTHER_BROKER)
    await hear(numbers(1, 100), START + 2 * DAY, OTHER_BROKER)
    for (let day = 0; day < 10; day++) await hear(numbers(10_000, 1000), START + day * DAY, BROKER)
    expect(await forget(300, START + 10 * DAY)).toBe(800)
    expect(countOf('node_num <= 100')).toBe(100)
  })

  it('a newcomer has room beside made-up nodes that have been there for days', async () => {
    for (let day = 0; day < 10; day++) await hear(numbers(10_000, 1000), START + day * DAY, BROKER)
    await hear(numbers(1, 20), START + 10 * DAY, BROKER)
    expect(await forget(300, START + 10 * DAY)).toBe(720)
    expect(countOf('node_num <= 20')).toBe(20)
  })

  it('nodes heard on many days displace none that were known longer', async () => {
    const real = numbers(1, 50)
    for (let day = 7; day > 0; day--) await hear(real, START - day * DAY, BROKER)
    for (let day = 0; day < 20; day++) await hear([...real, ...numbers(10_000, 300)], START + day * DAY, BROKER)
    expect(await forget(60, START + 20 * DAY)).toBe(290)
    expect(countOf('node_num <= 50')).toBe(50)
  })

  it('what our own radio heard is kept longer than what a broker reported', async () => {
    await hear(numbers(1, 50), START - HOUR, RADIO)
    await hear(numbers(100, 50), START - HOUR, RADIO, { viaMqtt: true })
    await hear(numbers(1000, 50), START, BROKER)
    expect(await forget(60, START)).toBe(90)
    expect(countOf('node_num <= 50')).toBe(50)
  })

  it('the source that brought the most loses the most', async () => {
    await hear(numbers(1, 40), START - 2 * HOUR, OTHER_BROKER)
    await hear(numbers(1000, 400), START, BROKER)
    expect(await forget(100, START)).toBe(340)
    expect([countOf('node_num < 1000'), countOf('node_num >= 1000')]).toStrictEqual([40, 60])
  })

  it('protected nodes are not counted, so they displace no others', async () => {
    await hear(numbers(1, 100), START, BROKER)
    mesh.app.store.sqlite.exec('update nodes set is_favorite = 1 where node_num > 10')
    expect(await forget(10, START)).toBe(0)
    expect(await forget(9, START)).toBe(1)
  })

  it('a node that was silent for long counts half, and still more than newcomers', async () => {
    const days = (from: number, count: number, at: number) =>
      `insert into nodes (node_num, first_heard, last_heard, days_heard, last_heard_day)
        values (${from}, 1, ${at}, ${count}, ${Math.floor(at / DAY)});`
    mesh.app.store.sqlite.exec(days(1, 10, START - 100 * DAY) + days(2, 7, START) + days(3, 2, START))
    await forget(2, START)
    expect(countOf('node_num in (1, 2)')).toBe(2)
    await forget(1, START)
    expect(countOf('node_num = 2')).toBe(1)
  })
})

describe('new nodes of a source', () => {
  it(`are limited to ${MAX_NEW_NODES} in an hour for each source`, async () => {
    await hear([1], START, BROKER)
    const excess = numbers(10_000, MAX_NEW_NODES + 500)
    await hear(excess, START, BROKER)
    expect(countOf('true')).toBe(MAX_NEW_NODES)
    await store(mesh.ingest, [packet(user({ id: 'x', longName: 'Known' }), { from: 1 })], { source: BROKER })
    expect(await mesh.node(1)).toMatchObject({ longName: 'Known' })
    await hear([2], START, OTHER_BROKER)
    expect(countOf('node_num < 3')).toBe(2)
    // Their messages are stored anyway.
    expect(mesh.count('messages')).toBe(MAX_NEW_NODES + 502)
    const metrics = await (await mesh.app.admin()).send('GET', '/api/metrics')
    expect(await metrics.text()).toContain('mesh_new_nodes_refused_total{source="broker"} 501')
    await hear(excess.slice(-300), START + HOUR, BROKER)
    expect(countOf('true')).toBe(MAX_NEW_NODES + 301)
  })

  describe('through the gateways of a broker', () => {
    const HOME = 0xa1
    const YARD = 0xa2
    /** `nodeNums` in turn through `gateways`. */
    const hearThrough = async (gateways: readonly number[], nodeNums: readonly number[], at: number) => {
      for (let first = 0; first < nodeNums.length; first += 1000) {
        const batch = nodeNums.slice(first, first + 1000).map((from, index) => {
          const each = heard(packet(text('hi'), { from }), { at, source: BROKER })
          return { ...each, event: { ...each.event, gateway: gateways[(first + index) % gateways.length] ?? 0 } }
        })
        await mesh.ingest.store(batch)
      }
    }
    const FLOOD_AT = START + 2 * DAY + HOUR
    const MANY = numbers(100_000, MAX_NEW_NODES + 1000)
    beforeEach(async () => {
      for (const day of [0, 1, 2]) await hearThrough([HOME, YARD], [1, 2], START + day * DAY)
    })

    it('cannot use up the share of a gateway known for days: through one or many invented gateways', async () => {
      await hearThrough(numbers(0xb000, 7000), MANY, FLOOD_AT)
      await hearThrough([HOME], numbers(10, 100), FLOOD_AT + 1)
      await hearThrough([YARD], numbers(200, 100), FLOOD_AT + 2)
      expect(countOf('node_num between 10 and 299')).toBe(200)
      expect(countOf('true')).toBe(2 + MAX_NEW_NODES / 2 + 200)
      await hearThrough([0xc0], MANY.toReversed(), FLOOD_AT + 2 * HOUR)
      await hearThrough([HOME], numbers(300, 100), FLOOD_AT + 2 * HOUR)
      expect(countOf('node_num between 300 and 399')).toBe(100)
    })

    it('cannot use up the share of another one in the name of a known gateway', async () => {
      await hearThrough([HOME], MANY, FLOOD_AT)
      await hearThrough([YARD], numbers(10, 100), FLOOD_AT)
      expect(countOf('node_num between 10 and 109')).toBe(100)
      expect(countOf('node_num >= 100000')).toBe((MAX_NEW_NODES * 3) / 4)
    })

    it('leave the room whole as long as no gateway is known', async () => {
      mesh.app.store.sqlite.exec('delete from gateways')
      await hearThrough([0xc0, 0xc1], MANY, FLOOD_AT)
      expect(countOf('node_num >= 100000')).toBe(MAX_NEW_NODES)
    })

    it('displace no known gateway from the memory of them, and it stays small', async () => {
      for (const day of [3, 4])
        await hearThrough(numbers(0xb000 + day * 5000, 3000), MANY.slice(0, 3000), START + day * DAY)
      const kept = mesh.app.store.sqlite.prepare('select gateway from gateways order by days desc, id').pluck().all()
      expect(kept.slice(0, 2)).toStrictEqual([HOME, YARD])
      expect(kept).toHaveLength(102)
    })
  })

  it('never displace the radio itself', async () => {
    await hear(numbers(10_000, MAX_NEW_NODES + 1), START, RADIO)
    await store(mesh.ingest, [myInfo])
    await store(mesh.ingest, [nodeInfo({ num: myInfo.case === 'myInfo' ? Number(myInfo.value.myNodeNum) : 0 })])
    expect(countOf('is_local')).toBe(1)
  })

  it('may be the whole memory of a large radio', async () => {
    for (const first of numbers(0, 10)) {
      const known = numbers(1 + first * 500, 500)
      await store(
        mesh.ingest,
        known.map((num) => nodeInfo({ num, lastHeard: seconds(START - DAY) })),
      )
    }
    expect(countOf('days_heard = 1 and heard_by_radio')).toBe(5000)
  })
})

describe('beyond the limit of channels', () => {
  const channel = (n: number) => ({ index: numberChannel(identifyChannel(n % 256, `x${n}`)), name: `x${n}` })
  const tell = async (numbers: readonly number[], at: number) => {
    const told = numbers.map(channel).map(({ index, name }) => ({ index, role: 2, settings: { name } }) as const)
    await store(
      mesh.ingest,
      told.map((value) => ({ case: 'channel', value })),
      { source: BROKER, at },
    )
  }

  it('made-up ones displace none that were in use for days, and a new one has room', async () => {
    await tell(numbers(0, 150), START - 20 * DAY)
    await tell(numbers(0, 150), START + 2 * DAY)
    for (const day of [3, 4, 5]) await tell(numbers(1000, 300), START + day * DAY)
    await tell([5000], START + 6 * DAY)
    const names = mesh.app.store.sqlite.prepare('select name from channels').pluck().all()
    expect(numbers(0, 150).filter((n) => !names.includes(`x${n}`))).toStrictEqual([])
    expect(names).toContain('x5000')
    expect(names).toHaveLength(MAX_HEARD_CHANNELS)
  })
})
