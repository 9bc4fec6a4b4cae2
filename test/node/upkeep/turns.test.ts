import { afterEach, beforeEach, expect, test } from 'vitest'
import { deleteInTurns } from '../../../src/node/upkeep/upkeep.ts'
import { createTestApp, START, type TestApp } from '../../support/app.ts'

const DAY = 86_400_000

let app: TestApp
let time: number
beforeEach(async () => {
  app = await createTestApp()
  time = 0
  const numbers = 'with recursive i(n) as (select 1 union all select n + 1 from i where n < 500)'
  app.store.sqlite.exec(`insert into metrics (id, name) values (1, 'a.a');
    ${numbers} insert into nodes (id, node_num, first_heard) select n, n, 1 from i;
    ${numbers} insert into telemetry select n, 1, ${START - 40 * DAY}, 1, 0 from i;
    ${numbers} insert into telemetry_hourly select n, 1, ${START - 500 * DAY}, 1, 1, 1, 1, 1, 0 from i;
    ${numbers} insert into positions select n, ${START - 100 * DAY}, 1, 2, null, null, 0 from i;
    ${numbers} insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
      select n, 7, 4294967295, 0, 'old', ${START - 400 * DAY}, 'in' from i;
    ${numbers} insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, hop_limit, via_mqtt,
      pki_encrypted, replayed, payload) select 1, ${START - 8 * DAY}, n, n, 1, 0, 3, 0, 0, 0, '{}' from i`)
})
afterEach(() => app.close())

const count = (table: string) => Number(app.store.sqlite.prepare(`select count(*) from ${table}`).pluck().get())
const left = () => ['telemetry', 'positions', 'messages', 'packets', 'telemetry_hourly'].map(count)

test('on a slow card each table gets its turn, and all are done in the end', async () => {
  const seen: number[][] = []
  // Each slice takes four seconds, and a hundredth of a full one is all that fits.
  const pause = async () => {
    time += 4000
    const now = left()
    if (seen.at(-1)?.join() !== now.join()) seen.push(now)
    return true
  }
  await deleteInTurns(
    app.ports,
    pause,
    () => 0.02,
    () => time,
  )
  expect(left()).toStrictEqual([0, 0, 0, 0, 0])
  const firstDone = seen.findIndex((rows) => rows.includes(0))
  // Before the first table is empty, every other one has lost rows.
  expect(seen[firstDone]?.every((rows) => rows < 500)).toBe(true)
})

test('a stop ends it after the slice under way, and the next run continues', async () => {
  let slices = 0
  const stopping = async () => ++slices < 40
  await deleteInTurns(
    app.ports,
    stopping,
    () => 0.02,
    () => time,
  )
  expect(slices).toBeLessThan(60)
  const before = left()
  expect(before[0]).toBeGreaterThan(400)
  expect(before[0]).toBeLessThan(500)
  const reached = "select place ->> 'nodeId' from sweeps where name = 'telemetry'"
  expect(app.store.sqlite.prepare(reached).pluck().get()).toBe(500 - Number(before[0]))
  await deleteInTurns(
    app.ports,
    async () => true,
    () => 1,
    () => time,
  )
  expect(left()).toStrictEqual([0, 0, 0, 0, 0])
})
