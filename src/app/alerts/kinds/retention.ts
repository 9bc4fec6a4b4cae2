import * as z from 'zod'
import { lookAtPresent } from '../past/past.ts'
import { ownerOf } from '../rights.ts'
import type { World } from '../world/world.ts'
import { said } from '../../words/words.ts'
import { common } from './fields.ts'
import { defineKind, type Finding, type OpenAlerts, type Watching } from './kind.ts'
import { ALERT_NEEDS } from '../../../shared/alerts/alert-needs.ts'

const retentionSchema = z.strictObject({ kind: z.literal('retention'), ...common }).meta({
  id: 'RetentionRule',
  description:
    'Deletion of old data is a day behind, data is kept shorter than set, or the database has reached 70 % of the size that it can reach',
})

type RetentionRule = z.infer<typeof retentionSchema>

const NEEDS = { retention: true } as const

export const retention = defineKind(retentionSchema, {
  requires: ALERT_NEEDS.retention,
  state: { needs: () => NEEDS, find: findProblems },
  async preview(ctx, rule, range) {
    const watching = { id: 0, ownerId: ctx.viewer.user.id, anchorAt: range.from, rule, owner: ownerOf(ctx.viewer) }
    return {
      fires: await lookAtPresent(ctx, range, NEEDS, (world) => findProblems(watching, world, new Map())),
      note: said('Only the present state is shown.'),
    }
  },
})

/** One alert for each table that is late or shortened, and one for the size of the database. */
function findProblems({ anchorAt }: Watching<RetentionRule>, { now, retention }: World, open: OpenAlerts): Finding[] {
  return retention.map(({ key, fact }) => {
    const since = open.get(key)?.startedAt ?? now
    const found = { subject: key, nodeNum: null, channel: null, forMs: 0, isKnown: true }
    return { ...found, key: `${key}@${since}@${anchorAt}`, since, fact }
  })
}
