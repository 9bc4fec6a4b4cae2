import { and, eq, sql } from 'drizzle-orm'
import { insertSelect } from '../../../db/insert-select.ts'
import { alertDeliveries, alertDeliveryItems, users } from '../../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import { NEW_TO_DESTINATION } from '../new-delivery.ts'
import { parseQuietHours, type QuietHours } from './hours.ts'

const value = sql.placeholder
/** Rows per step: a few milliseconds. */
const AT_A_TIME = sql.raw('1000')

const isDue = sql`destination_id = ${value('id')} and state = 'waiting' and due_at <= ${value('now')}`
/** Quiet hours hold messages about alerts, but not about what is urgent, nor about the owner's own account. */
const isHeld = sql.raw(`notification in ('fired', 'resolved', 'repeated') and not exists (select 1 from alert_rules r
  where r.id = alert_deliveries.rule_id and (r.kind = 'sign_in' or json_extract(r.rule, '$.urgent')))`)
/** The same rows in each statement of a step. */
const held = sql`select id from alert_deliveries where ${isDue} and attempts = 0 and ${isHeld} order by id limit ${AT_A_TIME}`
/** The message that tells what was held. */
const summary = sql`select id from alert_deliveries where destination_id = ${value('id')} and notification = 'quiet'
  and state = 'waiting' and attempts = 0 order by id limit 1`

const queries = prepareOnce((db) => ({
  hours: db
    .select({ stored: users.quietHours })
    .from(users)
    .where(eq(users.id, value('ownerId')))
    .prepare(),
  // What was tried already may have arrived: it keeps its id.
  postpone: db
    .update(alertDeliveries)
    .set({ dueAt: sql`${value('until')}`, heldUntil: sql`${value('until')}` })
    .where(
      sql`id in (select id from alert_deliveries where ${isDue}
        and (notification in ('summary', 'quiet') or attempts > 0 and ${isHeld}) limit ${AT_A_TIME})`,
    )
    .prepare(),
  begin: insertSelect(
    db,
    alertDeliveries,
    {
      ...NEW_TO_DESTINATION,
      notification: 'quiet',
      createdAt: value('now'),
      dueAt: value('until'),
      heldUntil: value('until'),
    },
    sql`from alert_destinations d where d.id = ${value('id')} and exists (${held}) and not exists (${summary})`,
  ).prepare(),
  list: insertSelect(
    db,
    alertDeliveryItems,
    { deliveryId: sql`(${summary})`, alertId: sql`i.alert_id` },
    sql`from alert_delivery_items i where i.delivery_id in (${held}) on conflict do nothing`,
  ).prepare(),
  remove: db
    .delete(alertDeliveries)
    .where(sql`id in (${held})`)
    .prepare(),
  more: db
    .select({ isThere: sql<number>`exists (${held})` })
    .from(sql`(select 1)`)
    .prepare(),
}))

/** The quiet hours of a user; null: none. */
export async function readQuietHours(store: Store, ownerId: number): Promise<QuietHours | null> {
  return parseQuietHours((await queries(store).hours.get({ ownerId }))?.stored)
}

/**
 * Holds the due messages to a destination until its owner's quiet hours end: what they tell becomes one message, which
 * is due then. Returns false if there are more of them than one step holds.
 */
export async function holdMessages(
  store: Store,
  values: { readonly id: number; readonly now: number; readonly until: number },
): Promise<boolean> {
  const { postpone, begin, list, remove, more } = queries(store)
  await store.atomic([bind(postpone, values), bind(begin, values), bind(list, values), bind(remove, values)])
  return (await more.get({ id: values.id, now: values.now }))?.isThere !== 1
}

/** The statement that makes what quiet hours hold due now. Hours that still apply hold it again. */
export function releaseHeld({ db }: Store, ownerId: number, now: number): Statement {
  return db
    .update(alertDeliveries)
    .set({ dueAt: now, heldUntil: now })
    .where(
      and(eq(alertDeliveries.ownerId, ownerId), sql`state = 'waiting' and held_until > ${now} and due_at = held_until`),
    )
}
