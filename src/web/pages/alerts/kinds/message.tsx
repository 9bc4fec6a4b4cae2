import { Field } from '../../../parts/form/field.tsx'
import { Switch } from '../../../parts/form/switch.tsx'
import { alertTexts } from '../../../strings/alerts.ts'
import type { RuleOf } from '../rule.ts'
import { split } from './fields.tsx'
import type { FieldsProps, KindView } from './kind.ts'

type Rule = RuleOf<'message'>

export const message: KindView<Rule> = {
  name: alertTexts.kinds.message,
  fresh: (common) => ({ kind: 'message', ...common, direct: true, channels: 'all' }),
  sentence: ({ match }) => `Tell me when somebody says ${match?.words.join(' or ') ?? 'anything'}`,
  Fields,
}

function Fields({ rule, set }: FieldsProps<Rule>) {
  const channels = rule.channels === 'all' || rule.channels === undefined ? '' : rule.channels.join(', ')
  return (
    <>
      <Field
        label={alertTexts.words}
        hint={alertTexts.wordsHint}
        defaultValue={rule.match?.words.join(', ') ?? ''}
        onChange={(event) => {
          const words = split(event.currentTarget.value)
          set({ match: words.length === 0 ? null : { mode: 'word', words } })
        }}
      />
      <Switch checked={rule.direct ?? true} onChange={(direct) => set({ direct })}>
        {alertTexts.direct}
      </Switch>
      <Field
        label={alertTexts.channels}
        hint={alertTexts.channelsHint}
        defaultValue={channels}
        onChange={(event) => {
          const numbers = split(event.currentTarget.value).map(Number)
          set({ channels: numbers.length === 0 ? 'all' : numbers })
        }}
      />
    </>
  )
}
