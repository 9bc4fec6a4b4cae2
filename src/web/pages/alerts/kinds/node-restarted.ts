import { catalog } from '../../../language.ts'
import type { RuleOf } from '../rule.ts'
import { ALL, WatchedFields, who } from './fields.tsx'
import type { KindView } from './kind.ts'

export const nodeRestartedKind = catalog('nodeRestartedKind', {
  name: 'A node restarts',
  sentence: (who: string) => `Tell me when ${who} restarts`,
})

export const nodeRestarted: KindView<RuleOf<'node_restarted'>> = {
  name: nodeRestartedKind.name,
  isEvent: true,
  fresh: (common) => ({ kind: 'node_restarted', ...common, nodes: ALL }),
  sentence: ({ nodes }) => nodeRestartedKind.sentence(who(nodes)),
  Fields: WatchedFields,
}
