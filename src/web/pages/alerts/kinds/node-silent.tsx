import { catalog } from '../../../language.ts'
import { HEARD_BY, SILENT_MINUTES } from '../../../../shared/alerts/alert-kinds.ts'
import { Select } from '../../../parts/form/field.tsx'
import { duration } from '../../../format.ts'
import { alertTexts } from '../../../strings/alerts.ts'
import type { RuleOf } from '../rule.ts'
import { DurationField } from './duration-field.tsx'
import { WatchedFields, who } from './fields.tsx'
import type { FieldsProps, KindView } from './kind.ts'

type Rule = RuleOf<'node_silent'>

export const nodeSilentKind = catalog('nodeSilentKind', {
  name: 'A node falls silent',
  any: (who: string, time: string) => `Tell me when ${who} was not heard for ${time}`,
  radios: (who: string, time: string) => `Tell me when ${who} was not heard by radio for ${time}`,
})

export const nodeSilent: KindView<Rule> = {
  name: nodeSilentKind.name,
  fresh: (common) => ({ kind: 'node_silent', ...common, nodes: { kind: 'favorites' }, afterMinutes: 120 }),
  sentence: ({ nodes, afterMinutes, heardBy }) =>
    nodeSilentKind[heardBy ?? 'any'](who(nodes), duration(afterMinutes * 60)),
  Fields,
}

function Fields({ rule, set }: FieldsProps<Rule>) {
  return (
    <>
      <WatchedFields rule={rule} set={set} />
      <DurationField
        label={alertTexts.after}
        minutes={rule.afterMinutes}
        {...SILENT_MINUTES}
        set={(afterMinutes) => set({ afterMinutes })}
      />
      <Select
        label={alertTexts.heardBy}
        value={rule.heardBy ?? 'any'}
        options={HEARD_BY.map((way) => [way, alertTexts.heardByWays[way]] as const)}
        onChange={(heardBy) => set({ heardBy })}
      />
    </>
  )
}
