import type { FindingRule } from '../../../shared/mesh/finding-rules.ts'
import type { Finding } from './sentence.tsx'

/** Findings whose evidence is who hears whom. */
const OF_LINKS: ReadonlySet<FindingRule> = new Set(['one_way', 'depends', 'routers'])

/** The address of a map on which the nodes of a finding are marked, and the links between them if it is about those. */
export function mapOf({ rule, nodes }: Finding): string {
  const marked = nodes.map(({ nodeId }) => nodeId).join(',')
  return `/map?mark=${marked}${OF_LINKS.has(rule) ? '&between=1' : ''}`
}
