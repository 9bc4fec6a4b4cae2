import { and, count, desc, eq, gt, lt, ne, sql, isNotNull } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../db/insert-select.ts'
import { automationRuns, automations } from '../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../db/store.ts'
import { WITHDRAWN } from '../mesh/messages/delivery.ts'
import type { PacketKey } from '../mesh/messages/delivery-records.ts'
import { OUTCOMES, type RunEnd } from '../../shared/automation/rules.ts'
import { DAY_MS, HOUR_MS } from '../../shared/time.ts'
import { inSlices, type Pause } from '../base/pacing/slices.ts'
import { nodeNumField, timeField } from '../http/fields.ts'
import type { Reader } from '../base/context.ts'
import { canReadMessage, placeOfMessage, seesEverything, seesNodes, type View } from '../accounts/access/visible.ts'

/** How long runs are kept, and how many per automation. */
const KEPT_MS = 90 * DAY_MS
const MAX_RUNS = 10_000
/** Rows deleted in one transaction. */
const SLICE_ROWS = 1000

/** Why something was not sent, or only a part of it. */
const REASON_NAMES = [
  // The service was not running when it was due.
  'missed',
  // It falls into the quiet hours.
  'quiet_hours',
  // The radio measures more than 25 % channel utilisation.
  'channel_busy',
  // No radio is connected.
  'radio_unavailable',
  // Transmitting is switched off in the radio.
  'tx_disabled',
  // Too many packets are waiting for the radio: 50 in all, or 20 from rules.
  'queue_full',
  // The text has more than 200 bytes.
  'text_too_long',
  // The channel is switched off in the radio.
  'channel_disabled',
  // There is no node to trace.
  'no_target',
  // It ran shortly before.
  'too_soon',
  // One of this service’s radios sent it.
  'own_message',
  // Probably forged: another node seems to have sent it in its sender’s name.
  'spoof_suspected',
  // Decision: docs/decisions/short-decisions.md#rules-answer-messages-from-our-own-radios-not-from-the-broker
  // It came from a broker: an answer by radio may never reach its sender.
  'via_mqtt',
  // Its sender is ignored.
  'ignored_node',
  // Its sender is an unattended device, or it reads like an automatic answer.
  'bot',
  // It is a reply or a reaction.
  'is_answer',
  // It repeats the text of a rule.
  'echo',
  // The radio delivered it from its memory.
  'replayed',
  // It was already handled.
  'duplicate',
  // It is more than 5 minutes old.
  'too_old',
  // Its sender was answered in the last 60 seconds.
  'cooldown_sender',
  // Somebody was answered in the last 10 seconds.
  'cooldown',
  // Rules sent 20 answers in the last hour.
  'hourly_limit',
  // The rule was changed, switched off or deleted before the radio had it.
  'changed',
  // The service stopped during the run: it may have been sent or not.
  'interrupted',
  // Something went wrong; see the log of the service.
  'error',
] as const
export type Reason = (typeof REASON_NAMES)[number]
export const reasonSchema = z.enum(REASON_NAMES).meta({ id: 'AutomationReason', description: 'Why nothing was sent' })

const packetSchema = z.object({
  fromNodeNum: nodeNumField,
  packetId: z.int(),
  toNodeNum: nodeNumField.describe('4294967295: broadcast'),
  channel: z.int(),
})
export type RunPacket = z.infer<typeof packetSchema>

export const runSchema = z
  .object({
    id: z.int(),
    at: timeField,
    lastAt: timeField.describe('Skips for the same reason within an hour are one run: the time of the last one'),
    count: z.int(),
    outcome: z.enum(OUTCOMES).describe('sending: not yet, or not all, in the queue of the radio'),
    reason: reasonSchema.nullable(),
    triggeredBy: nodeNumField.nullable().describe('Node number of the answered sender; null: a scheduled run'),
    text: z.string().nullable().describe('Null: a traceroute, or nothing was to be sent'),
    packets: z.array(packetSchema).describe('The queued packets; GET /api/messages shows their delivery state'),
  })
  .meta({ id: 'AutomationRun', description: 'What a rule did, or why it did nothing' })
export type Run = z.infer<typeof runSchema>

export const runPageSchema = z.object({
  runs: z.array(runSchema),
  nextBefore: z.int().nullable().describe('`before` of the next page; null: this is the last one'),
})

export const lastRunSchema = runSchema
  .pick({ outcome: true, reason: true })
  .extend({ at: timeField })
  .meta({ id: 'AutomationLastRun' })
export type LastRun = z.infer<typeof lastRunSchema>

type RunRow = typeof automationRuns.$inferSelect

/** Leaves out text and packets that the viewer may not read. */
function publicRun(row: RunRow, view: View): Run {
  const { id, t: at, lastT: lastAt, count, outcome } = row
  const sent = readPackets(row.packets)
  const packets = sent.filter(
    ({ channel, toNodeNum: to }) => canReadMessage(view, placeOfMessage({ channel, to })) && seesNodes(view, [to]),
  )
  // For a text that was not sent, it is unknown where it would have gone.
  const isRead = sent.length === 0 ? seesEverything(view) : packets.length === sent.length
  const triggeredBy = seesNodes(view, [row.triggeredBy]) ? row.triggeredBy : null
  const text = isRead ? row.text : null
  return { id, at, lastAt, count, outcome, reason: readReason(row.reason), triggeredBy, text, packets }
}

/** A newer version may have written other reasons. */
function readReason(reason: string | null): Reason | null {
  return reasonSchema.safeParse(reason).data ?? null
}

function readPackets(json: string): RunPacket[] {
  try {
    return z.array(packetSchema).safeParse(JSON.parse(json)).data ?? []
  } catch {
    // Not JSON.
    return []
  }
}

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  byKey: db
    .select({ id: automationRuns.id })
    .from(automationRuns)
    .where(and(eq(automationRuns.automationId, value('automationId')), eq(automationRuns.key, value('key'))))
    .prepare(),
  last: db
    .select({
      automationId: automationRuns.automationId,
      at: automationRuns.lastT,
      outcome: automationRuns.outcome,
      reason: automationRuns.reason,
    })
    .from(automations)
    .innerJoin(
      automationRuns,
      sql`${automationRuns.id} = (select id from automation_runs where automation_id = ${automations.id}
        order by last_t desc, id desc limit 1)`,
    )
    .prepare(),
  answers: db
    .select({ t: automationRuns.t, nodeNum: automationRuns.triggeredBy })
    .from(automationRuns)
    .where(
      and(
        gt(automationRuns.lastT, value('since')),
        isNotNull(automationRuns.triggeredBy),
        ne(automationRuns.outcome, 'skipped'),
      ),
    )
    .prepare(),
  said: db
    .select({ text: automationRuns.text })
    .from(automationRuns)
    .where(and(gt(automationRuns.lastT, value('since')), isNotNull(automationRuns.text)))
    .prepare(),
  old: db
    .delete(automationRuns)
    .where(
      sql`id in (select id from automation_runs where last_t < ${value('cutoff')} limit ${sql.raw(String(SLICE_ROWS))})`,
    )
    .returning({ id: automationRuns.id })
    .prepare(),
  crowded: db
    .select({ automationId: automationRuns.automationId, n: count() })
    .from(automationRuns)
    .groupBy(automationRuns.automationId)
    .having(sql`count(*) > ${MAX_RUNS}`)
    .prepare(),
  surplus: db
    .delete(automationRuns)
    .where(
      sql`id in (select id from automation_runs where automation_id = ${value('automationId')}
        order by id limit ${value('limit')})`,
    )
    .returning({ id: automationRuns.id })
    .prepare(),
}))

/** Newest first. */
export async function listRuns(
  { store, viewer: { view } }: Reader,
  automationId: number,
  { limit, before }: { readonly limit: number; readonly before?: number | undefined },
): Promise<z.infer<typeof runPageSchema>> {
  const rows = await store.db
    .select()
    .from(automationRuns)
    .where(
      and(
        eq(automationRuns.automationId, automationId),
        before === undefined ? undefined : lt(automationRuns.id, before),
      ),
    )
    .orderBy(desc(automationRuns.id))
    .limit(limit + 1)
    .all()
  const runs = rows.slice(0, limit).map((row) => publicRun(row, view))
  return { runs, nextBefore: rows.length > limit ? (runs.at(-1)?.id ?? null) : null }
}

/** The latest run of each automation. */
export async function readLastRuns(store: Store): Promise<Map<number, LastRun>> {
  const rows = await queries(store).last.all()
  return new Map(
    rows.map(({ automationId, at, outcome, reason }) => [automationId, { at, outcome, reason: readReason(reason) }]),
  )
}

/** The nodes that any automation answered within the last hour, and when. */
export async function readAnswers(store: Store, now: number): Promise<{ t: number; nodeNum: number | null }[]> {
  return queries(store).answers.all({ since: now - HOUR_MS })
}

/** Messages that automations sent within the last hour. */
export async function readSaid(store: Store, now: number): Promise<string[]> {
  const rows = await queries(store).said.all({ since: now - HOUR_MS })
  return rows.flatMap(({ text }) => text ?? [])
}

/** A message that is about to be sent; `key` is unique for the automation. */
export type Claim = {
  readonly automationId: number
  readonly revision: number
  readonly key: string
  readonly now: number
  readonly triggeredBy: number | null
  readonly text: string | null
  /** The time of the scheduled run that this finishes; null: none. */
  readonly slot: number | null
}

export type Claimed =
  | { readonly kind: 'claimed'; readonly id: number }
  | { readonly kind: 'refused'; readonly reason: 'duplicate' | 'changed' }

/**
 * Records a message before it is sent, so that a failure never sends it twice. Refuses messages that were claimed
 * before, and those of an earlier version of the rule.
 * Decision: docs/decisions/runs-claimed-first.md
 */
export async function claimRun(store: Store, claim: Claim): Promise<Claimed> {
  const { automationId, revision, key, now, slot } = claim
  const { byKey } = queries(store)
  if ((await byKey.get({ automationId, key })) !== undefined) return { kind: 'refused', reason: 'duplicate' }
  const isCurrent = sql`id = ${automationId} and revision = ${revision} and enabled`
  const { triggeredBy, text } = claim
  const run = { automationId: sql`id`, key, t: now, lastT: now, outcome: 'sending', triggeredBy, text } as const
  await store.atomic([
    insertSelect(store.db, automationRuns, run, sql`from automations where ${isCurrent}`),
    store.db
      .update(automations)
      .set({ lastFiredAt: now, ...(slot === null ? {} : { anchorAt: sql`max(anchor_at, ${slot})` }) })
      .where(isCurrent),
  ])
  const claimed = await byKey.get({ automationId, key })
  return claimed === undefined ? { kind: 'refused', reason: 'changed' } : { kind: 'claimed', id: claimed.id }
}

/** The result of a claimed run. */
export async function settleRun(
  store: Store,
  id: number,
  end: {
    readonly outcome: RunEnd
    readonly reason: Reason | null
    readonly packets: RunPacket[]
  },
): Promise<void> {
  const { outcome, reason, packets } = end
  await store.atomic([
    store.db
      .update(automationRuns)
      .set({ outcome, reason, packets: JSON.stringify(packets) })
      .where(eq(automationRuns.id, id)),
    noteWithdrawnOf(store, id),
  ])
}

export type Skip = {
  readonly automationId: number
  readonly reason: Reason
  readonly now: number
  readonly triggeredBy: number | null
  /** The scheduled run that this finishes. */
  readonly slot: number | null
}

/** Records that nothing was sent, and why. Equal skips within one hour are counted in one row. */
export async function recordSkip(store: Store, skip: Skip): Promise<void> {
  const { automationId, reason, now, triggeredBy, slot } = skip
  const hour = now - (now % HOUR_MS)
  const insert: Statement = store.db
    .insert(automationRuns)
    .values({ automationId, key: `${reason} ${hour}`, t: now, lastT: now, outcome: 'skipped', reason, triggeredBy })
    .onConflictDoUpdate({
      target: [automationRuns.automationId, automationRuns.key],
      set: { count: sql`${automationRuns.count} + 1`, lastT: now },
    })
  const over = store.db
    .update(automations)
    .set({ anchorAt: sql`max(anchor_at, ${slot})` })
    .where(eq(automations.id, automationId))
  await store.atomic(slot === null ? [insert] : [insert, over])
}

/** Settles, after a start, the messages that an earlier process was sending. */
export async function settleInterrupted(store: Store): Promise<void> {
  await store.db
    .update(automationRuns)
    .set({ outcome: 'failed', reason: 'interrupted' satisfies Reason })
    .where(eq(automationRuns.outcome, 'sending'))
    .run()
}

/**
 * Deletes runs older than 90 days, and the oldest of an automation beyond 10,000, in slices; `pause` is awaited after
 * each and returns whether to continue. Returns the number of deleted rows.
 */
export async function deleteOldRuns(store: Store, now: number, pause: Pause): Promise<number> {
  const prepared = queries(store)
  let deleted = 0
  /** False: stop. */
  const clear = async (deleteSlice: Parameters<typeof inSlices>[0], atMost?: number): Promise<boolean> => {
    const { rows, goesOn } = await inSlices(deleteSlice, { full: SLICE_ROWS, atMost, pause })
    deleted += rows
    return goesOn && (await pause())
  }
  if (!(await clear(() => prepared.old.all({ cutoff: now - KEPT_MS })))) return deleted
  for (const { automationId, n } of await prepared.crowded.all()) {
    if (!(await clear((limit) => prepared.surplus.all({ automationId, limit }), n - MAX_RUNS))) break
  }
  return deleted
}

/** The maximum time that a packet waits for a radio. */
const WAITING_MS = DAY_MS

const isWithdrawn = sql`routing_error = ${sql.raw(`'${WITHDRAWN}'`)}`

/** The number of packets of a run that were withdrawn before any radio had them. */
const TAKEN_BACK = sql`(select count(*) from json_each(${automationRuns.packets}) p
  where exists (select 1 from messages where from_node_num = p.value ->> 'fromNodeNum'
      and packet_id = p.value ->> 'packetId' and ${isWithdrawn})
    or exists (select 1 from traceroutes where from_node_num = p.value ->> 'fromNodeNum'
      and request_id = p.value ->> 'packetId' and ${isWithdrawn}))`

const OUTCOME = {
  outcome: sql`iif(${TAKEN_BACK} = json_array_length(${automationRuns.packets}), 'skipped', 'failed')`,
  reason: 'changed',
} as const

const withdrawnQueries = prepareOnce((db) => ({
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

/** Marks the run of a withdrawn packet; the packet itself is already marked. */
export async function noteWithdrawn(store: Store, key: PacketKey, now: number): Promise<void> {
  await store.atomic([bind(withdrawnQueries(store).byPacket, { ...key, since: now - WAITING_MS })])
}

/** Marks a run whose packets were withdrawn while it was still sending. */
function noteWithdrawnOf(store: Store, id: number): Statement {
  return bind(withdrawnQueries(store).byId, { id })
}
