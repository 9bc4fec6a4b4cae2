import { catalog } from '../../../language.ts'
import type { RuleOf } from '../rule.ts'
import { type KindView, NoFields } from './kind.ts'

export const signInKind = catalog('signInKind', {
  name: 'My account',
  sentence: 'Tell me when something happens to my account',
})

export const signIn: KindView<RuleOf<'sign_in'>> = {
  name: signInKind.name,
  isEvent: true,
  fresh: (common) => ({ kind: 'sign_in', ...common }),
  sentence: () => signInKind.sentence,
  Fields: NoFields,
}
