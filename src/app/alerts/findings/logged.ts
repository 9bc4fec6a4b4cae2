import { and, eq, gt, inArray, lte, sql } from 'drizzle-orm'
import { alertMarks, auditLog } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import type { Ports } from '../../base/context.ts'
import { ALERT_KINDS, kindOf } from '../kinds/kinds.ts'
import { newStep, noteOccurrences, type Occurrence, readHolds, sendOut } from './occur.ts'
import type { Fact } from '../facts.ts'
import { isSilenced } from '../rules/rule.ts'
import type { WatchingRule } from '../rules/watch-list.ts'
import { run } from './settle.ts'
import { tellOwner } from '../../mesh/live/tell-owner.ts'

type Needs = Pick<Ports, 'store' | 'events'>

/** Entries that are read at a time. */
const ENTRIES = 500

const ACTIONS = ALERT_KINDS.flatMap((kind) => kindOf(kind).logged?.actions ?? [])

const queries = prepareOnce((db) => ({
  mark: db.select().from(alertMarks).where(eq(alertMarks.name, 'audit')).prepare(),
  lastEntry: db
    .select({ id: sql<number>`coalesce(max(id), 0)` })
    .from(auditLog)
    .prepare(),
  entries: db
    .select({
      id: auditLog.id,
      action: auditLog.action,
      userId: auditLog.userId,
      details: auditLog.details,
      ip: auditLog.ip,
      at: auditLog.timestamp,
    })
    .from(auditLog)
    .where(
      and(
        gt(auditLog.id, sql.placeholder('after')),
        lte(auditLog.id, sql.placeholder('until')),
        inArray(auditLog.action, ACTIONS),
      ),
    )
    .orderBy(auditLog.id)
    .prepare(),
}))

/** Records alerts about account events in the audit log since the last run. The first run reports nothing. */
export async function noteLogged(needs: Needs, all: readonly WatchingRule[], now: number): Promise<void> {
  const { store } = needs
  const rules = all.filter(({ rule }) => kindOf(rule.kind).logged !== undefined)
  if (rules.length === 0) return
  const { mark, lastEntry, entries } = queries(store)
  const last = (await lastEntry.get())?.id ?? 0
  const after = (await mark.get())?.value ?? last
  const until = Math.min(last, after + ENTRIES)
  const events: { watching: WatchingRule; id: number; fact: Fact; at: number }[] = []
  for (const { at, ...entry } of after < until ? await entries.all({ after, until }) : []) {
    const about: unknown = Object(JSON.parse(entry.details)).userId ?? entry.userId
    for (const watching of rules) {
      if (watching.ownerId !== about || at < watching.anchorAt) continue
      const fact = (await kindOf(watching.rule.kind).logged?.tell(store, entry)) ?? null
      if (fact !== null) events.push({ watching, id: entry.id, fact, at })
    }
  }
  const hold = await readHolds(store, [...new Set(events.map(({ watching }) => watching.id))], now)
  const step = newStep()
  const rows = events.map(({ watching, id, fact, at }): Occurrence => {
    const { isHeld, isQuiet } = hold(watching.id, 'account')
    const isSilent = isQuiet || isSilenced(watching.rule, null, now)
    const key = `audit:${id}`
    return {
      ruleId: watching.id,
      state: 'resolved',
      subject: 'account',
      key,
      nodeNum: null,
      channel: null,
      direct: false,
      startedAt: at,
      fact,
      isHeld,
      isQuiet: isSilent,
    }
  })
  await run(store, [
    ...noteOccurrences(store, rows, { now, step }),
    ...(rows.length > 0 ? sendOut(store, { step, notification: 'fired', now, waitMs: 0 }) : []),
    store.db
      .insert(alertMarks)
      .values({ name: 'audit', value: until })
      .onConflictDoUpdate({ target: alertMarks.name, set: { value: until } }),
  ])
  for (const ownerId of new Set(events.map(({ watching }) => watching.ownerId))) tellOwner(needs, ownerId)
}
