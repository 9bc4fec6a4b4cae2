import * as fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { nodes, packets, positions, sources } from '../../../../src/db/schema.ts'
import { type Client, createTestApp, START, type TestApp } from '../../../support/app.ts'
import { markOf, marksFor, meshesOn, namingOf, someEyes, someNodes } from '../../../support/mesh/said.ts'
import { createSeenMesh, type SeenMesh } from '../../../support/mesh/seen-mesh.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const READ = { read: true, write: false }

type Tracks = { readonly tracks: readonly { nodeNum: number; points: number[] }[]; readonly next: number | null }
type Heard = {
  readonly step: number
  readonly heard: readonly { nodeNum: number; at: number[] }[]
  readonly links: readonly { from: number; to: number; at: number[]; snr: (number | null)[] }[]
  readonly next: number | null
}

async function ask(client: Client, path: string): Promise<string> {
  const answer = await client.send('GET', `/api/playback/${path}`)
  expect([path, answer.status]).toEqual([path, 200])
  return answer.text()
}

/** The places of a track: seconds, latitude, longitude. */
function placesOf(points: readonly number[]): [number, number, number][] {
  const places: [number, number, number][] = []
  for (let at = 0; at < points.length; at += 3) {
    const [t, lat, lon] = places.at(-1) ?? [0, 0, 0]
    const [dt = 0, dlat = 0, dlon = 0] = points.slice(at, at + 3)
    places.push([t + dt, lat + dlat, lon + dlon])
  }
  return places
}

describe('nobody learns by it what the lists do not show', () => {
  let mesh: SeenMesh
  beforeAll(async () => {
    mesh = await createSeenMesh()
  })
  afterAll(() => mesh.app.close())

  test('of random meshes, it shows each place to those who may see it, and nothing of hidden nodes', async () => {
    await fc.assert(
      fc.asyncProperty(meshesOn(4), someEyes(4), someNodes, async (all, eyes, hidden) => {
        await mesh.play(all, hidden)
        mesh.open(eyes)
        const time = `from=${START}&to=${START + MINUTE}`
        const answers = new Map<string, string>()
        for (const part of ['tracks', 'heard', 'hours']) answers.set(part, await ask(mesh.user, `${part}?${time}`))
        const { tracks }: Tracks = JSON.parse(answers.get('tracks') ?? '')
        const shown = tracks.flatMap(({ points }) => placesOf(points).map(([, lat]) => (lat / 100_000).toFixed(5)))
        const positionMarks = all.flatMap((said, index) => (said.kind === 'position' ? [markOf(said, index)] : []))
        const allowed = marksFor(eyes, all, hidden).filter((mark) => positionMarks.includes(mark))
        expect(shown.toSorted()).toEqual(allowed.toSorted())
        if (!eyes.seesHidden) expect(namingOf(answers, hidden)).toEqual([])
      }),
      { numRuns: Number(process.env['SHARING_RUNS'] ?? 25) },
    )
  })

  test('not for people without an account, nor beyond the permissions', async () => {
    mesh.share([0, 1, 2], null)
    const poor = await mesh.app.user('poor', { nodes: READ, info: { read: false, write: false } })
    const time = `from=${START}&to=${START + MINUTE}`
    for (const [part, status] of [
      ['tracks', 200],
      ['heard', 403],
      ['hours', 403],
    ] as const) {
      expect((await mesh.anonymous.send('GET', `/api/playback/${part}?${time}`)).status).toBe(401)
      expect((await poor.send('GET', `/api/playback/${part}?${time}`)).status).toBe(status)
    }
  })
})

describe('a range of the history', () => {
  let app: TestApp
  let admin: Client
  beforeAll(async () => {
    app = await createTestApp()
    admin = await app.admin()
    const { db } = app.store
    await db.insert(sources).values({ id: 90, kind: 'tcp', name: 'radio', localNodeNum: 1, createdAt: START })
    await db.insert(nodes).values(
      Array.from({ length: 450 }, (_, index) => ({
        id: index + 1,
        nodeNum: index + 1,
        firstHeard: START,
        lastHeard: START,
      })),
    )
  })
  afterEach(() => app.store.sqlite.exec('delete from positions; delete from packets; delete from node_days'))
  afterAll(() => app.close())

  const at = (nodeId: number, t: number, latitude: number) => ({
    nodeId,
    t: START + t,
    latitude,
    longitude: 9,
    channel: 0,
  })
  async function tracks(query = `from=${START}&to=${START + DAY}`): Promise<Tracks> {
    return JSON.parse(await ask(admin, `tracks?${query}`))
  }

  test('a track begins where the node was before, and has no more places than there are to see', async () => {
    const rest = Array.from({ length: 50 }, (_, index) => at(2, HOUR + index * MINUTE, 50.5))
    await app.store.db
      .insert(positions)
      .values([at(2, -2 * HOUR, 50), at(2, -HOUR, 50.25), ...rest, at(2, 20 * HOUR, 51), at(2, DAY, 60)])
    const [track, ...others] = (await tracks()).tracks
    expect(others).toEqual([])
    expect(placesOf(track?.points ?? [])).toEqual([
      [-3600, 5_025_000, 900_000],
      [3600, 5_050_000, 900_000],
      [3600 + 49 * 60, 5_050_000, 900_000],
      [72_000, 5_100_000, 900_000],
    ])
  })

  test('a node that says where it is each second has as many places as a day needs, and ends where it is', async () => {
    const all = Array.from({ length: 5000 }, (_, index) => at(3, index * SECOND, 50 + index / 1000))
    for (let begin = 0; begin < all.length; begin += 500) {
      await app.store.db.insert(positions).values(all.slice(begin, begin + 500))
    }
    const places = placesOf((await tracks()).tracks[0]?.points ?? [])
    expect(places.length).toBeGreaterThan(50)
    expect(places.length).toBeLessThan(150)
    expect(places.at(-1)).toEqual([4999, 5_499_900, 900_000])
  })

  test('the nodes come in pages, each once', async () => {
    const long = Array.from({ length: 450 }, (_, node) =>
      Array.from({ length: 60 }, (_none, index) => at(node + 1, index * 20 * MINUTE, 50 + ((index * 7) % 13))),
    ).flat()
    for (let begin = 0; begin < long.length; begin += 1000) {
      await app.store.db.insert(positions).values(long.slice(begin, begin + 1000))
    }
    const nums: number[] = []
    let pages = 0
    for (let next: number | null = 0; next !== null; pages++) {
      const page: Tracks = await tracks(`from=${START}&to=${START + DAY}&after=${next}`)
      nums.push(...page.tracks.map(({ nodeNum }) => nodeNum))
      next = page.next
    }
    expect([pages, nums]).toEqual([2, Array.from({ length: 450 }, (_, index) => index + 1)])
  })

  let last = 0
  const logged = (t: number, fromNodeNum: number, more: Partial<typeof packets.$inferInsert> = {}) => ({
    sourceId: 90,
    t: START + t,
    packetId: ++last,
    fromNodeNum,
    toNodeNum: 0xffffffff,
    gateway: null,
    channel: 0,
    port: 1,
    rxSnr: 3.5,
    hopsAway: 0,
    hopLimit: 3,
    viaMqtt: false,
    pkiEncrypted: false,
    replayed: false,
    payload: '{"kind":"text"}',
    ...more,
  })
  async function heard(query = `from=${START}&to=${START + HOUR}`, client = admin): Promise<Heard> {
    return JSON.parse(await ask(client, `heard?${query}`))
  }

  test('who was heard when, and by whom directly: once a minute, in the time alone', async () => {
    await app.store.db
      .insert(packets)
      .values([
        logged(-MINUTE, 7),
        logged(0, 7),
        logged(30 * SECOND, 7, { rxSnr: 4 }),
        logged(MINUTE, 7, { hopsAway: 2, rxSnr: -9 }),
        logged(2 * MINUTE, 7, { viaMqtt: true, gateway: 8 }),
        logged(3 * MINUTE, 7, { gateway: 8, rxSnr: null }),
        logged(4 * MINUTE, 9, { replayed: true }),
        logged(5 * MINUTE, 9, { trustLevel: 'spoofed' }),
        logged(6 * MINUTE, 1, { hopsAway: 0, trustLevel: 'own' }),
        logged(HOUR, 7),
      ])
    expect(await heard()).toEqual({
      step: MINUTE,
      heard: [
        { nodeNum: 1, at: [6] },
        { nodeNum: 7, at: [0, 1, 1, 1] },
      ],
      links: [
        { from: 7, to: 1, at: [0], snr: [4] },
        { from: 7, to: 8, at: [3], snr: [null] },
      ],
      next: null,
    })
    expect((await heard(`from=${START}&to=${START + 10 * DAY}`)).step).toBe(10 * MINUTE)
  })

  test('a hidden receiver stands in no link, and a packet to a hidden node is nowhere', async () => {
    const user = await app.user('reader', { nodes: READ, info: READ })
    app.store.sqlite.exec('update nodes set is_hidden = 1 where node_num = 8')
    await app.store.db
      .insert(packets)
      .values([logged(0, 7, { gateway: 8 }), logged(MINUTE, 9, { toNodeNum: 8 }), logged(MINUTE, 8)])
    expect(await heard(undefined, user)).toMatchObject({ heard: [{ nodeNum: 7, at: [0] }], links: [] })
    expect((await heard()).links.length).toBe(3)
    app.store.sqlite.exec('update nodes set is_hidden = 0')
  })

  test('a large log comes in pages, and what lies before and after the time is not read', async () => {
    const insert = app.store.sqlite.prepare(`insert into packets
      (id, source_id, t, packet_id, from_node_num, to_node_num, channel, port, hops_away, hop_limit, via_mqtt, pki_encrypted, replayed, payload)
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 150000)
      select i, 90, ${START} + (i - 50000) * 1000, i, 1 + i % 400, 4294967295, 0, 1, 1, 3, 0, 0, 0, '{}' from n`)
    insert.run()
    const minutes = new Map<number, number>()
    const after: number[] = []
    for (let next: number | null = 0; next !== null;) {
      const page: Heard = await heard(`from=${START}&to=${START + 60_000 * SECOND}&after=${next}`)
      for (const { nodeNum, at: steps } of page.heard) minutes.set(nodeNum, (minutes.get(nodeNum) ?? 0) + steps.length)
      next = page.next
      if (next !== null) after.push(next)
    }
    // Ten minutes earlier and later are read, because a packet may come late.
    expect(after).toEqual([49_400 + 40_000 - 1])
    expect(minutes.size).toBe(400)
    expect([...minutes.values()].every((count) => count === 150)).toBe(true)
  })

  test('before the log begins, it says in which whole hours a node was heard', async () => {
    const day = Math.floor(START / DAY)
    const counts = Array.from({ length: 24 }, (_, hour) => (hour % 6 === 0 ? 3 : 0)).join()
    app.store.sqlite.exec(`insert into node_days (node_num, day, hours, packets, direct)
      values (7, ${day}, '${counts}', 12, 0), (7, ${day + 1}, '${counts}', 12, 0), (8, ${day - 1}, '${counts}', 12, 0)`)
    const answer = await ask(admin, `hours?from=${day * DAY + HOUR}&to=${(day + 1) * DAY + HOUR}`)
    expect(JSON.parse(answer)).toEqual({ heard: [{ nodeNum: 7, hours: [day * 24 + 6, 6, 6, 6] }], next: null })
  })

  test('a time that ends before it begins is refused', async () => {
    const answer = await admin.send('GET', `/api/playback/tracks?from=${START}&to=${START - 1}`)
    expect([answer.status, Object(await answer.json()).code]).toEqual([400, 'invalid_request'])
  })
})
