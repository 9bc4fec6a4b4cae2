// node bench/decisions/pages.ts: the packet log as rows and in pages, on SQLite and on workerd's D1: rows that D1 charges
// and bytes, CPU of a packet in its life, CPU of readers. docs/decisions/packed-on-the-edge.md has the figures.
import { WHOLE_VIEW } from '../../src/app/accounts/access/visible.ts'
import { eachTurn } from '../../src/app/base/pacing/slices.ts'
import { recallProven, writeProven } from '../../src/app/mesh/ingest/duplicates/proven-packets.ts'
import { readRecentPackets } from '../../src/app/mesh/ingest/duplicates/seen-packets.ts'
import { type PacketRow, writeLog } from '../../src/app/mesh/ingest/rows/log.ts'
import { readHeard } from '../../src/app/mesh/playback/heard.ts'
import { listLinks } from '../../src/app/mesh/topology/links.ts'
import { listPackets } from '../../src/app/mesh/topology/packets.ts'
import { deleteOldProven } from '../../src/app/upkeep/proven-packets.ts'
import { deleteOldTraffic } from '../../src/app/upkeep/traffic-retention.ts'
import { sources } from '../../src/db/schema.ts'
import { BROADCAST } from '../../src/meshtastic/node-id.ts'
import { ALL_PERMISSIONS } from '../../src/shared/access/resources.ts'
import { HOUR_MS } from '../../src/shared/time.ts'
import { costOfPacket, measureForms, medianMs } from './both-forms.ts'

/** 250 nodes, a packet each in 7.5 minutes, half of them telemetry; 20 packets a delivery. */
const NODES = 250
const EVERY_MS = 1800
const DELIVERY = 20
const SQLITE_PACKETS = Number(process.env['BENCH_PAGES_PACKETS'] ?? 200_000)
const D1_PACKETS = Number(process.env['BENCH_PAGES_D1_PACKETS'] ?? 20_000)
const BEGUN = Date.UTC(2026, 0, 1)
const METRICS = { batteryLevel: 91, voltage: 4.08, channelUtilization: 7.25, airUtilTx: 1.5, uptimeSeconds: 123_456 }

function packetOf(n: number): PacketRow {
  const isTelemetry = n % 2 === 0
  const payload = isTelemetry
    ? { kind: 'telemetry', variant: 'deviceMetrics', time: BEGUN + n * EVERY_MS, metrics: METRICS }
    : { kind: 'text', text: `Message ${n}`, origin: 'message' }
  return {
    source: 'radio',
    t: BEGUN + n * EVERY_MS,
    packetId: (n * 2_654_435_761) % 2 ** 32,
    fromNodeNum: 0xa000_0000 + (n % NODES),
    toNodeNum: BROADCAST,
    gateway: null,
    channel: n % 3,
    port: isTelemetry ? 67 : ([1, 3, 4, 71][n % 4] ?? 1),
    rxSnr: (n % 40) / 4,
    rxRssi: -90,
    hopsAway: n % 4,
    hopLimit: 3,
    viaMqtt: false,
    pkiEncrypted: false,
    replayed: false,
    trustLevel: 'plain',
    payload: JSON.stringify(payload),
    isReadable: true,
  }
}

await measureForms('pages', { sqlite: SQLITE_PACKETS, d1: D1_PACKETS }, async ({ name, store, written }, packets) => {
  await store.db.insert(sources).values({ id: 1, kind: 'tcp', name: 'radio', localNodeNum: 7, createdAt: BEGUN })
  const stored = await costOfPacket(written, packets, async () => {
    for (let from = 0; from < packets; from += DELIVERY) {
      const rows = Array.from({ length: DELIVERY }, (_, n) => packetOf(from + n))
      const [first, ...others] = writeLog(store, rows)
      if (first !== undefined) await store.atomic([first, ...others])
    }
  })
  const remembered = await costOfPacket(written, packets, async () => {
    for (let from = 0; from < packets; from += DELIVERY) {
      const rows = Array.from({ length: DELIVERY }, (_, n) => ({ ...packetOf(from + n), proven: true }))
      const [first] = writeProven(store, rows, BEGUN)
      if (first !== undefined) await store.atomic([first])
    }
  })
  const end = BEGUN + packets * EVERY_MS
  const bytes = (await store.sizeBytes()) ?? 0
  const reader = { store, viewer: { permissions: ALL_PERMISSIONS, view: WHOLE_VIEW } }
  const time = async (what: string, work: () => Promise<unknown>) =>
    `${what} ${(await medianMs(work, 9)).toFixed(2)} ms`
  const read = [
    await time('newest 100', () => listPackets(reader, { limit: 100 })),
    await time('of a node', () => listPackets(reader, { limit: 100, from: 0xa000_0007 })),
    await time('of a port', () => listPackets(reader, { limit: 100, port: 71 })),
    await time('of a port that nobody uses', () => listPackets(reader, { limit: 100, port: 5 })),
    await time('to a node', () => listPackets(reader, { limit: 100, to: 5 })),
    await time('links of a day', () => listLinks(reader, { since: end - 24 * HOUR_MS, until: end })),
    await time('playback of an hour', () => readHeard(reader, { from: end - HOUR_MS, to: end, after: 0 })),
    await time('sent again', () => recallProven(store, [{ from: 7, id: 7, at: end * 2 }])),
    await time('the packets of six hours', () => readRecentPackets(store, end - 6 * HOUR_MS, null)),
  ]
  const cutoffs = { telemetry_hourly: 0, messages: 0, packets: end + HOUR_MS }
  const deleted = await costOfPacket(written, packets, () => deleteOldTraffic(store, cutoffs, { pause: eachTurn }))
  const forgotten = await costOfPacket(written, packets, () =>
    deleteOldProven(store, end + HOUR_MS, { pause: eachTurn }),
  )
  const each = [stored, remembered, deleted, forgotten]
  const rows = written === null ? '–' : each.map(({ rows: n }) => n.toFixed(3)).join(' + ')
  console.log(`${name}: ${packets} packets, ${(bytes / packets).toFixed(0)} bytes a packet, rows written ${rows} (stored, remembered as proven, deleted, forgotten)
  CPU of a packet: stored ${stored.cpu}, remembered ${remembered.cpu}, deleted ${deleted.cpu}, forgotten ${forgotten.cpu}
  ${read.join(', ')}`)
})
