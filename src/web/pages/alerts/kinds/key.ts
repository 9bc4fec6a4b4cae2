import type { RuleOf } from '../rule.ts'
import { ALL, WatchedFields, who } from './fields.tsx'
import type { KindView } from './kind.ts'

export const key: KindView<RuleOf<'key'>> = {
  name: 'A doubtful key',
  fresh: (common) => ({ kind: 'key', ...common, nodes: ALL }),
  sentence: ({ nodes }) => `Tell me when the key of ${who(nodes)} is doubtful`,
  Fields: WatchedFields,
}
