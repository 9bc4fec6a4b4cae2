import { beforeEach, afterEach, describe, expect, it } from 'vitest'
import { lookForFindings } from '../../../../src/app/mesh/findings/look.ts'
import { aboutHeard } from '../../../../src/app/mesh/findings/rule.ts'
import { identifyChannel, numberChannel } from '../../../../src/meshtastic/channel-identity.ts'
import { expandPsk, hashChannel } from '../../../../src/meshtastic/crypto/channel.ts'
import type { FindingRule } from '../../../../src/shared/mesh/finding-rules.ts'
import { createTestApp, START, type TestApp } from '../../../support/app.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const TODAY = Math.floor(START / DAY)
const LOCAL = 1
const [HILL, A, B, C, D] = [100, 101, 102, 103, 104]
const READ = { read: true, write: false }

let app: TestApp
beforeEach(async () => {
  app = await createTestApp()
  run("insert into sources (id, kind, name, local_node_num, created_at) values (1, 'tcp', 'radio-1', ?, 0)", LOCAL)
  node(LOCAL, { is_local: 1 })
})
afterEach(() => app.close())

const run = (query: string, ...values: unknown[]) => app.store.sqlite.prepare(query).run(...values)

function insert(table: string, row: Record<string, unknown>): void {
  const names = Object.keys(row)
  run(
    `insert or replace into ${table} (${names.join()}) values (${names.map(() => '?').join()})`,
    ...Object.values(row),
  )
}

function node(num: number, more: Record<string, unknown> = {}): void {
  insert('nodes', { node_num: num, long_name: `Node ${num}`, first_heard: 0, last_heard: START - HOUR, ...more })
}

/** `to` hears `from`, as it reports. */
function hears(to: number, from: number, snr = 5, channel = 0): void {
  insert('neighbors', { node_num: to, neighbor_num: from, snr, t: START - HOUR, channel })
}
function both(a: number, b: number, snr = 5): void {
  hears(a, b, snr)
  hears(b, a, snr)
}

function measured(
  table: 'telemetry_daily' | 'telemetry_hourly',
  num: number,
  metric: string,
  t: number,
  value: number,
  channel = 0,
) {
  run('insert or ignore into metrics (name) values (?)', metric)
  run(
    `insert into ${table} (node_id, metric, t, n, min, max, sum, last, channel)
      select n.id, m.id, ?, 1, ?, ?, ?, ?, ? from nodes n, metrics m where n.node_num = ? and m.name = ?`,
    t,
    value,
    value,
    value,
    value,
    channel,
    num,
    metric,
  )
}

const day = (num: number, packets: number, at = TODAY - 1) =>
  insert('node_days', {
    node_num: num,
    day: at,
    hours: Array(24)
      .fill(Math.ceil(packets / 24))
      .join(),
    packets,
    direct: 0,
  })

const channel = (index: number, name: string, hash: number) =>
  insert('channels', { source_id: 1, channel_index: index, name, role: 'SECONDARY', identity: `${hash}:${name}` })

function place(num: number, { bits, channel: on }: { bits: number | null; channel: number }, t = START - HOUR): void {
  run(
    `insert into positions (node_id, t, latitude, longitude, precision_bits, channel)
      select id, ?, 47, 8, ?, ? from nodes where node_num = ?`,
    t,
    bits,
    on,
    num,
  )
}

type Finding = { rule: FindingRule; subject: string; since: number; isMuted: boolean; isLikely: boolean } & {
  nodes: { nodeNum: number }[]
  evidence: Record<string, unknown>
}

async function found(client?: { send(method: string, path: string): Promise<Response> }): Promise<Finding[]> {
  await lookForFindings(app.store, app.clock.now, async () => true)
  const answer = await (client ?? (await app.admin())).send('GET', '/api/findings')
  expect(answer.status).toBe(200)
  return Object(await answer.json()).findings
}
const brief = (list: readonly Finding[]) =>
  list.map(({ rule, nodes, evidence }) => [rule, nodes.map((each) => each.nodeNum), evidence])

describe('each rule, where it is true and where it is nearly true', () => {
  it('one_way: the other reports whom it hears, and not this one', async () => {
    for (const num of [A, B, C]) node(num)
    hears(A, B, 4)
    hears(B, C, 4)
    hears(C, B, 4)
    expect(brief(await found())).toEqual([['one_way', [B, A], { snr: 4 }]])
    hears(B, A, -19)
    expect(await found()).toEqual([])
    // A does not say whom it hears, and what is heard by luck says nothing.
    run('delete from neighbors where node_num = ?', B)
    expect(await found()).toEqual([])
  })

  it('depends: with the hill, three or more are lost', async () => {
    for (const num of [HILL, A, B, C]) node(num)
    both(LOCAL, HILL)
    for (const num of [A, B, C]) both(HILL, num)
    expect(brief(await found())).toEqual([
      ['depends', [HILL, expect.any(Number), expect.any(Number), expect.any(Number)], { lost: 3 }],
    ])
    both(LOCAL, C)
    expect(await found()).toEqual([])
  })

  it('routers: two that hear each other very well', async () => {
    node(A, { role: 2 })
    node(B, { role: 11 })
    both(A, B, 9)
    expect(brief(await found())).toEqual([['routers', [A, B], { snr: 9 }]])
    both(A, B, -3)
    expect(await found()).toEqual([])
    both(A, B, 9)
    node(B, { role: 0 })
    expect(await found()).toEqual([])
  })

  it('chatty: a fifth of all packets of a mesh, and many', async () => {
    for (let num = A; num < A + 10; num += 1) {
      node(num)
      day(num, num === B ? 400 : 100)
    }
    expect(brief(await found())).toEqual([['chatty', [B], { packets: 400, share: 0.31 }]])
    day(B, 200)
    expect(await found()).toEqual([])
  })

  it('battery: the lowest level falls day by day', async () => {
    for (const num of [A, B, C]) node(num)
    const level = 'deviceMetrics.batteryLevel'
    for (let at = 0; at < 8; at += 1) {
      const t = (TODAY - 8 + at) * DAY
      measured('telemetry_daily', A, level, t, 60 - 5 * at)
      measured('telemetry_daily', B, level, t, at % 2 === 0 ? 60 : 40 - at)
      measured('telemetry_daily', C, level, t, 101)
    }
    expect(brief(await found())).toEqual([['battery', [A], { level: 25, perDay: 5, days: 5 }]])
  })

  it('restarts: three in a day', async () => {
    node(A)
    const restart = (at: number) =>
      insert('node_changes', { node_num: A, t: at, field: 'restarted', before: '600', after: '5', channel: 0 })
    restart(START - HOUR)
    restart(START - 2 * HOUR)
    restart(START - 30 * HOUR)
    expect(await found()).toEqual([])
    restart(START - 3 * HOUR)
    expect(brief(await found())).toEqual([['restarts', [A], { restarts: 3, longest: 600 }]])
  })

  it('clock: its measurements stand hours away from when they were heard', async () => {
    node(A, { telemetry_time: START - 6 * HOUR, device_metrics_time: START - HOUR })
    node(B, { telemetry_time: START - HOUR - 60_000, device_metrics_time: START - HOUR })
    expect(brief(await found())).toEqual([['clock', [A], { ahead: -5 * HOUR }]])
  })

  it('key: two nodes with one key', async () => {
    const shared = Buffer.from(Array.from({ length: 32 }, (_, index) => (index * 37 + 11) % 256)).toString('base64')
    node(A, { public_key: shared })
    node(B, { public_key: shared })
    node(C, {
      public_key: Buffer.from(Array.from({ length: 32 }, (_, index) => (index * 91 + 5) % 256)).toString('base64'),
    })
    expect(brief(await found())).toEqual([
      ['key', [A, B], { weak: false, shared: true }],
      ['key', [B, A], { weak: false, shared: true }],
    ])
  })

  it('hops: a limit that no packet needs', async () => {
    node(A)
    node(B)
    for (let id = 1; id <= 12; id += 1) {
      const packet = { source_id: 1, t: START - HOUR, packet_id: id, to_node_num: 4294967295, channel: 0, port: 1 }
      const rest = { via_mqtt: 0, pki_encrypted: 0, replayed: 0, payload: '{}' }
      insert('packets', { ...packet, ...rest, from_node_num: A, hops_away: id % 3, hop_limit: 7 - (id % 3) })
      insert('packets', {
        ...packet,
        ...rest,
        from_node_num: B,
        hops_away: id === 7 ? 5 : 1,
        hop_limit: id === 7 ? 2 : 6,
      })
    }
    expect(brief(await found())).toEqual([['hops', [A], { limit: 7, needed: 2 }]])
  })

  it('busy: a quarter of the time on average', async () => {
    for (const num of [A, B]) node(num)
    for (let hour = 1; hour < 6; hour += 1) {
      measured('telemetry_hourly', A, 'deviceMetrics.channelUtilization', START - hour * HOUR, 30)
      measured('telemetry_hourly', B, 'deviceMetrics.channelUtilization', START - hour * HOUR, hour === 1 ? 60 : 10)
    }
    expect(brief(await found())).toEqual([['busy', [A], { use: 30 }]])
  })

  it('only_gateway: three nodes that nobody else delivers', async () => {
    for (const num of [HILL, A, B, C]) node(num)
    const delivered = (num: number, gateway: number) =>
      insert('node_receivers', {
        node_num: num,
        source_id: 1,
        gateway,
        first_at: 0,
        last_at: START - HOUR,
        packets: 1,
        direct: 0,
        via_mqtt: 1,
      })
    for (const num of [A, B, C]) delivered(num, HILL)
    expect(brief(await found())).toEqual([['only_gateway', [HILL, A, B, C], { lost: 3 }]])
    delivered(B, D)
    expect(await found()).toEqual([])
  })

  it('region_silent: three beside each other within an hour', async () => {
    const at = START - 5 * HOUR
    for (const [index, num] of [A, B, C].entries()) {
      node(num, { latitude: 47 + index * 0.01, longitude: 8, last_heard: at - index * 600_000, position_channel: 0 })
      day(num, 100)
    }
    node(D, { latitude: 47.4, longitude: 8, last_heard: at, position_channel: 0 })
    day(D, 100)
    const [first, ...rest] = await found()
    expect(rest).toEqual([])
    expect(first).toMatchObject({ rule: 'region_silent', subject: String(A), evidence: { at } })
    expect(first?.nodes.map(({ nodeNum }) => nodeNum)).toEqual([A, B, C])
    node(C, { latitude: 47.02, longitude: 8, last_heard: at - 2 * HOUR, position_channel: 0 })
    expect(await found()).toEqual([])
  })

  it('region_silent: among more nodes than one query looks at, many of them heard at the same time', async () => {
    const at = START - 5 * HOUR
    for (let n = 0; n < 1100; n++)
      node(1000 + n, { latitude: -60 + n / 10, longitude: 8, last_heard: at, position_channel: 0 })
    // The query ends after the second of them.
    const together = [1599, 1600, 1601]
    for (const num of together) {
      node(num, { latitude: 65, longitude: 8, last_heard: at, position_channel: 0 })
      day(num, 100)
    }
    // The last of all.
    for (const num of [A, B, C]) {
      node(num, { latitude: 66, longitude: 8, last_heard: at - HOUR, position_channel: 0 })
      day(num, 100)
    }
    const list = await found()
    const named = list.map(({ nodes: each }) => each.map(({ nodeNum }) => nodeNum).toSorted((a, b) => a - b))
    expect(named.toSorted(([a = 0], [b = 0]) => a - b)).toEqual([[A, B, C], together])
  })

  it('asks about each node once, in slices that grow and shrink', async () => {
    const heard = Array.from({ length: 330 }, (_, n) => n + 1)
    const asked: number[][] = []
    const looking = { store: app.store, now: START, links: [], heard, pause: async () => true }
    const all = await aboutHeard(looking, (nums) => {
      const slice: number[] = JSON.parse(nums)
      asked.push(slice)
      return slice
    })
    expect(all).toEqual(heard)
    expect(asked.flat()).toEqual(heard)
    expect(asked[0]).toHaveLength(20)
    expect(Math.max(...asked.map(({ length }) => length))).toBe(50)
  })

  it('firmware: a version that made weak keys', async () => {
    for (const [index, version] of ['2.5.0.abc', '2.6.10', '2.6.11.60ec05e', '2.4.3', 'custom'].entries())
      node(A + index, { firmware_version: version })
    expect(brief(await found()).map(([, nums]) => nums)).toEqual([[A], [B]])
  })

  it('precise: closer than 15 bits on a channel whose key everybody has', async () => {
    for (const num of [A, B, C, D, HILL]) node(num)
    channel(0, 'LongFast', 8)
    channel(1, 'Club', 77)
    // As a broker names it: the default key under a name of its own.
    const open = hashChannel('Open', expandPsk(Uint8Array.of(1)))
    const number = numberChannel(identifyChannel(open, 'Open'))
    channel(number, 'Open', open)
    place(A, { bits: 32, channel: 0 })
    place(B, { bits: 15, channel: 0 })
    place(C, { bits: 32, channel: 1 })
    place(D, { bits: 17, channel: number })
    place(HILL, { bits: 32, channel: 2 ** 33 + LOCAL })
    const list = await found()
    expect(brief(list)).toEqual([
      ['precise', [A], { bits: 32, metres: 0, channel: 'LongFast' }],
      ['precise', [D], { bits: 17, metres: 364, channel: 'Open' }],
    ])
    expect(list.map(({ isLikely }) => isLikely)).toEqual([true, false])
    // Its latest position is coarse.
    place(A, { bits: 13, channel: 0 }, START - 60_000)
    place(D, { bits: null, channel: number }, START - 60_000)
    expect(await found()).toEqual([])
  })
})

it('a healthy mesh of 300 nodes has no finding', async () => {
  channel(0, 'LongFast', 8)
  channel(1, 'Club', 77)
  for (let index = 0; index < 300; index += 1) {
    const num = 1000 + index
    const key = Buffer.from(
      Array.from({ length: 32 }, (_, at) => (at * (2 * index + 3) + index * 7 + (index >> 3)) % 251),
    ).toString('base64')
    node(num, {
      role: index % 20 === 0 ? 2 : 0,
      firmware_version: '2.7.9.1',
      public_key: key,
      telemetry_time: START - HOUR,
      device_metrics_time: START - HOUR + 30_000,
      latitude: 47 + (index % 20) * 0.02,
      longitude: 8 + Math.floor(index / 20) * 0.02,
      position_channel: 0,
    })
    day(num, 60 + (index % 40))
    for (const other of [(index + 1) % 300, (index + 17) % 300]) both(num, 1000 + other, index % 20 === 0 ? -4 : 2)
    place(num, index % 7 === 0 ? { bits: 32, channel: 1 } : { bits: 10 + (index % 6), channel: 0 })
    measured('telemetry_hourly', num, 'deviceMetrics.channelUtilization', START - HOUR, 12)
    for (let at = 1; at < 8; at += 1)
      measured('telemetry_daily', num, 'deviceMetrics.batteryLevel', (TODAY - at) * DAY, 90 - (at % 3))
  }
  both(LOCAL, 1000)
  both(LOCAL, 1150)
  expect(brief(await found())).toEqual([])
})

describe('who is told, and for how long', () => {
  async function hill(): Promise<void> {
    for (const num of [HILL, A, B, C, D]) node(num)
    both(LOCAL, HILL)
    for (const num of [A, B, C, D]) both(HILL, num)
  }

  it('what thousands of made-up nodes fill stays short, and everybody can still read it', async () => {
    // Eighty hubs that each carry 150 nodes, and a gateway that alone delivers 40,000.
    const numbers = (most: number) =>
      `with recursive x(i) as (select 0 union all select i + 1 from x where i < ${most - 1})`
    const hubs = `${numbers(80 * 150)} select 1000000 + i / 150 * 1000`
    run(
      `insert into neighbors (node_num, neighbor_num, snr, t, channel) ${hubs}, 1000001 + i / 150 * 1000 + i % 150, 5, ?, 0 from x`,
      START,
    )
    run(
      `insert into neighbors (node_num, neighbor_num, snr, t, channel) ${hubs}, ${LOCAL}, 5, ?, 0 from x where i % 150 = 0`,
      START,
    )
    run(
      `insert into nodes (node_num, first_heard, last_heard) ${numbers(40_000)} select 2000000 + i, 0, ? from x`,
      START - HOUR,
    )
    run(
      `insert into node_receivers (node_num, source_id, gateway, first_at, last_at, packets, direct, via_mqtt)
        ${numbers(40_000)} select 2000000 + i, 1, ${HILL}, 0, ?, 1, 0, 1 from x`,
      START - HOUR,
    )
    const list = await found()
    expect(list.filter(({ rule }) => rule === 'depends')).toHaveLength(50)
    expect(list.find(({ rule }) => rule === 'only_gateway')).toMatchObject({ evidence: { lost: 40_000 } })
    expect(Math.max(...list.map(({ nodes }) => nodes.length))).toBe(100)
  })

  it('a finding keeps its time while it is found, and a muted one stays muted', async () => {
    await hill()
    const [first] = await found()
    const admin = await app.admin()
    app.clock.advance(HOUR)
    expect((await admin.send('PUT', `/api/findings/depends/${HILL}`, { muted: true })).status).toBe(204)
    expect(await found(admin)).toEqual([{ ...first, isMuted: true, mutedBy: 'admin' }])
    run('delete from neighbors')
    expect(await found(admin)).toEqual([])
    expect((await admin.send('PUT', `/api/findings/depends/${HILL}`, { muted: true })).status).toBe(404)
    expect(
      app.store.sqlite.prepare("select count(*) from audit_log where action = 'finding_muted'").pluck().get(),
    ).toBe(1)
  })

  it('hidden nodes are not counted, and what a channel said is not told to who may not read it', async () => {
    await hill()
    const all = { channels: 'all' as const, direct: { read: true, write: false } }
    const reader = await app.user('reader', { nodes: READ, info: READ }, all)
    expect(brief(await found(reader))).toEqual([['depends', expect.arrayContaining([HILL, A, B, C, D]), { lost: 4 }]])
    run('update nodes set is_hidden = 1 where node_num = ?', D)
    expect(brief(await found(reader))).toEqual([['depends', expect.not.arrayContaining([D]), { lost: 3 }]])
    run('update nodes set is_hidden = 0 where node_num = ?', D)
    await found()
    // Hidden since the last look.
    run('update nodes set is_hidden = 1 where node_num in (?, ?)', D, C)
    expect(Object(await (await reader.send('GET', '/api/findings')).json()).findings).toEqual([])
    run('update nodes set is_hidden = 0')
    const narrow = await app.user(
      'narrow',
      { nodes: READ, info: READ },
      { channels: { read: [3], write: [] }, direct: { read: false, write: false } },
    )
    expect(await found(narrow)).toEqual([])
    const noNodes = await app.user('no-nodes', { nodes: { read: false, write: false }, info: READ }, all)
    expect(await found(noNodes)).toEqual([])
  })
})
