import { afterEach, beforeEach, expect, test } from 'vitest'
import { packets, sources } from '../../../src/db/schema.ts'
import { type Client, START } from '../../support/app.ts'
import { createTestMesh, FAR, LOCAL, type TestMesh } from '../../support/mesh/mesh.ts'

const GATEWAY = 0xa0cb0009
const HOUR = 3_600_000
let mesh: TestMesh
let admin: Client

beforeEach(async () => {
  mesh = await createTestMesh()
  admin = await mesh.app.admin()
  const { db } = mesh.app.store
  await db.insert(sources).values([
    { id: 90, kind: 'tcp', name: 'links radio', localNodeNum: LOCAL, createdAt: START },
    { id: 91, kind: 'mqtt', name: 'links broker', createdAt: START },
  ])
})
afterEach(() => mesh.app.close())

let last = 0
/** A packet that the radio itself heard directly, unless it says otherwise. */
const logged = (more: Partial<typeof packets.$inferInsert> = {}) => ({
  sourceId: 90,
  t: START,
  packetId: ++last,
  fromNodeNum: FAR,
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
const log = (...rows: readonly ReturnType<typeof logged>[]) => mesh.app.store.db.insert(packets).values([...rows])

async function links(client: Client, query = ''): Promise<unknown> {
  const answer = await client.send('GET', `/api/links${query}`)
  expect(answer.status).toBe(200)
  return Object(await answer.json()).links
}

const pair = {
  nodeNum: LOCAL,
  nodeId: '!a0cb0001',
  neighborNum: FAR,
  neighborId: '!a0cb0002',
  viaMqtt: false,
  count: 2,
  snr: -6.25,
  timestamp: START + 60_000,
}

test('one link for each pair of nodes, with the number of its packets and the latest signal', async () => {
  await log(
    logged(),
    logged({ t: START + 60_000, rxSnr: -6.25 }),
    // None of these was received from its sender.
    logged({ hopsAway: 1 }),
    logged({ hopsAway: null }),
    logged({ replayed: true }),
    logged({ trustLevel: 'spoofed' }),
    logged({ fromNodeNum: LOCAL }),
  )
  expect(await links(admin)).toStrictEqual([pair])
  expect(await links(admin, `?since=${START + 1}`)).toStrictEqual([{ ...pair, count: 1 }])
  const earlier = [{ ...pair, count: 1, snr: 3.5, timestamp: START }]
  expect(await links(admin, `?until=${START + 60_000}`)).toStrictEqual(earlier)
  // However many packets came later.
  mesh.app.store.sqlite.exec(
    `with recursive i(n) as (select 1 union all select n + 1 from i where n < 20001)
    insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, port, hop_limit, via_mqtt,
      pki_encrypted, replayed, trust_level, payload)
    select source_id, ${START + 2 * HOUR}, n, 7, 4294967295, 0, 1, 0, 0, 0, 0, null, '{}'
    from i, (select source_id from packets limit 1);
    insert or replace into packet_hours (t, first_id)
    select ${START - (START % HOUR) + 2 * HOUR}, min(id) from packets where from_node_num = 7`,
  )
  expect(await links(admin, `?until=${START + 60_000}`)).toStrictEqual(earlier)
})

test('a gateway is the receiver, and what came through a broker is another link, without a signal', async () => {
  const heard = { sourceId: 91, gateway: GATEWAY }
  await log(logged({ ...heard, rxSnr: 8 }), logged({ ...heard, t: START + 1, viaMqtt: true, hopsAway: 2, rxSnr: 1 }))
  const gateway = { ...pair, nodeNum: GATEWAY, nodeId: '!a0cb0009', count: 1 }
  expect(await links(admin)).toStrictEqual([
    { ...gateway, viaMqtt: true, snr: null, timestamp: START + 1 },
    { ...gateway, snr: 8, timestamp: START },
  ])
})

test('who may not see a node sees none of its links, as its sender or as its receiver', async () => {
  await log(logged(), logged({ sourceId: 91, gateway: GATEWAY }), logged({ fromNodeNum: GATEWAY }))
  const viewer = await mesh.app.user('viewer', { info: { read: true, write: false } })
  expect(await links(viewer)).toHaveLength(3)
  const { sqlite } = mesh.app.store
  sqlite.exec(`insert into nodes (node_num, first_heard, is_hidden) values (${GATEWAY}, ${START}, 1)`)
  expect(await links(viewer)).toStrictEqual([expect.objectContaining({ nodeNum: LOCAL, neighborNum: FAR, count: 1 })])
  expect(await links(admin)).toHaveLength(3)
})

test('packets to a node that a viewer may not see are not counted, as they are not in the log', async () => {
  await log(logged(), logged({ toNodeNum: GATEWAY }), logged({ toNodeNum: GATEWAY, fromNodeNum: 7 }))
  const viewer = await mesh.app.user('viewer', { info: { read: true, write: false } })
  const { sqlite } = mesh.app.store
  sqlite.exec(`insert into nodes (node_num, first_heard, is_hidden) values (${GATEWAY}, ${START}, 1)`)
  expect(await links(viewer)).toStrictEqual([expect.objectContaining({ nodeNum: LOCAL, neighborNum: FAR, count: 1 })])
  expect(await links(admin)).toHaveLength(2)
})

test('the log of packets is narrowed to a time', async () => {
  await log(
    logged(),
    logged({ t: START + 1 }),
    logged({ t: START + 2, fromNodeNum: GATEWAY }),
    logged({ t: START + 3 }),
  )
  const times = async (query: string) => {
    const answer = await admin.send('GET', `/api/packets?${query}`)
    return Object(await answer.json()).packets.map(({ timestamp }: { timestamp: number }) => timestamp - START)
  }
  expect(await times(`since=${START + 1}&until=${START + 3}`)).toEqual([2, 1])
  expect(await times(`until=${START + 3}&from=${FAR}`)).toEqual([1, 0])
})
