import { and, isNotNull, sql, type SQL } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../db/json-rows.ts'
import { insertSelect } from '../../../db/insert-select.ts'
import { alertDeliveries, alertDeliveryItems, alerts } from '../../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../shared/time.ts'
import type { AlertState } from '../../../shared/alerts/alert-kinds.ts'
import { ALERT_DELIVERY_STATES, type NotificationKind } from '../../../shared/alerts/destination-kinds.ts'
import { IS_STANDBY } from '../../settings/standby.ts'
import { type Fact, MAX_PER_HOUR } from '../facts.ts'
import { NEW_DELIVERY } from '../new-delivery.ts'

/** Alerts of one rule within this time are one message. */
export const TOGETHER_MS = MINUTE_MS
/** Of single events, the first one after a pause is told so soon; those that follow it are one more message. */
export const FIRST_MS = 3 * SECOND_MS

/** A finding of a rule. Times in milliseconds. */
export type Occurrence = {
  readonly ruleId: number
  /** `resolved`: a single event, which is over immediately. */
  readonly state: AlertState
  readonly subject: string
  readonly key: string
  readonly nodeNum: number | null
  readonly channel: number | null
  readonly direct: boolean
  readonly fact: Fact
  readonly startedAt: number
  /** It is not reported now. */
  readonly isQuiet: boolean
  readonly isHeld: boolean
}

/** Kinds of rules that a standby tells. The service that delivers to it tells the others. */
const ABOUT_ITSELF = sql.raw(`'link', 'backup', 'retention', 'sign_in'`)

const value = sql.placeholder
const rule = (column: string) => sql.raw(`(select ${column} from alert_rules where id = r.j ->> 'ruleId')`)

const VALUES = {
  id: sql`null`,
  ruleId: field('ruleId'),
  ownerId: rule('owner_id'),
  ruleName: rule('name'),
  kind: rule('kind'),
  state: field('state'),
  subject: field('subject'),
  key: field('key'),
  nodeNum: field('nodeNum'),
  channel: field('channel'),
  direct: field('direct'),
  what: sql`''`,
  fact: field('fact'),
  startedAt: field('startedAt'),
  firedAt: sql`iif(${field('state')} = 'pending', null, ${field('now')})`,
  resolvedAt: sql`iif(${field('state')} = 'resolved', ${field('now')}, null)`,
  acknowledgedAt: sql`null`,
  acknowledgedBy: sql`null`,
  notifiedAt: sql`iif(${field('isQuiet')} or ${field('state')} = 'pending', null, ${field('now')})`,
  held: field('isHeld'),
  inhibited: sql`0`,
  step: field('step'),
} satisfies Record<keyof typeof alerts.$inferSelect, SQL>

/**
 * The end of the minute that began when the latest message of the rule to this destination was sent, or should have
 * been; 0: it is over. What is claimed is due a minute later, so whatever was sent in that minute is due after its
 * beginning.
 */
const minuteOfLatest = sql`coalesce((select max(coalesce(o.tried_at, o.due_at)) + ${sql.raw(String(TOGETHER_MS))}
  from alert_deliveries o
  where o.destination_id = d.id and o.state in (${sql.raw(ALERT_DELIVERY_STATES.map((state) => `'${state}'`).join())})
    and o.due_at > ${value('now')} - ${sql.raw(String(TOGETHER_MS))} and coalesce(o.tried_at, o.due_at) <= ${value('now')}
    and o.rule_id = a.rule_id and o.notification = ${value('notification')}), 0)`

const queries = prepareOnce((db) => ({
  insert: prepareJsonInsert(db, alerts, {
    values: VALUES,
    from: sql`cross join alert_rules own on own.id = r.j ->> 'ruleId' and own.enabled`,
    onConflict: sql`on conflict do nothing`,
  }),
  fire: db
    .update(alerts)
    .set({
      state: 'firing',
      firedAt: sql`${value('now')}`,
      fact: sql`j.value ->> 'fact'`,
      notifiedAt: sql`iif(j.value ->> 'isQuiet', null, ${value('now')})`,
      held: sql`j.value ->> 'isHeld'`,
      step: sql`${value('step')}`,
    })
    .from(sql`json_each(${value('rows')}) j`)
    .where(sql`alerts.id = j.value ->> 'id' and alerts.state = 'pending'`)
    .prepare(),
  tell: db
    .update(alerts)
    .set({ notifiedAt: sql`${value('now')}`, step: sql`${value('step')}` })
    .where(sql`id in (select value from json_each(${value('ids')})) and state = 'firing'`)
    .prepare(),
  resolve: db
    .update(alerts)
    .set({ state: 'resolved', resolvedAt: sql`${value('now')}`, inhibited: false, step: sql`${value('step')}` })
    .where(sql`id in (select value from json_each(${value('ids')})) and state = 'firing'`)
    .prepare(),
  forget: db
    .delete(alerts)
    .where(sql`id in (select value from json_each(${value('ids')})) and state = 'pending'`)
    .prepare(),
  inhibit: db
    .update(alerts)
    .set({ inhibited: sql`${value('is')}` })
    .where(sql`id in (select value from json_each(${value('ids')}))`)
    .prepare(),
  deliver: insertSelect(
    db,
    alertDeliveries,
    {
      ...NEW_DELIVERY,
      destinationId: sql`d.id`,
      ownerId: sql`a.owner_id`,
      ruleId: sql`a.rule_id`,
      notification: value('notification'),
      createdAt: value('now'),
      dueAt: sql`max(${value('due')}, iif(${value('areSingle')}, ${minuteOfLatest}, 0))`,
    },
    sql`from (select distinct rule_id, owner_id from alerts where step = ${value('step')} and notified_at is not null) a
        join alert_rules r on r.id = a.rule_id
          and (${value('notification')} <> 'resolved' or json_extract(r.rule, '$.tellResolved'))
        join json_each(r.rule, '$.destinations') w
        join alert_destinations d on d.id = w.value and d.owner_id = a.owner_id and d.enabled and d.confirmed_at is not null
          and d.held_at is null
        where (not ${IS_STANDBY} or r.kind in (${ABOUT_ITSELF})) and not exists (select 1 from alert_deliveries o where o.destination_id = d.id and o.rule_id = a.rule_id
          and o.notification = ${value('notification')} and o.state = 'waiting' and o.attempts = 0 and o.due_at >= ${value('now')}
          and o.created_at + ${sql.raw(String(TOGETHER_MS))} > ${value('now')})`,
  ).prepare(),
  list: insertSelect(
    db,
    alertDeliveryItems,
    { deliveryId: sql`d.id`, alertId: sql`a.id` },
    sql`from alerts a
        join alert_deliveries d on d.rule_id = a.rule_id and d.notification = ${value('notification')} and d.state = 'waiting'
          and d.attempts = 0 and d.due_at >= ${value('now')} and d.created_at + ${sql.raw(String(TOGETHER_MS))} > ${value('now')}
        where a.step = ${value('step')} and a.notified_at is not null on conflict do nothing`,
  ).prepare(),
  firedLately: db
    .select({ ruleId: alerts.ruleId, subject: alerts.subject, n: sql<number>`count(*)`, held: sql<number>`sum(held)` })
    .from(alerts)
    .where(
      and(
        isNotNull(alerts.firedAt),
        sql`rule_id in (select value from json_each(${value('ruleIds')})) and fired_at > ${value('since')} and fired_at <= ${value('now')}`,
      ),
    )
    .groupBy(alerts.ruleId, alerts.subject)
    .prepare(),
}))

/** A unique name for one step. */
export function newStep(): string {
  return crypto.randomUUID()
}

/** Statements that record alerts; recording the same one again changes nothing. */
export function noteOccurrences(
  store: Store,
  rows: readonly Occurrence[],
  at: { now: number; step: string },
): Statement[] {
  return rows.length === 0 ? [] : [queries(store).insert(rows.map((row) => ({ ...row, ...at })))]
}

/** Statements by which pending alerts fire. */
export function fire(
  store: Store,
  rows: readonly { id: number; fact: Fact; isQuiet: boolean; isHeld: boolean }[],
  at: { now: number; step: string },
): Statement[] {
  return rows.length === 0 ? [] : [bind(queries(store).fire, { rows: JSON.stringify(rows), ...at })]
}

type ChangedIds = { readonly ids: readonly number[]; readonly now: number; readonly step: string }

/** Statements that report firing alerts, for the first time or again. */
export function tellAgain(store: Store, { ids, ...at }: ChangedIds): Statement[] {
  return ids.length === 0 ? [] : [bind(queries(store).tell, { ids: JSON.stringify(ids), ...at })]
}

export function resolve(store: Store, { ids, ...at }: ChangedIds): Statement[] {
  return ids.length === 0 ? [] : [bind(queries(store).resolve, { ids: JSON.stringify(ids), ...at })]
}

/** Statements that delete pending alerts whose condition ended. */
export function forgetPending(store: Store, ids: readonly number[]): Statement[] {
  return ids.length === 0 ? [] : [bind(queries(store).forget, { ids: JSON.stringify(ids) })]
}

export function setInhibited(store: Store, ids: readonly number[], is: boolean): Statement[] {
  return ids.length === 0 ? [] : [bind(queries(store).inhibit, { ids: JSON.stringify(ids), is: Number(is) })]
}

/**
 * Statements that put messages about a step's changes into the outbox; they run after the changes: one message for each
 * rule and destination. `waitMs`: how long further alerts of the rule may join.
 */
export function sendOut(
  store: Store,
  about: {
    readonly step: string
    readonly notification: NotificationKind
    readonly now: number
    readonly waitMs: number
    /** They are single events, which may come one after the other. */
    readonly areSingle?: boolean
  },
): Statement[] {
  const { step, notification, now, waitMs, areSingle = false } = about
  const { deliver, list } = queries(store)
  return [
    bind(deliver, { step, notification, now, due: now + waitMs, areSingle: Number(areSingle) }),
    bind(list, { step, notification, now }),
  ]
}

/**
 * Returns a check whether an occurrence is muted. A rule that fired too often for a node within an hour is reported
 * once more, and then muted.
 */
export async function readHolds(store: Store, ruleIds: readonly number[], now: number) {
  const counts = new Map<string, { n: number; held: number }>()
  if (ruleIds.length > 0) {
    const rows = await queries(store).firedLately.all({ ruleIds: JSON.stringify(ruleIds), since: now - HOUR_MS, now })
    for (const { ruleId, subject, n, held } of rows) counts.set(`${ruleId} ${subject}`, { n, held })
  }
  return (ruleId: number, subject: string): { isHeld: boolean; isQuiet: boolean } => {
    const key = `${ruleId} ${subject}`
    const { n, held } = counts.get(key) ?? { n: 0, held: 0 }
    const isHeld = n >= MAX_PER_HOUR
    counts.set(key, { n: n + 1, held: held + Number(isHeld) })
    return { isHeld, isQuiet: isHeld && held > 0 }
  }
}
