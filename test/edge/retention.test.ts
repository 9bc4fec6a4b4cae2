import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseSessions } from '../../src/app/accounts/sessions/database-sessions.ts'
import { d1Store } from '../../src/edge/d1.ts'
import { runRetention, runSchedule } from '../../src/edge/schedule.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { type CountedDatabase, countTrips } from './counting.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

const DAY = 86_400_000
const HOUR = 3_600_000
const NODES = 20_000
/** developers.cloudflare.com/d1/platform/limits: queries of one run of a worker. */
const MAX_QUERIES = 1000

let workerd: Workerd
let d1: CountedDatabase
let app: TestApp
beforeAll(async () => {
  workerd = await openWorkerd({})
  d1 = countTrips(workerd.database, { reads: false })
  app = await appOn(d1)
})
afterAll(async () => {
  app.close()
  await workerd.close()
})

async function appOn({ database }: CountedDatabase): Promise<TestApp> {
  const store = d1Store(database)
  return createTestApp({ ports: { store, sessions: databaseSessions(store), radio: null, compressor: null } })
}

const numbers = `with recursive i(n) as (select 1 union all select n + 1 from i where n < ${NODES})`
const count = async (table: string, where: string) =>
  Number((await workerd.sql(`select count(*) as n from ${table} where ${where}`))[0]?.['n'])
/** Runs it, and returns the number of queries, each statement of a batch included. */
const queriesOf = async (run: () => Promise<void>) => {
  d1.takeQueries()
  await run()
  return d1.takeQueries()
}
const deleteOld = () => runRetention(app.ports, app.clock.now)

test('with 20,000 nodes every table is cleared within a day, each run within its queries', async () => {
  const now = app.clock.now
  const old = now - 400 * DAY
  await workerd.sql("insert into metrics (id, name) values (1, 'deviceMetrics.voltage')")
  await workerd.sql(
    `${numbers} insert into nodes (id, node_num, first_heard, last_heard) select n, n, 1, ${now} from i`,
  )
  await workerd.sql(`${numbers} insert into telemetry select n, 1, ${old}, 4, 0 from i`)
  await workerd.sql(`${numbers} insert into telemetry_dirty select n, 1, ${old - (old % HOUR)} from i`)
  await workerd.sql(`${numbers} insert into telemetry_hourly (node_id, metric, t, n, min, max, sum, last)
    select n, 1, ${now - 900 * DAY}, 1, 4, 4, 4, 4 from i`)
  await workerd.sql(`${numbers} insert into positions select n, ${old}, 1, 2, null, null, 0 from i`)
  await workerd.sql(`${numbers} insert into proven_packets select n % 300, n, ${old}, 1 from i`)
  await workerd.sql(`${numbers} insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel,
    hop_limit, via_mqtt, pki_encrypted, replayed, payload) select 1, ${old}, n, n, 4294967295, 0, 3, 0, 0, 0, '{}' from i`)
  const left = async () =>
    (await count('telemetry', `t < ${now - 31 * DAY}`)) +
    (await count('positions', `t < ${now - 91 * DAY}`)) +
    (await count('packets', `t < ${now - 31 * DAY}`)) +
    (await count('proven_packets', `t < ${now - 31 * DAY}`)) +
    (await count('telemetry_hourly', `t < ${now - 800 * DAY}`))
  let runs = 0
  for (; (await left()) > 0 && runs < 144; runs++) {
    expect(await queriesOf(() => runSchedule(app.ports, app.clock.now))).toBeLessThanOrEqual(MAX_QUERIES)
    app.clock.advance(5 * 60_000)
    expect(await queriesOf(deleteOld)).toBeLessThanOrEqual(MAX_QUERIES)
    app.clock.advance(5 * 60_000)
  }
  expect(await left()).toBe(0)
  expect(runs).toBeLessThan(144 / 4)
}, 400_000)

test('finding nothing costs next to nothing: passes end, and their tables rest', async () => {
  let queries = MAX_QUERIES
  for (let run = 0; queries > 40 && run < 24; run++) queries = await queriesOf(deleteOld)
  const counted = countTrips(workerd.database)
  const other = await appOn(counted)
  other.clock.advance(app.clock.now - other.clock.now + HOUR)
  // Another hour is over: whether it has measurements is a look or two for each node, before and after the pass moves on.
  counted.takeRead()
  await runRetention(other.ports, other.clock.now)
  expect(counted.takeRead()).toBeLessThan(4 * 20_000 + 200)
  counted.takeQueries()
  counted.takeWritten()
  await runRetention(other.ports, other.clock.now)
  expect(counted.takeQueries()).toBeLessThanOrEqual(40)
  expect(counted.takeRead()).toBeLessThan(200)
  expect(counted.takeWritten()).toBe(0)
  other.close()
}, 200_000)

test('one run deletes and summarises what 50 packets a second bring in ten minutes', async () => {
  // An hour of a node and metric has two measurements, a packet half a telemetry packet's eight: 30,000 packets.
  const [rows, hours] = [60_000, 30_000]
  const now = app.clock.now
  await workerd.sql('delete from sweeps')
  for (let n = 0; n < 5; n++)
    await workerd.sql(`${numbers} insert into telemetry select n, 1, ${now - 40 * DAY + n}, 4, 0 from i`)
  for (const metric of [1, 2]) {
    await workerd.sql(`${numbers} insert into telemetry select n, ${metric}, ${now - 2 * HOUR}, 4, 0 from i`)
    await workerd.sql(
      `${numbers} insert into telemetry_dirty select n, ${metric}, ${now - 2 * HOUR - ((now - 2 * HOUR) % HOUR)} from i`,
    )
  }
  expect(await queriesOf(() => runSchedule(app.ports, now))).toBeLessThanOrEqual(MAX_QUERIES)
  expect(await queriesOf(deleteOld)).toBeLessThanOrEqual(MAX_QUERIES)
  expect(5 * NODES - (await count('telemetry', `t < ${now - 31 * DAY}`))).toBeGreaterThan(rows)
  expect(2 * NODES - (await count('telemetry_dirty', 'true'))).toBeGreaterThan(hours)
}, 200_000)
