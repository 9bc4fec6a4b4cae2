import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PacketRow, writeLog } from '../../src/app/mesh/ingest/rows/log.ts'
import { packetsWithin } from '../../src/db/packet-log.ts'
import { packets, sources } from '../../src/db/schema.ts'
import type { Store } from '../../src/db/store.ts'
import { d1Store } from '../../src/edge/d1.ts'
import { meshStoreContract } from '../contract/mesh-store.ts'
import { textSearchContract } from '../contract/text-search.ts'
import { trafficHoursContract } from '../contract/traffic-hours.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

const NOW = Date.UTC(2026, 0, 15, 12)

let workerd: Workerd | undefined
let store: Store | undefined

beforeAll(async () => {
  workerd = await openWorkerd({})
  store = d1Store(workerd.database)
})
afterAll(() => workerd?.close())

function opened(): Store {
  if (store === undefined) throw new Error('D1 did not start')
  return store
}

meshStoreContract('D1', opened)
textSearchContract('D1', opened, 8)
trafficHoursContract('D1', opened, 4)

test('deliveries at the same time, and one again, lose and double no packet', async () => {
  const { db, atomic } = opened()
  await db.insert(sources).values({ kind: 'ingest', name: 'at once', createdAt: NOW })
  const packetOf = (packetId: number): PacketRow => ({
    source: 'at once',
    t: NOW + packetId,
    packetId,
    fromNodeNum: 7,
    toNodeNum: 9,
    gateway: null,
    channel: 0,
    port: 1,
    rxSnr: null,
    rxRssi: null,
    hopsAway: 0,
    hopLimit: 3,
    viaMqtt: false,
    pkiEncrypted: false,
    replayed: false,
    trustLevel: 'plain',
    payload: `{"kind":"text","text":"${packetId}"}`,
    isReadable: true,
  })
  const deliver = async (delivery: number) => {
    const rows = Array.from({ length: 30 }, (_, index) => packetOf(10_000 + delivery * 30 + index))
    const [first, ...others] = writeLog(opened(), rows)
    if (first !== undefined) await atomic([first, ...others])
  }
  await Promise.all([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3, 4].map(deliver))
  const logged = db
    .select({ id: packets.id, packetId: packets.packetId })
    .from(packetsWithin(0, Number.MAX_SAFE_INTEGER))
  const mine = (await logged.all()).filter(({ packetId }) => packetId >= 10_000 && packetId < 10_300)
  expect(new Set(mine.map(({ packetId }) => packetId)).size).toBe(300)
  const ids = mine.map(({ id }) => id).toSorted((a, b) => a - b)
  expect(ids).toStrictEqual(Array.from({ length: 300 }, (_, index) => (ids[0] ?? 0) + index))
})
