import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { takenCommands } from '../../../db/schema.ts'
import { built, type Store } from '../../../db/store.ts'
import { NOT_SENT, UNREPORTED } from '../messages/delivery.ts'
import { DAY_MS } from '../../../shared/time.ts'
import type { Report } from './commands.ts'

/** Commands that are remembered, so that none is sent twice. The service that gave them offers none after a minute. */
const MAX_KEPT = 10_000
const KEPT_MS = 7 * DAY_MS
/** Reports of one request. */
const MAX_REPORTS = 50
/** Commands that are looked at for them. Some of them wait for their radio, and have nothing to report. */
const MAX_LOOKED = 400
/** Commands, the latest ones, of which more may be heard after a report: the other service believes it for a day. */
const MAX_OPEN = 1000

/** A command as it was written down before anything was done with it. */
export type TakenCommand = {
  readonly id: string
  readonly claim: string
  readonly fromNodeNum: number
  /** 0: a change of settings, whose id is that of the command. */
  readonly packetId: number
}

/**
 * Returns whether the command is new. From then on it is never begun again, whatever happens to this process. Old ones
 * are forgotten, whatever the other service knows of them.
 */
export async function writeDown(store: Store, command: TakenCommand, now: number): Promise<boolean> {
  const added = await store.db
    .insert(takenCommands)
    .values({ ...command, takenAt: now })
    .onConflictDoNothing()
    .returning({ id: takenCommands.id })
    .all()
  await store.atomic([
    built(
      store.db,
      sql`delete from taken_commands where taken_at < ${now - KEPT_MS}
        or rowid <= (select max(rowid) from taken_commands) - ${MAX_KEPT}`,
    ),
  ])
  await store.settled?.()
  return added.length > 0
}

/** Whether the packet of a command has another one's number. */
export async function isPacketKnown(store: Store, nodeNum: number, packetId: number): Promise<boolean> {
  const [found] = await store.db.all(
    sql`select 1 from messages where from_node_num = ${nodeNum} and packet_id = ${packetId}
      union all select 1 from traceroutes where from_node_num = ${nodeNum} and request_id = ${packetId}
      union all select 1 from node_requests where from_node_num = ${nodeNum} and request_id = ${packetId}`,
  )
  return found !== undefined
}

/** Notes that nothing of a command was sent, and why: an error, and a sentence or null. */
export async function noteRefusal(
  store: Store,
  id: string,
  refusal: { readonly error: string; readonly notice: string | null },
): Promise<void> {
  await store.atomic([
    built(store.db, sql`update taken_commands set refusal = ${JSON.stringify(refusal)} where id = ${id}`),
  ])
}

type Row = {
  readonly id: string
  readonly claim: string
  readonly packetId: number
  readonly refusal: string | null
  readonly told: string | null
  readonly state: string | null
  readonly error: string | null
  readonly notice: string | null
  readonly answeredAt: number | null
  /** JSON; null: no change of settings. */
  readonly differing: string | null
}

/** The state of a packet, or of a change of settings as if it were one. */
const STATE = `coalesce(m.delivery_state, r.state, q.state, case d.state when 'applying' then 'sent'
  when 'applied' then 'delivered' when 'differs' then 'delivered' else d.state end)`
const NOTICE = 'coalesce(m.notice, r.notice, q.notice, substr(d.reason, 1, 200))'

/** What is known of the packets and changes of commands, by their own rows. */
const FOUND = sql.raw(`select t.id, t.claim, t.packet_id as packetId, t.refusal, t.told, ${STATE} as state,
    coalesce(m.routing_error, r.routing_error, q.routing_error) as error,
    ${NOTICE} as notice, q.answered_at as answeredAt, d.differing
  from taken_commands t
  left join messages m on m.from_node_num = t.from_node_num and m.packet_id = t.packet_id
  left join traceroutes r on r.from_node_num = t.from_node_num and r.request_id = t.packet_id
  left join node_requests q on q.from_node_num = t.from_node_num and q.request_id = t.packet_id
  left join device_config_changes d on t.packet_id = 0 and d.id = t.id`)

/** A report, and what is remembered as told once it has arrived. */
export type News = { readonly report: Report; readonly told: string }

/** The other service has another state of a packet, or none, or one that ends with this process. */
const IS_NEWS = sql.raw(`(t.told is null or (t.refusal is null
  and t.rowid > (select max(rowid) from taken_commands) - ${MAX_OPEN}))
  and (t.told is null or (${STATE} is not null
  and (${STATE} is not t.told ->> 'state'
    or t.told ->> 'state' = 'sent'
    or ${NOTICE} is not t.told ->> 'notice'
    or (q.answered_at is not null) is not t.told ->> 'isAnswered')))`)

/**
 * What the other service does not know yet, oldest first. `isBegun`: whether this process began to send a command; what
 * an earlier one began, and did not end, is not sent by anybody now.
 */
export async function readNews(store: Store, isBegun: (id: string) => boolean): Promise<News[]> {
  const rows = await store.db.all<Row>(
    sql`${FOUND} where ${IS_NEWS} order by t.told is not null, t.rowid limit ${MAX_LOOKED}`,
  )
  const news = rows.flatMap((row) => {
    const said = stateOf(row, isBegun(row.id))
    const told = said === null ? null : JSON.stringify(said)
    if (said === null || told === null || told === row.told) return []
    return [{ report: { id: row.id, claim: row.claim, ...said }, told }]
  })
  return news.slice(0, MAX_REPORTS)
}

function stateOf(row: Row, isBegun: boolean): Omit<Report, 'id' | 'claim'> | null {
  const isAnswered = row.answeredAt !== null
  const notice = clean(row.notice)
  const differing = row.differing === null ? {} : { differing: z.array(z.string()).parse(JSON.parse(row.differing)) }
  const is = (state: Report['state'], error: string | null = null) => ({
    state,
    error,
    notice,
    isAnswered,
    ...(state === 'delivered' && differing),
  })
  if (row.refusal !== null) {
    const { error, notice: why } = JSON.parse(row.refusal)
    return { ...is('failed', String(error)), notice: clean(typeof why === 'string' ? why : null) }
  }
  // Its row was deleted: what was told about it stays.
  if (row.state === null && row.told !== null) return null
  // A later change of the section takes the row of one that had begun.
  if (row.state === null && row.packetId === 0 && !isBegun) return is('unknown', UNREPORTED)
  switch (row.state) {
    case null:
    case 'queued':
      // It was written down, and given to no radio: a row says so before a radio gets anything.
      return isBegun ? null : is('failed', NOT_SENT)
    case 'sent':
      return isBegun ? is('sent') : is('unknown', UNREPORTED)
    case 'unknown':
      return is('unknown', isBegun ? null : UNREPORTED)
    case 'relayed':
    case 'delivered':
      return is(row.state)
    case 'failed':
      return is('failed', row.error)
    default:
      return null
  }
}

/** Without what a report must not have. */
function clean(notice: string | null): string | null {
  return notice === null ? null : notice.replace(/[\p{Cc}\p{Cs}]/gu, ' ').slice(0, 200)
}

/** Remembers what the other service knows. */
export async function noteTold(store: Store, news: readonly News[]): Promise<void> {
  const told = JSON.stringify(news.map(({ report: { id }, told }) => ({ id, told })))
  await store.atomic([
    built(
      store.db,
      sql`update taken_commands set told = (select value ->> 'told' from json_each(${told})
          where value ->> 'id' = taken_commands.id)
        where id in (select value ->> 'id' from json_each(${told}))`,
    ),
  ])
}
