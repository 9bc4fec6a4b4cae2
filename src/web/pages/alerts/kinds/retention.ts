import type { RuleOf } from '../rule.ts'
import { type KindView, NoFields } from './kind.ts'

export const retention: KindView<RuleOf<'retention'>> = {
  name: 'Old data and room for data',
  fresh: (common) => ({ kind: 'retention', ...common }),
  sentence: () => 'Tell me when old data is not deleted, data is kept shorter than set, or the database gets large',
  Fields: NoFields,
}
