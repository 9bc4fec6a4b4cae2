import * as z from 'zod'
import { SILENT_MINUTES } from '../../../shared/alerts/alert-kinds.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { cleanText } from '../names.ts'
import type { World } from '../world/world.ts'
import type { Fact } from '../facts.ts'
import { said } from '../../words/words.ts'
import { common } from './fields.ts'
import { defineKind, type Finding, type OpenAlerts, type Watching } from './kind.ts'
import { ALERT_NEEDS } from '../../../shared/alerts/alert-needs.ts'

const linkSchema = z
  .strictObject({
    kind: z.literal('link'),
    ...common,
    links: z.array(z.string().min(1).max(200)).min(1).max(50).nullable().default(null).describe('Names; null: all'),
    afterMinutes: z.int().min(1).max(SILENT_MINUTES.max),
  })
  .meta({ id: 'LinkRule', description: 'A radio, a broker or a collector has been down for a while' })

export const link = defineKind(linkSchema, {
  requires: ALERT_NEEDS.link,
  state: { needs: () => ({}), find: findDown },
  preview: async () => ({ fires: [], note: said('Interruptions of radios and brokers are not stored.') }),
})

/** Radios, brokers and collectors that are down. Time before the start of the service does not count. */
function findDown({ rule, anchorAt }: Watching<z.infer<typeof linkSchema>>, world: World, open: OpenAlerts): Finding[] {
  return world.links.flatMap(({ name, isUp, since }) => {
    if (isUp || (rule.links !== null && !rule.links.includes(name))) return []
    const subject = `link:${name}`
    const known = open.get(subject)
    // A link that tries to connect keeps changing its state.
    const begun = known?.startedAt ?? since
    const counted = known?.firedAt === null || known === undefined ? Math.max(begun, world.startedAt ?? 0) : begun
    const afterMs = rule.afterMinutes * MINUTE_MS
    const forMs = afterMs + (counted - begun)
    const key = `${name}@${begun}@${anchorAt}`
    const fact: Fact = { event: 'link_down', name: cleanText(name, 80), minutes: rule.afterMinutes }
    return [{ subject, key, nodeNum: null, channel: null, since: begun, forMs, isKnown: true, fact }]
  })
}
