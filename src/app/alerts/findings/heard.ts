import type { Statement, Store } from '../../../db/store.ts'
import type { Batch, Event } from '../kinds/kind.ts'
import { ALERT_KINDS, kindOf } from '../kinds/kinds.ts'
import { FIRST_MS, newStep, noteOccurrences, type Occurrence, readHolds, sendOut } from './occur.ts'
import { isSilenced } from '../rules/rule.ts'
import { listWatching, ofKind } from '../rules/watch-list.ts'

/** The effect of a batch on rules: statements that run after its own, and the owners of the alerts. */
export type HeardAlerts = { readonly statements: readonly Statement[]; readonly owners: readonly number[] }

const NOTHING: HeardAlerts = { statements: [], owners: [] }

/** The events of a batch that match rules. Reads only if a rule may match one of them. */
export async function alertsOfBatch(store: Store, batch: Batch): Promise<HeardAlerts> {
  const rules = await listWatching(store)
  if (rules.length === 0) return NOTHING
  const found: Event[] = []
  for (const kind of ALERT_KINDS) {
    const watching = ofKind(rules, kind)
    if (watching.length > 0) found.push(...((await kindOf(kind).heard?.(store, watching, batch)) ?? []))
  }
  if (found.length === 0) return NOTHING
  const { now } = batch
  const hold = await readHolds(store, [...new Set(found.map(({ watching }) => watching.id))], now)
  const step = newStep()
  const rows = found.flatMap(({ watching: { id, rule }, ...event }): Occurrence[] => {
    const { isHeld, isQuiet } = hold(id, event.subject)
    if (isQuiet) return []
    const isSilent = isSilenced(rule, event.nodeNum, now)
    return [{ ...event, ruleId: id, state: 'resolved', startedAt: now, isHeld, isQuiet: isSilent }]
  })
  if (rows.length === 0) return NOTHING
  return {
    statements: [
      ...noteOccurrences(store, rows, { now, step }),
      ...sendOut(store, { step, notification: 'fired', now, waitMs: FIRST_MS, areSingle: true }),
    ],
    owners: [...new Set(found.map(({ watching }) => watching.ownerId))],
  }
}
