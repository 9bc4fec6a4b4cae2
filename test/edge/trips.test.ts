import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseSessions } from '../../src/app/accounts/sessions/database-sessions.ts'
import { storeBatch } from '../../src/app/mesh/ingest/ingest.ts'
import { d1Store } from '../../src/edge/d1.ts'
import { openReplicas } from '../../src/edge/reading/replicas.ts'
import { dropUnneeded } from '../../src/edge/unneeded.ts'
import { PortNum } from '../../src/meshtastic/gen/ports_pb.ts'
import { ADMIN_PASSWORD, type Client, createTestApp, type TestApp } from '../support/app.ts'
import { item } from '../support/mesh/delivery.ts'
import { heard, packet, text } from '../support/mesh/mesh.ts'
import { createSigner } from '../support/mesh/signer.ts'
import { type CountedDatabase, countTrips } from './counting.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

let workerd: Workerd
let d1: CountedDatabase
let app: TestApp
let admin: Client

beforeAll(async () => {
  workerd = await openWorkerd({})
  d1 = countTrips(workerd.database)
  // Each query has a session of D1, as in the worker.
  const store = d1Store(openReplicas(d1.database, Date.now).nearest)
  const ports = { store, sessions: databaseSessions(store), radio: null, compressor: null }
  app = await createTestApp({ ports })
  admin = await app.admin()
  await dropUnneeded(store)
  await workerd.sql('insert into nodes (node_num, first_heard, last_heard) values (7, 1, 1), (8, 1, 2), (9, 1, 3)')
  await admin.send('GET', '/api/nodes')
})
afterAll(async () => {
  app.close()
  await workerd.close()
})

async function tripsOf(send: () => Promise<Response>): Promise<number> {
  d1.takeTrips()
  expect((await send()).status).toBe(200)
  return d1.takeTrips()
}

test.each([
  ['/api/auth/status', 1],
  ['/api/nodes', 1],
  ['/api/dashboard', 2],
  ['/api/messages', 3],
  ['/api/system', 4],
])('GET %s makes %i round trips to D1', async (path, trips) => {
  expect(await tripsOf(() => admin.send('GET', path))).toBe(trips)
})

test('a changed list takes one more round trip, also after a deletion', async () => {
  const changes = [
    "update nodes set notes = 'x' where node_num = 8",
    'insert into nodes (node_num, first_heard) values (10, 1)',
  ]
  for (const change of changes) {
    await workerd.sql(change)
    expect(await tripsOf(() => admin.send('GET', '/api/nodes'))).toBe(2)
  }
  await workerd.sql('delete from nodes where node_num = 10')
  expect(await tripsOf(() => admin.send('GET', '/api/nodes'))).toBeLessThanOrEqual(3)
  const list = await (await admin.send('GET', '/api/nodes')).json()
  expect(list).toMatchObject([{ nodeNum: 9 }, { nodeNum: 8, notes: 'x' }, { nodeNum: 7 }])
})

test('a dashboard is cached for a minute', async () => {
  expect(await tripsOf(() => admin.send('GET', '/api/dashboard'))).toBe(1)
  app.clock.advance(61_000)
  expect(await tripsOf(() => admin.send('GET', '/api/dashboard'))).toBe(2)
})

test('the page System reads 2000 rows at most, however many sign-ins failed', async () => {
  const numbers = 'with recursive i(n) as (select 1 union all select n + 1 from i where n < 10000)'
  await workerd.sql(`${numbers} insert into audit_log (timestamp, action, resource, details)
    select ${app.clock.now}, iif(n % 2, 'login_failed', 'oidc_login_failed'), 'auth', '{}' from i`)
  d1.takeRead()
  const answer = await admin.send('GET', '/api/system')
  expect(await answer.json()).toMatchObject({ signIns: { failed: 500 } })
  expect(d1.takeRead()).toBeLessThanOrEqual(2000)
})

test('who heard whom is read and sorted once, however many links there are', async () => {
  const numbers = 'with recursive i(n) as (select 1 union all select n + 1 from i where n < 3000)'
  await workerd.sql(`${numbers} insert into heard_links (from_node_num, to_node_num, packets, snr, t)
    select n, 7, 1, 1, ${app.clock.now} - n from i`)
  d1.takeRead()
  expect((await admin.send('GET', '/api/topology')).status).toBe(200)
  expect(d1.takeRead()).toBeLessThanOrEqual(4 * 3000 + 100)
})

test('a cold dashboard reads each node once and 100 other rows at most, however many messages there are', async () => {
  const hour = 3_600_000
  const numbers = (count: number) =>
    `with recursive i(n) as (select 1 union all select n + 1 from i where n < ${count})`
  const now = app.clock.now
  const firstHour = now - (now % hour) - 23 * hour
  const stored = 40_000
  const step = Math.floor((now - firstHour) / stored)
  // In each hour messages on four channels, direct messages and packets; 20 of the nodes were heard lately.
  for (let from = 0; from < stored; from += 10_000) {
    await workerd.sql(`${numbers(10_000)} insert into messages (packet_id, from_node_num, to_node_num, channel, text,
      timestamp, direction) select n + ${from}, 7, iif(n % 5, 4294967295, 8), n % 5, 'Message ' || n,
      ${firstHour} + (n + ${from}) * ${step}, 'in' from i`)
    await workerd.sql(`${numbers(10_000)} insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel,
      hop_limit, via_mqtt, pki_encrypted, replayed, payload) select 1, ${firstHour} + (n + ${from}) * ${step},
      n + ${from}, 7, 4294967295, 0, 3, 0, 0, 0, '{}' from i`)
  }
  await workerd.sql(`${numbers(2000)} insert into nodes (node_num, first_heard, last_heard)
    select n + 1000, 1, iif(n > 1980, ${now}, n) from i`)
  const scope = { channels: { read: [1, 2], write: [] }, direct: { read: true, write: false } }
  const narrow = await app.user('reader', undefined, scope)
  for (const [client, messages] of [
    [admin, stored],
    [narrow, (stored * 3) / 5],
  ] as const) {
    app.clock.advance(61_000)
    d1.takeTrips()
    d1.takeRead()
    const answer = await client.send('GET', '/api/dashboard')
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { counts: { nodes: 2003, activeNodes: 20, messages, packets: stored } },
    ])
    expect(d1.takeTrips()).toBeLessThanOrEqual(2)
    expect(d1.takeRead()).toBeLessThanOrEqual(2003 + 100)
  }
})

test('a delivery reads few rows, however long the log is', async () => {
  const made = await admin.send('POST', '/api/tokens', { name: 'hill', scopes: ['ingest'] })
  const { token } = Object(await made.json())
  // As many packets as duplicates are looked for among.
  const keys = `(select json_group_array(printf('%08x%08x', 7, g.n * 200 + e.n)) from i e where e.n <= 200)`
  await workerd.sql(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 250)
    insert into packet_pages select 1e6 + g.n * 200, 1e6 + g.n * 200 + 199, 200, ${app.clock.now}, ${app.clock.now}, 0,
      '[1]', '[]', '[]', ${keys}, (select json_group_array(json_array(1, ${app.clock.now})) from i e where e.n <= 200)
    from i g`)
  const deliver = async (ids: readonly number[]) => {
    const packets = ids.map((id) => ({ data: item(packet(text(`${id}`), { id })), receivedAt: app.clock.now }))
    const body = { source: 'hill', packets }
    const answer = await app.client().send('POST', '/api/ingest', body, { authorization: `Bearer ${token}` })
    expect([answer.status, await answer.json()]).toMatchObject([200, { rejected: [] }])
  }
  const ids = Array.from({ length: 20 }, (_, n) => 100 + n)
  await deliver([99])
  d1.takeRead()
  await deliver(ids)
  const read = d1.takeRead()
  expect(read).toBeGreaterThan(20)
  expect(read).toBeLessThanOrEqual(900)
  const [stored] = await workerd.sql('select packets from packet_pages order by first_id desc limit 1')
  await deliver(ids)
  expect(await workerd.sql('select packets from packet_pages order by first_id desc limit 1')).toEqual([stored])
  expect(stored).toEqual({ packets: 21 })
})

test('a sign-in takes four round trips to D1', async () => {
  const credentials = { username: 'admin', password: ADMIN_PASSWORD }
  app.ip = '192.0.2.1'
  expect(await tripsOf(() => app.client().send('POST', '/api/auth/login', credentials))).toBe(4)
})

test('anonymous requests read the settings every five seconds', async () => {
  expect((await admin.send('PUT', '/api/public-access', { enabled: true })).status).toBe(200)
  const ask = () => app.client().send('GET', '/api/nodes')
  await tripsOf(ask)
  expect(await tripsOf(ask)).toBe(0)
  // Another isolate switches it off: this one learns it when its copy is five seconds old.
  await workerd.sql(
    "update settings set value = json_set(value, '$.enabled', json('false')) where key = 'publicAccess'",
  )
  app.clock.advance(4999)
  expect((await ask()).status).toBe(200)
  app.clock.advance(1)
  expect((await ask()).status).toBe(401)
  expect((await admin.send('PUT', '/api/public-access', { enabled: true })).status).toBe(200)
  expect((await ask()).status).toBe(200)
  expect((await admin.send('PUT', '/api/public-access', { enabled: false })).status).toBe(200)
  expect((await ask()).status).toBe(401)
})

test('a signed delivery reads as many rows of a log of any length, and each packet is one more written row', async () => {
  const { store } = app.ports
  const signer = createSigner(1)
  const day = 86_400_000
  /** It is nowhere but in the log. */
  const ping = text('seq 1', { portnum: PortNum.RANGE_TEST_APP })
  const at = app.clock.now
  const source = { kind: 'mqtt', name: 'broker' } as const
  const known = { name: 'broker', kind: 'mqtt', localNodeNum: null } as const
  const deliver = async (count: number, say = () => signer.packet(ping)) => {
    const packets = Array.from({ length: count }, () => heard(say(), { at, source }))
    d1.takeTrips()
    d1.takeRead()
    d1.takeWritten()
    await storeBatch(store, packets, { known, radios: null, now: at })
    return { trips: d1.takeTrips(), read: d1.takeRead(), written: d1.takeWritten() }
  }
  /** Full pages of a day before, which have other packets of the sender. */
  const addPages = (pages: number) =>
    workerd.sql(`with recursive i(n) as (select 0 union all select n + 1 from i where n < ${pages - 1}),
      k(n) as (select 1 union all select n + 1 from k where n < 200),
      last as materialized (select max(last_id) as id from packet_pages)
      insert into packet_pages select id + i.n * 200 + 1, id + i.n * 200 + 200, 200, ${at - day}, ${at - day}, 0, '[1]',
        '[]', '[]', json_group_array(printf('%08x%08x', ${signer.nodeNum}, i.n * 200 + k.n)),
        json_group_array(json('[1,${at - day},1,${signer.nodeNum},9,null,0,1,null,null,null,3,0,0,0,null,{}]'))
      from last cross join i cross join k group by i.n`)
  await workerd.sql("insert into sources (kind, name, created_at) values ('mqtt', 'broker', 1)")
  await deliver(1, () => signer.packet(signer.user({ longName: 'Hill' })))
  await addPages(250)
  await deliver(1)
  const before = await deliver(20)
  const unsigned = () => packet(ping)
  await deliver(1, unsigned)
  expect((await deliver(20, unsigned)).written).toBe(before.written - 20)
  await addPages(1000)
  await deliver(1)
  expect(await deliver(20)).toStrictEqual(before)
})
