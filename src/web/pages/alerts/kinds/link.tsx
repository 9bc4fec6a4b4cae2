import { catalog } from '../../../language.ts'
import { duration } from '../../../format.ts'
import { alertTexts } from '../../../strings/alerts.ts'
import type { RuleOf } from '../rule.ts'
import { DurationField } from './duration-field.tsx'
import type { FieldsProps, KindView } from './kind.ts'

type Rule = RuleOf<'link'>

export const linkKind = catalog('linkKind', {
  name: 'A radio or broker is down',
  sentence: (time: string) => `Tell me when a radio or broker is down for ${time}`,
})

export const link: KindView<Rule> = {
  name: linkKind.name,
  fresh: (common) => ({ kind: 'link', ...common, afterMinutes: 10 }),
  sentence: ({ afterMinutes }) => linkKind.sentence(duration(afterMinutes * 60)),
  Fields,
}

function Fields({ rule, set }: FieldsProps<Rule>) {
  return (
    <DurationField
      label={alertTexts.after}
      minutes={rule.afterMinutes}
      min={1}
      set={(afterMinutes) => set({ afterMinutes })}
    />
  )
}
