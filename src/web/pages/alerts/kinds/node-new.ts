import type { RuleOf } from '../rule.ts'
import { type KindView, NoFields } from './kind.ts'

export const nodeNew: KindView<RuleOf<'node_new'>> = {
  name: 'A new node',
  isEvent: true,
  fresh: (common) => ({ kind: 'node_new', ...common }),
  sentence: () => 'Tell me when a node is heard for the first time',
  Fields: NoFields,
}
