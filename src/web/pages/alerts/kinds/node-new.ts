import { catalog } from '../../../language.ts'
import type { RuleOf } from '../rule.ts'
import { type KindView, NoFields } from './kind.ts'

export const nodeNewKind = catalog('nodeNewKind', {
  name: 'A new node',
  sentence: 'Tell me when a node is heard for the first time',
})

export const nodeNew: KindView<RuleOf<'node_new'>> = {
  name: nodeNewKind.name,
  isEvent: true,
  fresh: (common) => ({ kind: 'node_new', ...common }),
  sentence: () => nodeNewKind.sentence,
  Fields: NoFields,
}
