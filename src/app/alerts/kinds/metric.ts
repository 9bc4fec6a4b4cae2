import { DAY_MS, MINUTE_MS } from '../../../shared/time.ts'
import { unitOf } from '../../mesh/telemetry/metric-units.ts'
import { maySee } from '../rights.ts'
import type { AlertRuleOf } from '../rules/rule.ts'
import { watcher } from '../rules/watched.ts'
import type { WatchingRule } from '../rules/watch-list.ts'
import type { World } from '../world.ts'
import { type Finding, nodeSubject, type OpenAlerts } from './finding.ts'

/** Older measurements do not describe the present. */
const STALE_MS = 2 * DAY_MS

/** Whether a value is beyond the limit; once it is, it must return by the hysteresis. */
export function isBeyond({ is, limit, hysteresis }: AlertRuleOf<'metric'>, value: number, was: boolean): boolean {
  const slack = was ? hysteresis : 0
  return is === 'above' ? value > limit - slack : value < limit + slack
}

export function findBeyond(
  { rule, anchorAt, owner }: WatchingRule<'metric'>,
  world: World,
  open: OpenAlerts,
): Finding[] {
  const isWatched = watcher(rule.nodes)
  const latest = world.latest.get(rule.metric)
  if (latest === undefined) return []
  return world.nodes.flatMap((node) => {
    const measured = latest.get(node.id)
    if (measured === undefined || !isWatched(node)) return []
    if (!maySee(owner, 'metric', { channel: measured.channel, direct: false })) return []
    const { nodeNum } = node
    const subject = nodeSubject(nodeNum)
    const known = open.get(subject)
    if (known === undefined && measured.t < world.now - STALE_MS) return []
    if (!isBeyond(rule, measured.v, known !== undefined)) return []
    const since = known?.startedAt ?? measured.t
    const forMs = rule.forMinutes * MINUTE_MS
    return [
      {
        subject,
        key: `${nodeNum}@${since}@${anchorAt}`,
        nodeNum,
        channel: measured.channel,
        since,
        forMs,
        isKnown: true,
        what: sentence(rule, node.name, measured.v),
      },
    ]
  })
}

/** `Ridge: batteryLevel is 12 %, below 20 %`. */
export function sentence({ metric, is, limit }: AlertRuleOf<'metric'>, name: string, value: number): string {
  const unit = unitOf(metric)
  const shown = (number: number) => `${Number(number.toFixed(2))}${unit === null ? '' : ` ${unit}`}`
  return `${name}: ${metric.slice(metric.indexOf('.') + 1)} is ${shown(value)}, ${is} ${shown(limit)}`
}
