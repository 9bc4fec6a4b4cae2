import { MINUTE_MS } from '../../../shared/time.ts'
import { cleanText } from '../names.ts'
import type { WatchingRule } from '../rules/watch-list.ts'
import type { World } from '../world.ts'
import type { Finding, OpenAlerts } from './finding.ts'

/** Radios, brokers and collectors that are down. Time before the start of the service does not count. */
export function findDown({ rule, anchorAt }: WatchingRule<'link'>, world: World, open: OpenAlerts): Finding[] {
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
    const what = `${cleanText(name, 80)} is down for ${rule.afterMinutes} min or more`
    return [{ subject, key, nodeNum: null, channel: null, since: begun, forMs, isKnown: true, what }]
  })
}
