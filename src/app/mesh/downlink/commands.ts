import { eq, getTableColumns, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { deviceConfigChanges, radioCommands, sources } from '../../../db/schema.ts'
import { insertSelect } from '../../../db/insert-select.ts'
import { built, type Statement, type Store } from '../../../db/store.ts'
import type { ChangeState } from '../../../shared/mesh/change-states.ts'
import { COMMAND_MS, type CommandKind } from '../../../shared/mesh/downlink.ts'
import { DAY_MS, MINUTE_MS } from '../../../shared/time.ts'
import type { Ports } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { announceNodes, readDelivery } from '../live/details.ts'
import { changeEvent } from '../live/events.ts'
import type { Collector } from '../radios/listener.ts'
import { EXPIRED, NOT_SENT, UNREPORTED } from '../messages/delivery.ts'
import { type Command, wordSchema } from './contents.ts'

/** Commands that may wait for one radio. */
const MAX_WAITING = 20
/** Commands of one answer. */
const MAX_GIVEN = 10
/** What became of a command that was taken, and not reported for this long, is unknown. */
const REPORTED_MS = 10 * MINUTE_MS
/** Ended commands stay this long, because late reports still count. */
const KEPT_MS = DAY_MS
/** Commands that end in one step. */
const MAX_ENDING = 100

/** The states that may precede each one that a collector reports. */
const BEFORE = {
  sent: ['waiting', 'taken', 'unknown'],
  relayed: ['waiting', 'taken', 'sent', 'unknown', 'failed'],
  delivered: ['waiting', 'taken', 'sent', 'unknown', 'failed', 'relayed'],
  failed: ['waiting', 'taken', 'sent', 'unknown'],
  unknown: ['waiting', 'taken', 'sent', 'unknown'],
} as const
/** Errors of the destination itself: only these outweigh a repetition that was heard. */
const BY_DESTINATION: ReadonlySet<string | null> = new Set([
  'NO_CHANNEL',
  'NO_RESPONSE',
  'BAD_REQUEST',
  'NOT_AUTHORIZED',
  'PKI_UNKNOWN_PUBKEY',
])
const MAY_BE_REFUSED = [...BEFORE.failed, 'relayed'] as const
const REPORTED = ['sent', 'relayed', 'delivered', 'failed', 'unknown'] as const

export const reportSchema = z
  .strictObject({
    id: wordSchema,
    claim: wordSchema,
    state: z.enum(REPORTED),
    error: z
      .string()
      .regex(/^[A-Z][A-Z0-9_]{0,49}$/)
      .nullable()
      .describe('Why it failed: the name of a routing error, or NOT_SENT'),
    notice: z
      .string()
      .max(200)
      .regex(/^[^\p{Cc}\p{Cs}]*$/u)
      .nullable()
      .describe('What the radio or the collector says about it'),
    isAnswered: z.boolean().describe('The node that was asked has answered'),
    differing: z
      .array(z.string().min(1).max(100))
      .max(100)
      .optional()
      .describe('Of a change of settings, when it is delivered: paths of the values that the radio did not take'),
  })
  .meta({ id: 'CommandReport', description: 'What became of a command' })
export type Report = z.infer<typeof reportSchema>

type Needs = Pick<Ports, 'store' | 'now' | 'events'>

/** Sources of a token as `c.source_id`, only while it may command radios: an open request ends with its rights. */
export const ofToken = (tokenId: number, now: number) => sql`c.source_id in (select s.id from sources s
  cross join api_tokens t on t.id = s.token_id cross join users u on u.id = t.user_id
  where s.token_id = ${tokenId} and t.held_at is null and (t.expires_at is null or t.expires_at > ${now})
    and u.is_admin and u.is_active)`
/** By this service's clock, also if that was set back meanwhile. */
export const isTimely = (now: number) => sql`(c.created_at <= ${now} and c.expires_at > ${now})`
const IS_WAITING = sql.raw('(c.ended_at is null and c.claim is null)')

type State = Pick<Report, 'error' | 'notice' | 'differing'> & { readonly state: 'taken' | Report['state'] }

/** The state of a change of settings for each one of a command. */
const CHANGE_OF = {
  waiting: 'waiting',
  taken: 'applying',
  sent: 'applying',
  relayed: 'applying',
  delivered: 'applied',
  failed: 'failed',
  unknown: 'unknown',
} as const satisfies Record<string, ChangeState>
/** Why a change failed, if its collector has not said so. */
const REASONS: Readonly<Record<string, string>> = {
  [EXPIRED]: 'the collector of the radio did not begin it within a minute',
  [UNREPORTED]: 'the collector of the radio did not report what became of it',
  [NOT_SENT]: 'the collector of the radio was stopped before it began',
}

/**
 * Changes the state of the packets, and of the changes of settings, of the commands that `which` selects as `c`, from one
 * of these states.
 */
function setStates(
  { db }: Store,
  which: SQL,
  { state, error, notice, differing = [] }: State,
  from: readonly (keyof typeof CHANGE_OF)[],
  now: number,
): readonly [Statement, Statement, Statement, Statement] {
  const change = state === 'delivered' && differing.length > 0 ? 'differs' : CHANGE_OF[state]
  const settledAt = change === 'applying' || change === 'unknown' ? null : now
  const set = (table: string, column: string, id: string, kind: CommandKind) =>
    built(
      db,
      sql`update ${sql.raw(table)} set ${sql.raw(column)} = ${state}, routing_error = ${error},
        notice = coalesce(${notice}, notice) where ${sql.raw(column)} in (select value from json_each(${JSON.stringify(from)}))
        and (from_node_num, ${sql.raw(id)}) in (select c.from_node_num, c.packet_id from radio_commands c
          where c.kind = ${kind} and ${which})`,
    )
  return [
    set('messages', 'delivery_state', 'packet_id', 'text'),
    set('traceroutes', 'state', 'request_id', 'traceroute'),
    set('node_requests', 'state', 'request_id', 'request'),
    built(
      db,
      sql`update device_config_changes set state = ${change}, reason = ${notice ?? REASONS[error ?? ''] ?? null},
        differing = ${JSON.stringify(differing)}, settled_at = ${settledAt}
        where state in (select value from json_each(${JSON.stringify([...new Set(from.map((one) => CHANGE_OF[one]))])}))
        and (source_id, section, id) in (select c.source_id, c.content ->> 'section', c.id from radio_commands c
          where c.kind = 'settings' and ${which})`,
    ),
  ]
}

/** A number for a packet of a radio that another service has. */
export function newPacketId(): number {
  return Math.max(1, crypto.getRandomValues(new Uint32Array(1))[0] ?? 1)
}

export function newCommandId(): string {
  return crypto.randomUUID().replaceAll('-', '')
}

/** Throws `queue_full` if too many commands wait for a radio. */
export async function demandPlace({ store }: Pick<Ports, 'store'>, { sourceId }: Collector): Promise<void> {
  const isOpen = sql`source_id = ${sourceId} and ended_at is null and claim is null`
  if ((await store.db.$count(radioCommands, isOpen)) < MAX_WAITING) return
  throw new AppError('queue_full', 'Too many packets are waiting to be sent', { retryAfter: 10 })
}

/**
 * Statement that asks the collector of a radio to send a packet; `onlyIf`: only under this condition. The same step stores
 * its row as `waiting`.
 */
export function writeCommand(
  { store, now }: Pick<Ports, 'store'> & { now(): number },
  { sourceId, nodeNum }: Collector,
  command: {
    readonly id?: string
    readonly kind: CommandKind
    readonly content: object
    readonly packetId: number
    readonly askedBy: string
  },
  onlyIf = sql`true`,
): Statement {
  const createdAt = now()
  const row = {
    id: newCommandId(),
    ...command,
    sourceId,
    content: JSON.stringify(command.content),
    fromNodeNum: nodeNum,
    createdAt,
    expiresAt: createdAt + COMMAND_MS,
  }
  return insertSelect(store.db, radioCommands, row, sql`where ${onlyIf}`)
}

/** Whether there is a command with this id; an ended one stays for a day. */
export async function isCommanded({ db }: Store, id: string): Promise<boolean> {
  return (await db.$count(radioCommands, eq(radioCommands.id, id))) > 0
}

type Row = Omit<Command, 'content' | 'expiresInMs'> & { readonly content: string; readonly expiresAt: number }

/** The commands that wait for radios of a token, oldest first. */
export async function waitingCommands(
  { store, now }: Needs,
  tokenId: number,
  radios: readonly string[],
): Promise<Command[]> {
  const at = now()
  const rows = await store.db.all<Row>(
    sql`select c.id, s.name as radio, c.kind, c.content, c.packet_id as packetId, c.asked_by as askedBy,
        c.expires_at as expiresAt
      from radio_commands c cross join sources s on s.id = c.source_id
      where ${IS_WAITING} and ${isTimely(at)} and ${ofToken(tokenId, at)}
        and s.name in (select value from json_each(${JSON.stringify(radios)}))
      order by c.created_at limit ${MAX_GIVEN}`,
  )
  return rows.map(({ expiresAt, content, ...row }) => ({
    ...row,
    content: JSON.parse(content),
    expiresInMs: expiresAt - at,
  }))
}

/**
 * Gives a command to the collector that says this word first, if it has not expired. Repeating the word changes
 * nothing. Returns for how many milliseconds it may still be sent; 0: not at all.
 */
export async function takeCommand(
  ctx: Needs,
  tokenId: number,
  { id, claim }: { readonly id: string; readonly claim: string },
): Promise<number> {
  const { store } = ctx
  const now = ctx.now()
  const isMine = sql`c.id = ${id} and c.claim = ${claim}`
  await store.atomic([
    built(
      store.db,
      sql`update radio_commands as c set claim = ${claim}
        where c.id = ${id} and ${IS_WAITING} and ${isTimely(now)} and ${ofToken(tokenId, now)}`,
    ),
    ...setStates(store, isMine, { state: 'taken', error: null, notice: null }, ['waiting'], now),
  ])
  const [taken] = await store.db.all<Key & { readonly expiresAt: number }>(
    sql`select ${KEY}, c.expires_at as expiresAt from radio_commands c
      where ${isMine} and c.ended_at is null and ${isTimely(now)} and ${ofToken(tokenId, now)}`,
  )
  if (taken === undefined) return 0
  await tell(ctx, [taken])
  return taken.expiresAt - now
}

/**
 * Stores what a collector says became of commands. It is believed about those that it took, and about those that nobody
 * took and it refuses. Older news than what is known changes nothing.
 */
export async function storeReports(ctx: Needs, tokenId: number, reports: readonly Report[]): Promise<void> {
  const { store } = ctx
  const now = ctx.now()
  for (const { id, claim, isAnswered, ...said } of reports) {
    const isMine = sql`c.id = ${id} and ${ofToken(tokenId, now)} and (c.claim = ${claim}
      or (c.claim is null and c.ended_at is null and ${said.state} = 'failed'))`
    const [found] = await store.db.all<Key>(sql`select ${KEY} from radio_commands c where ${isMine}`)
    if (found === undefined) continue
    const from = said.state === 'failed' && BY_DESTINATION.has(said.error) ? MAY_BE_REFUSED : BEFORE[said.state]
    const answered = built(
      store.db,
      sql`update node_requests set answered_at = coalesce(answered_at, ${now})
        where ${Number(isAnswered)} and (from_node_num, request_id) in (select c.from_node_num, c.packet_id
          from radio_commands c where c.kind = 'request' and ${isMine})`,
    )
    await store.atomic([
      answered,
      ...setStates(store, isMine, said, from, now),
      built(
        store.db,
        sql`update radio_commands as c set ended_at = coalesce(ended_at, ${now})
          where ${isMine} and ${said.state} in ('failed', 'delivered')`,
      ),
    ])
    await tell(ctx, [found])
  }
}

/**
 * Ends the commands that nobody took in time, as not sent, and those that were taken long ago and never reported. Old
 * ones are forgotten.
 */
export async function expireCommands(ctx: Needs): Promise<void> {
  const { store } = ctx
  const now = ctx.now()
  const isLate = sql`(c.claim is null and not ${isTimely(now)})`
  const isSilent = sql`(c.claim is not null and not (c.created_at <= ${now} and c.created_at > ${now - REPORTED_MS}))`
  const isEnding = sql`c.id in (select c.id from radio_commands c
    where c.ended_at is null and (${isLate} or ${isSilent}) limit ${MAX_ENDING})`
  // In the order in which they came, so that only so many are read. The clock may have been set meanwhile.
  const forget = built(
    store.db,
    sql`delete from radio_commands where ended_at not between ${now - KEPT_MS} and ${now + KEPT_MS}
      and rowid in (select rowid from radio_commands order by rowid limit ${MAX_ENDING})`,
  )
  const ending = await store.db.all<Key>(sql`select ${KEY} from radio_commands c where ${isEnding}`)
  if (ending.length === 0) {
    await store.atomic([forget])
    return
  }
  await store.atomic([
    ...setStates(
      store,
      sql`${isLate} and ${isEnding}`,
      { state: 'failed', error: EXPIRED, notice: null },
      ['waiting'],
      now,
    ),
    ...setStates(
      store,
      sql`${isSilent} and ${isEnding}`,
      { state: 'unknown', error: UNREPORTED, notice: null },
      ['taken', 'sent'],
      now,
    ),
    built(store.db, sql`update radio_commands as c set ended_at = ${now} where ${isEnding}`),
    forget,
  ])
  await tell(ctx, ending)
}

type Key = {
  readonly kind: CommandKind
  readonly nodeNum: number
  readonly packetId: number
  readonly asked: number | null
  readonly id: string
}
const KEY = sql.raw(`c.kind, c.id, c.from_node_num as nodeNum, c.packet_id as packetId,
  iif(c.kind = 'request', c.content ->> 'to', null) as asked`)

/** Live pages learn that the state has changed. */
async function tell(ctx: Needs, keys: readonly Key[]): Promise<void> {
  if (ctx.events === null) return
  for (const key of keys) {
    if (key.kind === 'settings') ctx.events.publish(await readChange(ctx.store, key.id))
    else if (key.asked === null) ctx.events.publish(await readDelivery(ctx.store, key))
    else await announceNodes(ctx, [key.asked])
  }
}

/** The event of a change of settings, as it is now. */
async function readChange({ db }: Store, id: string) {
  const found = await db
    .select({ ...getTableColumns(deviceConfigChanges), source: sources.name })
    .from(deviceConfigChanges)
    .innerJoin(sources, eq(sources.id, deviceConfigChanges.sourceId))
    .where(eq(deviceConfigChanges.id, id))
    .all()
  return found.map(({ source, differing, ...change }) =>
    changeEvent(source, { ...change, differing: JSON.parse(differing) }),
  )
}
