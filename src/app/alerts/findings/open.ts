import { ne, sql } from 'drizzle-orm'
import { alerts } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import type { Pause } from '../../base/pacing/slices.ts'

/** Open alerts of one owner. */
export const MAX_OPEN = 5000
/** Rows of one read: a few milliseconds. */
const SLICE = 500

export type OpenRow = typeof alerts.$inferSelect

const value = sql.placeholder
const IS_OPEN = ne(alerts.state, 'resolved')

const queries = prepareOnce((db) => ({
  // One step of the index for each rule, not one for each alert.
  rules: db
    .select({ ruleId: sql<number>`r.id` })
    .from(
      sql`(with recursive r(id) as (select min(rule_id) from alerts where ${IS_OPEN} union all
        select (select min(rule_id) from alerts where rule_id > r.id and ${IS_OPEN}) from r where r.id is not null)
        select id from r where id is not null) r`,
    )
    .prepare(),
  page: db
    .select()
    .from(alerts)
    .where(sql`rule_id = ${value('ruleId')} and subject > ${value('after')} and ${IS_OPEN}`)
    .orderBy(alerts.subject)
    .limit(SLICE)
    .prepare(),
  ofOwner: db
    .select({ count: sql<number>`count(*)` })
    .from(sql`alert_rules r join alerts on rule_id = r.id`)
    .where(sql`r.owner_id = ${value('ownerId')} and ${IS_OPEN}`)
    .prepare(),
}))

/** IDs of the rules that have open alerts, deleted rules too. */
export async function rulesWithOpen(store: Store): Promise<Set<number>> {
  return new Set((await queries(store).rules.all()).map(({ ruleId }) => ruleId))
}

/** The open alerts of a rule, by subject; null: `pause` ended the work. */
export async function readOpen(store: Store, ruleId: number, pause: Pause): Promise<OpenRow[] | null> {
  const open: OpenRow[] = []
  for (;;) {
    const page = await readOpenPage(store, ruleId, open.at(-1)?.subject)
    open.push(...page)
    if (page.length < SLICE) return open
    if (!(await pause())) return null
  }
}

/** The next open alerts of a rule, by subject. */
export async function readOpenPage(store: Store, ruleId: number, after = ''): Promise<OpenRow[]> {
  return queries(store).page.all({ ruleId, after })
}

/** How many open alerts the rules of an owner have. */
export async function countOpen(store: Store, ownerId: number): Promise<number> {
  return (await queries(store).ofOwner.get({ ownerId }))?.count ?? 0
}
