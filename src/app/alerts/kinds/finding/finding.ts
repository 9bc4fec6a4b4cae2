import { ALERT_NEEDS } from '../../../../shared/alerts/alert-needs.ts'
import { nodesSeen } from '../../../mesh/findings/seen.ts'
import { watcher } from '../../world/watched.ts'
import type { World } from '../../world/world.ts'
import { defineKind, type Finding, type Watching } from '../kind.ts'
import { lookBack } from './past.ts'
import { type FindingAlertRule, findingSchema } from './schema.ts'

/** What is wrong in the mesh. */
export const finding = defineKind(findingSchema, {
  requires: ALERT_NEEDS.finding,
  state: { needs: () => ({ meshFindings: true }), find },
  pastDays: 30,
  preview: lookBack,
  heading: (words, total, isOver) =>
    isOver
      ? words.count(total, '{n} finding is over:', '{n} findings are over:')
      : words.count(total, '{n} new finding:', '{n} new findings:'),
})

/** What was found since the rule watches, and all of which its owner may see. */
function find({ rule, owner, anchorAt }: Watching<FindingAlertRule>, { meshFindings = [] }: World): Finding[] {
  const isWatched = watcher(rule.nodes)
  return meshFindings.flatMap((found) => {
    const { rule: name, subject: of, since, node, channels } = found
    const isWanted = since >= anchorAt && rule.findings.includes(name) && isWatched(node)
    if (!isWanted || nodesSeen(owner.view, found) === null) return []
    const subject = `${name}:${of}`
    return [
      {
        subject,
        key: `${subject}@${since}`,
        nodeNum: node.nodeNum,
        // It has none of the contents of the others: only that there was such a finding.
        channel: channels.find((channel) => channel !== null) ?? null,
        since,
        forMs: 0,
        isKnown: true,
        fact: { event: 'finding', name: node.name, rule: name },
      },
    ]
  })
}
