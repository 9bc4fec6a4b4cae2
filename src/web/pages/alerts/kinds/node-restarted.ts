import type { RuleOf } from '../rule.ts'
import { ALL, WatchedFields, who } from './fields.tsx'
import type { KindView } from './kind.ts'

export const nodeRestarted: KindView<RuleOf<'node_restarted'>> = {
  name: 'A node restarts',
  isEvent: true,
  fresh: (common) => ({ kind: 'node_restarted', ...common, nodes: ALL }),
  sentence: ({ nodes }) => `Tell me when ${who(nodes)} restarts`,
  Fields: WatchedFields,
}
