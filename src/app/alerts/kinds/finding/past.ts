import { DAY_MS } from '../../../../shared/time.ts'
import type { FindingRule } from '../../../../shared/mesh/finding-rules.ts'
import { nextTurn } from '../../../base/pacing/next-turn.ts'
import type { SignedInCtx } from '../../../base/context.ts'
import { lookBack as lookBackAt } from '../../../mesh/findings/past.ts'
import { nodesSeen } from '../../../mesh/findings/seen.ts'
import { said, type Said } from '../../../words/words.ts'
import { type Fire, type Past, type Range, readNodes } from '../../past/past.ts'
import { readMeshFindings } from '../../world/mesh-findings.ts'
import { watcher } from '../../world/watched.ts'
import type { FindingAlertRule } from './schema.ts'

/** When a rule about findings would have fired. */
export async function lookBack(ctx: SignedInCtx, rule: FindingAlertRule, range: Range): Promise<Past> {
  const { store, viewer } = ctx
  const { found, since } = await lookBackAt(store, { names: rule.findings, ...range }, range.pause)
  const isWatched = watcher(rule.nodes)
  const known = new Map((await readNodes(ctx)).map((node) => [node.nodeNum, node]))
  await nextTurn()
  const before = found.flatMap((each): Fire[] => {
    const node = known.get(each.nodes[0] ?? 0)
    if (node === undefined || !isWatched(node) || nodesSeen(viewer.view, each) === null) return []
    const fact = { event: 'finding' as const, name: node.name, rule: each.rule }
    return [{ at: each.from, resolvedAt: each.until, nodeNum: node.nodeNum, fact }]
  })
  const now = (await readMeshFindings(store)).flatMap((each): Fire[] => {
    const { node, rule: name } = each
    const isOnlyNow = since.get(name) === null
    if (!isOnlyNow || !isWatched(node) || nodesSeen(viewer.view, each) === null) return []
    const at = Math.max(each.since, range.from)
    return [{ at, resolvedAt: null, nodeNum: node.nodeNum, fact: { event: 'finding', name: node.name, rule: name } }]
  })
  return { fires: [...before, ...now], note: noteOf(since, range) }
}

/** What of the days is not stored. */
function noteOf(since: ReadonlyMap<FindingRule, number | null>, { from, to }: Range): Said | null {
  const times = [...since.values()].flatMap((time) => time ?? [])
  const [all, present] = [since.size, since.size - times.length]
  if (present === all) return said('Only the present state is stored, not the history.')
  const days = Math.floor((to - Math.max(...times)) / DAY_MS)
  if (present > 0) {
    return said(
      'Of {present} of these {all} findings only the present is stored; the others were looked at for the last {days} days.',
      { present, all, days },
    )
  }
  return Math.max(...times) > from + DAY_MS
    ? said('What this is judged by is stored only for the last {days} days.', { days })
    : null
}
