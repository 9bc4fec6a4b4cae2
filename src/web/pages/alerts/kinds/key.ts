import { catalog } from '../../../language.ts'
import type { RuleOf } from '../rule.ts'
import { ALL, WatchedFields, who } from './fields.tsx'
import type { KindView } from './kind.ts'

export const keyKind = catalog('keyKind', {
  name: 'A doubtful key',
  sentence: (who: string) => `Tell me when the key of ${who} is doubtful`,
})

export const key: KindView<RuleOf<'key'>> = {
  name: keyKind.name,
  fresh: (common) => ({ kind: 'key', ...common, nodes: ALL }),
  sentence: ({ nodes }) => keyKind.sentence(who(nodes)),
  Fields: WatchedFields,
}
