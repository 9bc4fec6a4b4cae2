import { create, toBinary } from '@bufbuild/protobuf'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { neighbors, nodes, packets, sources, traceroutes } from '../../../src/db/schema.ts'
import { NeighborInfoSchema, RouteDiscoverySchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import type { SqliteStore } from '../../../src/node/database.ts'
import { position, seconds, telemetry, text, user } from '../../support/mesh/mesh.ts'
import { FIRST_OF_MANY, openRadioSite, type RadioSite } from '../../support/radio/site.ts'
import { countBytes, kilobytes, largest } from '../../support/web/page-bytes.ts'

const NODES = 300
const PACKETS_PER_SECOND = 2
const MINUTE = 60
const MAX_BYTES = 50_000
const PAGES = ['/', '/nodes', '/map', '/map?links=1', '/messages', '/packets', '/neighbors', '/traceroutes']

const node = (index: number) => FIRST_OF_MANY + (index % NODES)
const nameOf = (nodeNum: number) => `Crowd ${nodeNum - FIRST_OF_MANY}`

let mesh: RadioSite
let heard = 0
let traffic: ReturnType<typeof setInterval> | undefined

/** One packet of a mixture as meshes bring it. */
function hearNext(): void {
  const index = heard++
  const from = node(index * 7919)
  const to = node(index * 104_729 + 1)
  const chance = (index * 37) % 100
  if (chance < 4) return mesh.hear(text(`Is anybody on hill ${index}?`), { from })
  if (chance < 8) {
    const hops = { route: [node(index + 1), node(index + 2)], snrTowards: [20, -30, -44], snrBack: [12, -36] }
    const payload = toBinary(RouteDiscoverySchema, create(RouteDiscoverySchema, hops))
    return mesh.hear({ portnum: PortNum.TRACEROUTE_APP, payload, requestId: 5000 + index }, { from, to })
  }
  if (chance < 10) {
    const near = [1, 2, 3, 4, 5].map((step) => ({ nodeId: node(index * 7919 + step), snr: (index % 20) - 12 }))
    const payload = toBinary(NeighborInfoSchema, create(NeighborInfoSchema, { nodeId: from, neighbors: near }))
    return mesh.hear({ portnum: PortNum.NEIGHBORINFO_APP, payload }, { from })
  }
  if (chance < 25) {
    const id = `!${from.toString(16)}`
    return mesh.hear(user({ id, longName: nameOf(from), shortName: 'C' }), { from })
  }
  if (chance < 50) {
    const [latitudeI, longitudeI] = [470_000_000 + index * 1000, 80_000_000 + index * 1000]
    return mesh.hear(position({ latitudeI, longitudeI, time: seconds(Date.now()) }), { from })
  }
  const value = { batteryLevel: index % 100, voltage: 3.9, channelUtilization: index % 30, airUtilTx: 1.5 }
  mesh.hear(telemetry({ variant: { case: 'deviceMetrics', value }, time: seconds(Date.now()) }), { from })
}

/** A mesh as after a day: nodes, links, traceroutes and packets. */
async function fill({ db }: SqliteStore): Promise<void> {
  const now = Date.now()
  const all = Array.from({ length: NODES }, (_, index) => index)
  await db.insert(sources).values({ name: 'earlier', kind: 'tcp', createdAt: now })
  await db.insert(nodes).values(
    all.map((index) => ({
      nodeNum: node(index),
      longName: nameOf(node(index)),
      shortName: 'C',
      latitude: 47 + index / 1000,
      longitude: 8 + index / 1000,
      firstHeard: now - 86_400_000,
      lastHeard: now - 3_600_000 + index,
    })),
  )
  await db.insert(neighbors).values(
    all.flatMap((index) =>
      [1, 2, 3, 4, 5, 6].map((step) => ({
        nodeNum: node(index),
        neighborNum: node(index + step),
        snr: ((index * step) % 30) - 18.25,
        t: now - index * 60_000,
      })),
    ),
  )
  const route = JSON.stringify({
    route: [node(1), node(2)],
    snrTowards: [5, -3, -11],
    routeBack: [node(2), node(1)],
    snrBack: [3, -9.25, 1],
  })
  await db.insert(traceroutes).values(
    all.map((index) => ({
      requestId: index,
      fromNodeNum: node(index),
      toNodeNum: node(index * 7 + 3),
      timestamp: now - (NODES - index) * 60_000,
      answeredAt: now - (NODES - index) * 60_000,
      state: 'delivered' as const,
      route,
    })),
  )
  await db.insert(packets).values(
    all.map((index) => ({
      sourceId: 1,
      t: now - (NODES - index) * 1000,
      packetId: 100_000 + index,
      fromNodeNum: node(index * 7919),
      toNodeNum: 0xffffffff,
      channel: 0,
      port: PortNum.TELEMETRY_APP,
      hopLimit: 3,
      viaMqtt: false,
      pkiEncrypted: false,
      replayed: false,
      payload: JSON.stringify({
        kind: 'telemetry',
        variant: 'deviceMetrics',
        time: now,
        metrics: { batteryLevel: 90 },
      }),
    })),
  )
}

beforeAll(async () => {
  mesh = await openRadioSite(undefined, [], fill)
  traffic = setInterval(hearNext, 1000 / PACKETS_PER_SECOND)
})
afterAll(async () => {
  clearInterval(traffic)
  await mesh.close()
})

test('a page that stays open receives at most 50 KB a minute', { timeout: 300_000 }, async () => {
  const storageState = await mesh.admin.page.context().storageState()
  await mesh.admin.page.close()
  const opened = []
  for (const path of PAGES) {
    const { page, goto } = await mesh.site.visit({ storageState, serviceWorkers: 'block' })
    const counted = await countBytes(await page.context().newCDPSession(page))
    await goto(path)
    await page.locator('.live-live').first().waitFor({ state: 'attached' })
    await page.locator('.progress p').waitFor({ state: 'detached' })
    opened.push({ path, page, counted })
  }
  // Nothing of the beginning counts.
  const begun = heard
  await expect.poll(() => heard - begun, { timeout: 60_000 }).toBeGreaterThan(10 * PACKETS_PER_SECOND)
  for (const { counted } of opened) counted.take()
  const before = heard
  await expect.poll(() => heard - before, { timeout: 120_000 }).toBeGreaterThanOrEqual(MINUTE * PACKETS_PER_SECOND)
  const wrong = opened.flatMap(({ path, counted }) => {
    const { total, by } = counted.take()
    return total <= MAX_BYTES ? [] : [`${path}: ${kilobytes(total)} (${largest(by)})`]
  })
  expect(wrong).toEqual([])
})
