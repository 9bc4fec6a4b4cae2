import { and, eq, gt, sql } from 'drizzle-orm'
import { automationRuns } from '../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../db/store.ts'
import { WITHDRAWN } from '../mesh/messages/delivery.ts'
import type { PacketKey } from '../mesh/messages/delivery-records.ts'
import { DAY_MS } from '../../shared/time.ts'

/** Nothing waits for a radio for longer. */
const WAITING_MS = DAY_MS

const value = sql.placeholder

const isWithdrawn = sql`routing_error = ${sql.raw(`'${WITHDRAWN}'`)}`

/** Of the packets of a run those that no radio got. */
const TAKEN_BACK = sql`(select count(*) from json_each(${automationRuns.packets}) p
  where exists (select 1 from messages where from_node_num = p.value ->> 'fromNodeNum'
      and packet_id = p.value ->> 'packetId' and ${isWithdrawn})
    or exists (select 1 from traceroutes where from_node_num = p.value ->> 'fromNodeNum'
      and request_id = p.value ->> 'packetId' and ${isWithdrawn}))`

const OUTCOME = {
  outcome: sql`iif(${TAKEN_BACK} = json_array_length(${automationRuns.packets}), 'skipped', 'failed')`,
  reason: 'changed',
} as const

const queries = prepareOnce((db) => ({
  byId: db
    .update(automationRuns)
    .set(OUTCOME)
    .where(and(eq(automationRuns.id, value('id')), sql`${TAKEN_BACK} > 0`))
    .prepare(),
  byPacket: db
    .update(automationRuns)
    .set(OUTCOME)
    .where(
      and(
        gt(automationRuns.lastT, value('since')),
        sql`exists (select 1 from json_each(${automationRuns.packets}) q
          where q.value ->> 'fromNodeNum' = ${value('nodeNum')} and q.value ->> 'packetId' = ${value('packetId')})`,
        sql`${TAKEN_BACK} > 0`,
      ),
    )
    .prepare(),
}))

/** Lets the run of a packet tell that it was taken back; the packet itself says so already. */
export async function noteWithdrawn(store: Store, key: PacketKey, now: number): Promise<void> {
  await store.atomic([bind(queries(store).byPacket, { ...key, since: now - WAITING_MS })])
}

/** Lets a run tell that packets of it were taken back while it was still sending. */
export function noteWithdrawnOf(store: Store, id: number): Statement {
  return bind(queries(store).byId, { id })
}
