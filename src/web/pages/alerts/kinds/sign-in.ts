import type { RuleOf } from '../rule.ts'
import { type KindView, NoFields } from './kind.ts'

export const signIn: KindView<RuleOf<'sign_in'>> = {
  name: 'My account',
  isEvent: true,
  fresh: (common) => ({ kind: 'sign_in', ...common }),
  sentence: () => 'Tell me when something happens to my account',
  Fields: NoFields,
}
