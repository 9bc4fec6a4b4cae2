import { getTableColumns, sql } from 'drizzle-orm'
import * as fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { createIngest } from '../../src/app/mesh/ingest/ingest.ts'
import { canReadMessage, placeOfMessage, seesNodes, type View } from '../../src/app/accounts/access/visible.ts'
import { countNodes } from '../../src/app/system/dashboard/dashboard.ts'
import { enforceRowQuotas } from '../../src/app/upkeep/row-quotas.ts'
import { deleteExpired } from '../../src/app/upkeep/retention.ts'
import { deleteOldTraffic } from '../../src/app/upkeep/traffic-retention.ts'
import { packetsWithin } from '../../src/db/packet-log.ts'
import { messageHours, messages, nodes, packetHours, packetPages, packets } from '../../src/db/schema.ts'
import type { Store } from '../../src/db/store.ts'
import { BROADCAST } from '../../src/meshtastic/node-id.ts'
import { DAY_MS, HOUR_MS } from '../../src/shared/time.ts'
import { heard, packet, store as storePackets, telemetry, text } from '../support/mesh/mesh.ts'
import { readTrafficHours } from '../support/mesh/traffic-hours.ts'

const BEGIN = Date.UTC(2026, 0, 15, 12)
const NODES = [0xc0000001, 0xc0000002, 0xc0000003] as const
const node = fc.constantFrom(...NODES)
const channel = fc.nat(2)

const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('hear' as const),
      from: node,
      to: fc.option(node, { nil: BROADCAST, freq: 3 }),
      channel,
      isText: fc.boolean(),
      isReplayed: fc.nat(9).map((n) => n === 0),
      /** Since the step before. */
      after: fc.oneof(fc.nat(HOUR_MS / 4), fc.nat(9 * HOUR_MS)),
    }),
  },
  fc.record({ do: fc.constant('move' as const), from: channel, to: channel }),
  fc.record({ do: fc.constant('expire' as const), hours: fc.nat(30) }),
  fc.record({ do: fc.constant('share' as const), keep: fc.integer({ min: 1, max: 6 }) }),
  fc.record({ do: fc.constant('forget log' as const), hours: fc.nat(12) }),
  fc.record({ do: fc.constant('forget node' as const), node }),
)

const view: fc.Arbitrary<View> = fc.record({
  channels: fc.option(
    channel.map((read) => ({ read: [read], write: [] })),
    { nil: 'all' as const },
  ),
  direct: fc.boolean().map((read) => ({ read, write: false })),
  hidden: fc.subarray([...NODES], { maxLength: 2 }).map((nums) => new Set(nums)),
})

/** The counters on each store. `open` returns one with a migrated database, the same one at each call. */
export function trafficHoursContract(name: string, open: () => Store, runs: number): void {
  const empty = async () => {
    for (const table of [messages, packets, packetPages, nodes]) await open().db.delete(table).run()
    await open().db.delete(packetHours).run()
  }

  /** Counted from all rows. */
  const countRows = async (now: number, seen: View) => {
    const said = await open().db.select().from(messages).all()
    const logged = await open()
      .db.select(getTableColumns(packets))
      .from(packetsWithin(0, Number.MAX_SAFE_INTEGER))
      .all()
    const known = await open().db.select().from(nodes).all()
    const readable = said.filter(
      ({ channel: on, fromNodeNum, toNodeNum }) =>
        canReadMessage(seen, placeOfMessage({ channel: on, to: toNodeNum })) &&
        seesNodes(seen, [fromNodeNum, toNodeNum]),
    )
    const live = logged.filter(({ fromNodeNum, replayed }) => !replayed && seesNodes(seen, [fromNodeNum]))
    const shown = known.filter(({ nodeNum }) => seesNodes(seen, [nodeNum]))
    return {
      hours: Array.from({ length: 24 }, (_, index) => {
        const t = now - (now % HOUR_MS) - (23 - index) * HOUR_MS
        const isThen = (at: number) => at >= t && at < t + HOUR_MS
        return {
          t,
          messages: readable.filter(({ timestamp }) => isThen(timestamp)).length,
          packets: live.filter((each) => isThen(each.t)).length,
        }
      }),
      nodes: shown.length,
      activeNodes: shown.filter(({ lastHeard }) => lastHeard !== null && lastHeard >= now - HOUR_MS).length,
    }
  }

  const expectSame = async (now: number, seen: View) => {
    const hours = await readTrafficHours(open(), now, seen)
    const counted = { hours, ...(await countNodes(open(), seen, now - HOUR_MS)) }
    expect(counted).toStrictEqual(await countRows(now, seen))
  }

  describe(`traffic hours: ${name}`, () => {
    beforeEach(empty)

    test('the counters are a count of all rows, whatever is heard, moved and deleted', async () => {
      const steps = fc.array(step, { minLength: 1, maxLength: 40 })
      await fc.assert(
        fc.asyncProperty(steps, fc.array(view, { minLength: 1, maxLength: 3 }), async (all, views) => {
          await empty()
          const ingest = createIngest(open())
          const pause = async () => true
          let now = BEGIN
          for (const each of all) {
            switch (each.do) {
              case 'hear': {
                now += each.after
                const { from, to } = each
                const data = each.isText
                  ? text('hello')
                  : telemetry({ variant: { case: 'deviceMetrics', value: { voltage: 4 } } })
                const arrived = packet(data, { from, to, channel: each.channel })
                await storePackets(ingest, [arrived, arrived], { at: now, replayed: each.isReplayed })
                break
              }
              case 'move':
                await open()
                  .db.update(messages)
                  .set({ channel: each.to })
                  .where(sql`channel = ${each.from}`)
                  .run()
                break
              case 'expire': {
                const before = now - each.hours * HOUR_MS
                await deleteExpired(open(), { telemetry: 0, positions: 0, messages: before }, pause)
                break
              }
              case 'share':
                await enforceRowQuotas(open(), pause, { now, most: { messages: each.keep } })
                break
              case 'forget log': {
                const packetCutoff = now - each.hours * HOUR_MS
                const old = now - 9 * DAY_MS
                await deleteOldTraffic(
                  open(),
                  { telemetry_hourly: old, messages: old, packets: packetCutoff },
                  { pause },
                )
                break
              }
              case 'forget node':
                await open()
                  .db.delete(nodes)
                  .where(sql`node_num = ${each.node}`)
                  .run()
            }
          }
          for (const seen of views) await expectSame(now, seen)
          const left = await open().db.$count(messageHours)
          const said = await open().db.select({ at: messages.timestamp }).from(messages).all()
          expect(left).toBe(new Set(said.map(({ at }) => at - (at % HOUR_MS))).size)
        }),
        { numRuns: runs },
      )
    })

    test('an hour that a clock running ahead has begun begins again', async () => {
      const ingest = createIngest(open())
      const beat = () => packet(telemetry({ variant: { case: 'deviceMetrics', value: { voltage: 4 } } }))
      const hear = (at: number, count: number) =>
        ingest.store(Array.from({ length: count }, () => heard(beat(), { at })))
      const packetsOf = async (now: number) =>
        (await readTrafficHours(open(), now)).slice(-3).map((hour) => hour.packets)
      await hear(BEGIN, 3)
      await hear(BEGIN + 2 * HOUR_MS, 1)
      await hear(BEGIN + 1, 2)
      expect(await packetsOf(BEGIN + 1)).toStrictEqual([0, 0, 6])
      await hear(BEGIN + HOUR_MS, 4)
      await hear(BEGIN + 2 * HOUR_MS + 1, 5)
      expect(await packetsOf(BEGIN + 2 * HOUR_MS + 1)).toStrictEqual([6, 4, 5])
    })
  })
}
