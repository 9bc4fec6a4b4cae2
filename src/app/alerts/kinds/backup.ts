import { HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'
import type { WatchingRule } from '../rules/watch-list.ts'
import type { World } from '../world.ts'
import type { Finding, OpenAlerts } from './finding.ts'

/** A run missed while the service was down happens soon after its start. */
const CATCH_UP_MS = 15 * MINUTE_MS

/** The latest backup failed, or none succeeded for too long. */
export function findBackups(
  { rule, anchorAt }: WatchingRule<'backup'>,
  { now, startedAt, backups }: World,
  _open: OpenAlerts,
): Finding[] {
  const { succeededAt, failure } = backups
  const found = { subject: 'backup', nodeNum: null, channel: null, forMs: 0, isKnown: true }
  if (failure !== null && failure.at >= anchorAt) {
    return [{ ...found, key: `failed:${failure.id}`, since: failure.at, what: 'A backup failed' }]
  }
  const since = Math.max(succeededAt ?? 0, anchorAt)
  const isWaiting = startedAt !== null && now - startedAt < CATCH_UP_MS
  if (isWaiting || now - since < rule.afterHours * HOUR_MS) return []
  return [{ ...found, key: `overdue:${since}`, since, what: `No backup succeeded for ${rule.afterHours} h` }]
}
