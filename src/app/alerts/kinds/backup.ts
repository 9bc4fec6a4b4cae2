import * as z from 'zod'
import { HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'
import { readPast } from '../past/history.ts'
import { lookAtPresent } from '../past/past.ts'
import { ownerOf } from '../rights.ts'
import type { World } from '../world/world.ts'
import { said } from '../../words/words.ts'
import { common } from './fields.ts'
import { defineKind, type Finding, type Watching } from './kind.ts'
import { ALERT_NEEDS } from '../../../shared/alerts/alert-needs.ts'

const backupSchema = z
  .strictObject({ kind: z.literal('backup'), ...common, afterHours: z.int().min(1).max(8760).default(48) })
  .meta({ id: 'BackupRule', description: 'A backup or a copy of one failed, or none succeeded for a while' })

type BackupRule = z.infer<typeof backupSchema>

const NEEDS = { backups: true } as const

export const backup = defineKind(backupSchema, {
  requires: ALERT_NEEDS.backup,
  state: { needs: () => NEEDS, find: findBackups },
  async preview(ctx, rule, range) {
    const anchorAt = await readPast(ctx.store, range.from)
    const watching = { id: 0, ownerId: ctx.viewer.user.id, anchorAt, rule, owner: ownerOf(ctx.viewer) }
    return {
      fires: await lookAtPresent(ctx, range, NEEDS, (world) => findBackups(watching, world)),
      note: said('Only the present state is shown.'),
    }
  },
})

/** A run missed while the service was down happens soon after its start. */
const CATCH_UP_MS = 15 * MINUTE_MS

/** Finds out whether the latest backup failed, or none succeeded for too long, and to which places none was copied. */
function findBackups(watching: Watching<BackupRule>, world: World): Finding[] {
  return [...findOwn(watching, world), ...world.backups.copies]
}

function findOwn({ rule, anchorAt }: Watching<BackupRule>, { now, startedAt, backups }: World): Finding[] {
  const { succeededAt, failure } = backups
  const found = { subject: 'backup', nodeNum: null, channel: null, forMs: 0, isKnown: true }
  if (failure !== null && failure.at >= anchorAt) {
    return [{ ...found, key: `failed:${failure.id}`, since: failure.at, fact: { event: 'backup_failed' } }]
  }
  const since = Math.max(succeededAt ?? 0, anchorAt)
  const isWaiting = startedAt !== null && now - startedAt < CATCH_UP_MS
  if (isWaiting || now - since < rule.afterHours * HOUR_MS) return []
  return [{ ...found, key: `overdue:${since}`, since, fact: { event: 'backup_overdue', hours: rule.afterHours } }]
}
