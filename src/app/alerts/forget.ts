import { sql } from 'drizzle-orm'
import { alertDeliveries, alerts } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { DAY_MS } from '../../shared/time.ts'
import type { Pause } from '../base/pacing/slices.ts'
import { MAX_OPEN } from './findings/open.ts'

/** Retention of the history of alerts. */
const ALERTS_MS = 90 * DAY_MS
const DELIVERIES_MS = 30 * DAY_MS
const SLICE = sql.raw('500')

const queries = prepareOnce((db) => ({
  deliveries: db
    .delete(alertDeliveries)
    .where(sql`id in (select id from alert_deliveries where ended_at < ${sql.placeholder('before')} limit ${SLICE})`)
    .returning({ id: alertDeliveries.id })
    .prepare(),
  alerts: db
    .delete(alerts)
    .where(
      sql`id in (select id from alerts where state = 'resolved' and resolved_at < ${sql.placeholder('before')} limit ${SLICE})`,
    )
    .returning({ id: alerts.id })
    .prepare(),
  surplusOwners: db
    .select({
      last: sql<
        number | null
      >`(select id from alerts where owner_id = o.owner_id order by id desc limit 1 offset ${sql.raw(String(MAX_OPEN))})`,
      ownerId: sql<number>`o.owner_id`,
    })
    .from(sql`(select distinct owner_id from alerts) o`)
    .prepare(),
  surplus: db
    .delete(alerts)
    .where(
      sql`id in (select id from alerts where owner_id = ${sql.placeholder('ownerId')} and id <= ${sql.placeholder('last')}
        and state = 'resolved' limit ${SLICE})`,
    )
    .returning({ id: alerts.id })
    .prepare(),
}))

/**
 * Deletes alerts and messages that ended long ago, and the oldest of each owner beyond a limit. Returns the number of
 * alerts.
 */
export async function forgetAlerts(store: Store, now: number, pause: Pause): Promise<number> {
  const prepared = queries(store)
  while ((await prepared.deliveries.all({ before: now - DELIVERIES_MS })).length > 0) if (!(await pause())) return 0
  let count = 0
  for (;;) {
    const { length } = await prepared.alerts.all({ before: now - ALERTS_MS })
    count += length
    if (length === 0) break
    if (!(await pause())) return count
  }
  for (const { ownerId, last } of await prepared.surplusOwners.all()) {
    for (;;) {
      const { length } = last === null ? [] : await prepared.surplus.all({ ownerId, last })
      count += length
      if (length === 0) break
      if (!(await pause())) return count
    }
  }
  return count
}
