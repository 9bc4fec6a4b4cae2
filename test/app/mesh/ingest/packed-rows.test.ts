import { readFileSync, readdirSync } from 'node:fs'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { heardInPublic, WHOLE_VIEW } from '../../../../src/app/accounts/access/visible.ts'
import { createIngest } from '../../../../src/app/mesh/ingest/ingest.ts'
import { listReceptions } from '../../../../src/app/mesh/messages/receptions.ts'
import { readRevision } from '../../../../src/app/mesh/nodes/list/body-cache.ts'
import { nodesSeenBy, readNodeRows } from '../../../../src/app/mesh/nodes/seen.ts'
import { planRetention } from '../../../../src/app/retention/plan.ts'
import { deleteOldMessages } from '../../../../src/app/upkeep/old-messages.ts'
import { enforceRowQuotas } from '../../../../src/app/upkeep/row-quotas.ts'
import { deleteOld } from '../../../../src/app/upkeep/upkeep.ts'
import { sql } from 'drizzle-orm'
import { messages } from '../../../../src/db/schema.ts'
import type { Store } from '../../../../src/db/store.ts'
import { dropUnneeded, UNNEEDED } from '../../../../src/edge/unneeded.ts'
import { MIGRATIONS_DIR } from '../../../../src/node/database.ts'
import { DAY_MS } from '../../../../src/shared/time.ts'
import { START } from '../../../support/app.ts'
import { keptLog } from '../../../support/backup/backup.ts'
import { openMemoryStore } from '../../../support/memory-store.ts'
import { heard, packet, text } from '../../../support/mesh/mesh.ts'

const goesOn = async () => true
/** As on the edge. */
const packing = () => ({ ...openMemoryStore(), packs: true })

test('what the public knows of a hearing is the latest on its channels, whatever came between', async () => {
  const hearing = fc.record({ channel: fc.nat(2), at: fc.nat(20), hops: fc.nat(3), isLate: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(hearing, { minLength: 1, maxLength: 4 }), { maxLength: 6 }), async (batches) => {
      const store = packing()
      const ingest = createIngest(store)
      for (const batch of batches) {
        const events = batch.map(({ channel, at, hops, isLate }) => ({
          ...heard(packet(text('x'), { channel, hopLimit: 3 - hops, rxTime: (START + at * 1000) / 1000 }), {
            at: START + at * 1000,
          }),
          isLate,
        }))
        await ingest.store(events)
      }
      const all = batches.flat()
      for (const read of [[0], [1], [0, 1], [0, 1, 2]]) {
        const shown = all.filter(({ channel }) => read.includes(channel))
        const expected = shown.length === 0 ? null : START + Math.max(...shown.map(({ at }) => at)) * 1000
        const view = { ...WHOLE_VIEW, isPublic: true, channels: { read, write: [] } } as const
        const [node] = await nodesSeenBy(store, view, await readNodeRows(store, all.length === 0 ? [] : [1]))
        expect(node?.lastHeard ?? null).toBe(expected)
        const [found] = await store.db.all<{ at: number | null }>(
          sql`select ${heardInPublic('n', JSON.stringify(read))} as at from nodes n`,
        )
        expect(found?.at ?? null).toBe(expected)
        const first = shown.length === 0 ? null : START + Math.min(...shown.map(({ at }) => at)) * 1000
        if (first !== null) expect(node?.firstHeard).toBe(first)
      }
      store.sqlite.close()
    }),
    { numRuns: 10 },
  )
})

test('a node that goes on being heard on its channel writes one row, and takes no id', async () => {
  const store = packing()
  const ingest = createIngest(store)
  await ingest.store([heard(packet(text('a')), { at: START })])
  store.sqlite.exec(`create temp table written (what);
    create temp trigger u after update on channel_hearings begin insert into written values ('hearing'); end;
    create temp trigger i after insert on channel_hearings begin insert into written values ('hearing'); end;
    create temp trigger n after update on nodes begin insert into written values ('node'); end`)
  for (let n = 1; n <= 3; n++) await ingest.store([heard(packet(text('b')), { at: START + n * 1000 })])
  expect(store.sqlite.prepare('select what, count(*) n from written group by 1').all()).toStrictEqual([
    { what: 'node', n: 3 },
  ])
  expect(store.sqlite.prepare("select seq from sqlite_sequence where name = 'nodes'").pluck().get()).toBe(1)
  expect(store.sqlite.prepare('select public_heard from nodes').pluck().get()).toBe(START + 3000)
})

test('receptions of a text are the same whether its first one has a row', async () => {
  const reception = fc.record({
    source: fc.nat(2),
    gateway: fc.nat(2),
    words: fc.nat(1),
    id: fc.integer({ min: 1, max: 3 }),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(reception, { minLength: 1, maxLength: 4 }), { maxLength: 5 }),
      async (batches) => {
        const list = async (store: ReturnType<typeof packing>) => {
          const ingest = createIngest(store)
          for (const [n, batch] of batches.entries()) {
            await ingest.store(
              batch.map(({ source, gateway, words, id }) => {
                const event = heard(packet(text(`words ${words}`), { id }), {
                  at: START + n * 1000,
                  source: { kind: source === 0 ? 'tcp' : 'mqtt', name: `source ${source}` },
                })
                return gateway === 0 ? event : { ...event, event: { ...event.event, gateway: 900 + gateway } }
              }),
            )
          }
          const all = await store.db
            .select({ id: messages.id, text: messages.text, bad: messages.conflicting })
            .from(messages)
          const found = []
          for (const { id, ...message } of all)
            found.push({ message, receptions: await listReceptions(store, id, WHOLE_VIEW) })
          store.sqlite.close()
          return found
        }
        expect(await list(packing())).toStrictEqual(await list({ ...openMemoryStore(), packs: false }))
      },
    ),
    { numRuns: 10 },
  )
})

const addMessages = (store: ReturnType<typeof packing>, from: number, count: number, at = START) =>
  store.sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < ${count})
    insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
    select ${from} * 100000 + n, ${from}, 4294967295, n % 3, 'm', ${at} + n, 'in' from i`)

test('the revision of the messages never comes back, whatever is added, changed and deleted', async () => {
  const step = fc.constantFrom('add', 'add earlier', 'change', 'delete newest', 'delete oldest', 'delete old')
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const store: Store & ReturnType<typeof packing> = { ...packing(), version: () => null }
      addMessages(store, 1, 5)
      const { sqlite } = store
      const rows = () => JSON.stringify(sqlite.prepare('select * from messages').all())
      let [last, before] = [await readRevision(store, 'messages'), rows()]
      for (const [n, each] of steps.entries()) {
        if (each === 'add') addMessages(store, 100 + n, 2)
        if (each === 'add earlier')
          sqlite.exec(`insert into messages (id, packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
            values (-${n + 1}, ${n}, 7, 4294967295, 0, 'm', ${START}, 'in')`)
        if (each === 'change')
          sqlite.exec("update messages set routing_error = 'x' where id = (select max(id) from messages)")
        if (each === 'delete newest') sqlite.exec('delete from messages where id = (select max(id) from messages)')
        if (each === 'delete oldest') sqlite.exec('delete from messages where id = (select min(id) from messages)')
        if (each === 'delete old') await deleteOldMessages(store, { cutoff: START + 100, rows: 3 })
        const revision = await readRevision(store, 'messages')
        if (rows() === before) expect(revision).toBeGreaterThanOrEqual(last)
        else expect(revision).toBeGreaterThan(last)
        ;[last, before] = [revision, rows()]
      }
      sqlite.close()
    }),
    { numRuns: 10 },
  )
})

test('without the counting triggers, rows are counted before anything depends on them', async () => {
  const store = packing()
  await dropUnneeded(store)
  const names = JSON.stringify(Object.values(UNNEEDED).flat())
  const left = store.sqlite.prepare('select count(*) from sqlite_master where name in (select value from json_each(?))')
  expect(left.pluck().get(names)).toBe(0)
  store.sqlite.exec(`insert into nodes (id, node_num, first_heard, days_heard) values (1, 1, 1, 40), (2, 2, 1, 40)`)
  addMessages(store, 1, 20)
  addMessages(store, 2, 3000)
  const counts = store.sqlite.prepare("select owner, n from row_counts where table_name = 'messages' order by 1")
  expect(counts.all()).toStrictEqual([])
  await planRetention({ store, now: START, everyMs: 1000 }, goesOn)
  expect(counts.all()).toStrictEqual([
    { owner: 1, n: 20 },
    { owner: 2, n: 3000 },
  ])
  const keep = () => enforceRowQuotas(store, goesOn, { now: START, most: { messages: 100 } })
  expect(await keep()).toStrictEqual({ messages: 2920 })
  // The counts are those before the deletion, which must not be deleted again.
  expect(await keep()).toStrictEqual({})
  expect(counts.all()).toStrictEqual([
    { owner: 1, n: 20 },
    { owner: 2, n: 80 },
  ])
})

test('a count that takes several runs goes on where the last one stopped', async () => {
  const store = packing()
  await dropUnneeded(store)
  for (let from = 1; from <= 10; from++) addMessages(store, from, 500)
  const counted = store.sqlite.prepare("select sum(n) from row_counts where table_name = 'messages'").pluck()
  const planned = store.sqlite.prepare('select count(*) from retention_plans').pluck()
  // The rows of one sender in a slice.
  const share = () => 0.001
  const slices = (count: number) => {
    let left = count
    return () => Promise.resolve(--left > 0)
  }
  const plan = () => planRetention({ store, now: START, everyMs: 1000 }, slices(5), share)
  await plan()
  expect([counted.get(), planned.get()]).toStrictEqual([2500, 0])
  for (let run = 0; run < 6; run++) await plan()
  expect([counted.get(), Number(planned.get()) > 0]).toStrictEqual([5000, true])

  // The count ends in the second run, which has no time left to delete.
  let deleted = 0
  for (let run = 0; run < 8 && deleted === 0; run++) {
    const most = { messages: 1000 }
    deleted = (await enforceRowQuotas(store, slices(8), { now: START, share, most })).messages ?? 0
  }
  expect(deleted).toBeGreaterThan(0)
})

test('counting takes its share of a run that deletes, and the tables have theirs', async () => {
  const store = packing()
  await dropUnneeded(store)
  for (let from = 1; from <= 10; from++) addMessages(store, from, 500)
  store.sqlite.exec(`insert into traceroutes (source_id, request_id, from_node_num, to_node_num, timestamp, state)
    select null, 1, 1, 9, ${START - 500 * DAY_MS}, 'delivered'`)
  const read = (query: string) => store.sqlite.prepare(query).pluck().get()
  const counted = () => read("select sum(n) from row_counts where table_name = 'messages'")
  const planned = () => Number(read('select count(*) from retention_plans'))
  // Each share is three slices of a count: they count twice.
  const each = () => {
    let left = 5
    return async () => --left > 0
  }
  const { log } = keptLog()
  const run = () => deleteOld({ store, log, now: () => START }, goesOn, () => 0.001, { each, restMs: DAY_MS })
  expect(await run()).toBe(false)
  expect([counted(), planned(), read('select count(*) from traceroutes')]).toStrictEqual([1500, 0, 0])
  await run()
  expect([counted(), planned()]).toStrictEqual([3000, 0])
  // Ten slices for the messages of ten senders, and ten for their receptions; what is left of a table needs none.
  for (let n = 3; n <= 7; n++) {
    expect(planned()).toBe(0)
    await run()
  }
  expect(counted()).toBe(5000)
  expect(planned()).toBeGreaterThan(0)
})

test('later migrations expect that the edge may lack what it does not need', () => {
  const files = readdirSync(MIGRATIONS_DIR).filter((name) => name.endsWith('.sql') && Number.parseInt(name, 10) >= 70)
  expect(files.length).toBeGreaterThan(0)
  const names = Object.values(UNNEEDED).flat().join('|')
  for (const name of files) {
    const bare = new RegExp(`drop (?:index|trigger) [\`"]?(?:${names})\\b`, 'i')
    expect([name, bare.test(readFileSync(`${MIGRATIONS_DIR}/${name}`, 'utf8'))]).toStrictEqual([name, false])
  }
  // Each exists in a database that only the migrations made.
  const store = openMemoryStore()
  const found = store.sqlite.prepare(
    'select count(*) from sqlite_master where name in (select value from json_each(?))',
  )
  expect(found.pluck().get(JSON.stringify(Object.values(UNNEEDED).flat()))).toBe(Object.values(UNNEEDED).flat().length)
})
