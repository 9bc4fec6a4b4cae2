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
  const store = d1Store(d1.database)
  app = await createTestApp({ ports: { store, sessions: databaseSessions(store), radio: null, compressor: null } })
})
afterAll(async () => {
  app.close()
  await workerd.close()
})

const numbers = `with recursive i(n) as (select 1 union all select n + 1 from i where n < ${NODES})`
const count = async (table: string, where: string) =>
  Number((await workerd.sql(`select count(*) as n from ${table} where ${where}`))[0]?.['n'])

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
  await workerd.sql(`${numbers} insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel,
    hop_limit, via_mqtt, pki_encrypted, replayed, payload) select 1, ${old}, n, n, 4294967295, 0, 3, 0, 0, 0, '{}' from i`)
  const left = async () =>
    (await count('telemetry', `t < ${now - 31 * DAY}`)) +
    (await count('positions', `t < ${now - 91 * DAY}`)) +
    (await count('packets', `t < ${now - 31 * DAY}`)) +
    (await count('telemetry_hourly', `t < ${now - 800 * DAY}`))
  let runs = 0
  for (; (await left()) > 0 && runs < 144; runs++) {
    d1.takeTrips()
    await runSchedule(app.ports, app.clock.now)
    expect(d1.takeTrips()).toBeLessThanOrEqual(MAX_QUERIES)
    app.clock.advance(5 * 60_000)
    await runRetention(app.ports)
    expect(d1.takeTrips()).toBeLessThanOrEqual(MAX_QUERIES)
    app.clock.advance(5 * 60_000)
  }
  expect(await left()).toBe(0)
  expect(runs).toBeLessThan(144 / 4)
  // Once the passes are over, finding nothing costs next to nothing.
  let trips = MAX_QUERIES
  for (let run = 0; trips > 40 && run < 24; run++) {
    d1.takeTrips()
    await runRetention(app.ports)
    trips = d1.takeTrips()
  }
  expect(trips).toBeLessThanOrEqual(40)
  app.clock.advance(HOUR)
  await runRetention(app.ports)
  expect(d1.takeTrips()).toBeLessThanOrEqual(40)
}, 400_000)
