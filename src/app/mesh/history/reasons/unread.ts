import { BY_PLACE, hasPages, LAST_PACKET, packedOf, selectWithin } from '../../../../db/packet-log.ts'
import { auditLog, packets } from '../../../../db/schema.ts'
import { type Db, prepareOnce } from '../../../../db/store.ts'
import { sql, type SQL } from 'drizzle-orm'
import { BROADCAST } from '../../../../meshtastic/node-id.ts'
import { canReadChannel } from '../../../../shared/access/scope.ts'
import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { nextTurn } from '../../../base/pacing/next-turn.ts'
import { lastPacketBy } from '../../topology/last-packet.ts'
import type { Case, Found } from './case.ts'

/** Packets of each number of the node that are looked at, and of everybody, the latest. */
const LATEST_OF_NUM = 2000
/** The same of pages, each of which may have only one. */
const LATEST_OF_NUM_PACKED = 500
const LATEST = 20_000
/** Fewer packets that nobody can read say nothing. */
const FEW = 3
/** Changes of channels that are looked at, the latest. */
const CHANGES = 500
/** A change of our channels this long before its last readable packet, at the most, belongs to it: clocks differ. */
const BEFORE_MS = HOUR_MS
const PAUSES = 6

const value = sql.placeholder

const latest = sql.raw(String(LATEST))

const prepareOnChannel = (db: Db, log: SQL) =>
  db
    .select({ id: sql<number>`x.id` })
    .from(sql`(${log}) x where x.channel = ${value('channel')} and x.port is not null`)
    .limit(1)
    .prepare()

const queries = prepareOnce((db) => ({
  /** Broadcasts: what is for one node may be for that node alone. */
  sent: db
    .select({
      id: sql<number>`x.id`,
      t: sql<number>`x.t`,
      channel: sql<number>`x.channel`,
      port: sql<number | null>`x.port`,
    })
    .from(
      sql`(select id, t, channel, port, to_node_num, replayed, trust_level from ${packets}
        where from_node_num = ${value('num')} order by id desc limit ${sql.raw(String(LATEST_OF_NUM))}) x
        where x.to_node_num = ${sql.raw(String(BROADCAST))} and not x.replayed and x.trust_level is not 'spoofed'`,
    )
    .prepare(),
  packedSent: db
    .select({ id: packets.id, t: packets.t, channel: packets.channel, port: packets.port })
    .from(packedOf(value('num')))
    .where(
      sql`${packets.fromNodeNum} = ${value('num')} and ${packets.toNodeNum} = ${sql.raw(String(BROADCAST))}
        and not ${packets.replayed} and ${packets.trustLevel} is not 'spoofed'`,
    )
    .orderBy(BY_PLACE)
    .limit(LATEST_OF_NUM_PACKED)
    .prepare(),
  onChannel: prepareOnChannel(
    db,
    sql`select id, channel, port from packets where id > ${value('last')} order by id desc limit ${latest}`,
  ),
  packedOnChannel: prepareOnChannel(
    db,
    selectWithin(sql`max(${value('last')}, ${LAST_PACKET} - ${latest}) + 1`, sql`${LAST_PACKET} + 1`),
  ),
  changes: db
    .select({
      t: sql<number>`x.timestamp`,
      by: sql<string | null>`x.username`,
      source: sql<string>`x.details ->> '$.source'`,
    })
    .from(
      sql`(select id, timestamp, username, details from ${auditLog} where action = 'configuration_updated'
        order by id desc limit ${sql.raw(String(CHANGES))}) x
        where x.details ->> '$.section' = 'channels' and x.details ->> '$.nodeNum' is null
          and x.timestamp between ${value('since')} and ${value('until')}
          and x.details ->> '$.source' in (select value from json_each(${value('sources')}))`,
    )
    .orderBy(sql`x.id desc`)
    .limit(1)
    .prepare(),
}))

/**
 * A channel or a key that it uses is not, or is no longer, one of ours: its packets come, and cannot be read; or nothing
 * comes since our channels were changed. Only for those who may read the channel on which it was heard, and what was
 * changed here only for administrators.
 */
export async function lookAtChannels(silence: Case, isLate: boolean): Promise<Found[]> {
  const { ctx, nums, node, lastHeard, pause } = silence
  const { view } = ctx.viewer
  const isPacked = await hasPages(ctx.store)
  const { sent, packedSent, onChannel, packedOnChannel } = queries(ctx.store)
  const rows = []
  for (const num of nums) {
    rows.push(...(await sent.all({ num })), ...(isPacked ? await packedSent.all({ num }) : []))
    await nextTurn()
  }
  const lastRead = rows.filter(({ port }) => port !== null).reduce<Row | null>(later, null)
  if (lastRead !== null && !canReadChannel(view, lastRead.channel)) return []
  const after = lastRead === null ? [] : rows.filter(({ id }) => id > lastRead.id)
  // On another channel that is none of ours, it spoke before as well.
  const others = new Set(
    rows.filter(({ id, port }) => port === null && !after.some((row) => row.id === id)).map(hashOf),
  )
  const unread = after.filter((row) => !others.has(hashOf(row)))
  const late = Math.max(2 * HOUR_MS, PAUSES * pause)
  // A node that also uses a new private channel is read again before that.
  if (lastRead !== null && silence.now - lastRead.t > late && unread.length >= FEW) {
    const since = unread.reduce((first, { t }) => Math.min(first, t), Number.POSITIVE_INFINITY)
    const change = await changeNear(silence, lastRead.t, since)
    const evidence = { packets: unread.length, since, change }
    return [{ weight: change === null ? 91 : 97, reason: { kind: 'unread', isLikely: true, ...evidence } }]
  }
  if (!isLate || node.channel === null || !canReadChannel(view, node.channel)) return []
  const change = await changeNear(silence, lastHeard, lastHeard + late)
  if (change === null) return []
  const last = await lastPacketBy({ store: ctx.store, now: change.at })
  // Others are still heard on its channel.
  const heard = (isPacked ? packedOnChannel : onChannel).get({ last, channel: node.channel })
  if ((await heard) !== undefined) return []
  return [{ weight: 79, reason: { kind: 'unread', isLikely: false, packets: 0, since: lastHeard, change } }]
}

type Row = { readonly id: number; readonly t: number; readonly channel: number; readonly port: number | null }

const later = (a: Row | null, b: Row): Row => (a === null || b.id > a.id ? b : a)
/** The channel of an unreadable packet is the hash of its key and name. */
const hashOf = ({ channel }: Row) => channel

/** When somebody changed the channels of a radio that heard it, for administrators. */
async function changeNear({ ctx, receivers }: Case, readAt: number, until: number) {
  // A token reads no audit log.
  if (!ctx.viewer.user.isAdmin || ctx.viewer.credential.kind !== 'session') return null
  const sources = JSON.stringify(receivers.map(({ source }) => source))
  const found = await queries(ctx.store).changes.get({
    since: readAt - BEFORE_MS,
    until: Math.min(until, readAt + DAY_MS),
    sources,
  })
  return found === undefined ? null : { at: found.t, by: found.by, source: found.source }
}
