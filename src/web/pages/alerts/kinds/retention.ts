import { catalog } from '../../../language.ts'
import type { RuleOf } from '../rule.ts'
import { type KindView, NoFields } from './kind.ts'

export const retentionKind = catalog('retentionKind', {
  name: 'Old data and room for data',
  sentence: 'Tell me when old data is not deleted, data is kept shorter than set, or the database gets large',
})

export const retention: KindView<RuleOf<'retention'>> = {
  name: retentionKind.name,
  fresh: (common) => ({ kind: 'retention', ...common }),
  sentence: () => retentionKind.sentence,
  Fields: NoFields,
}
