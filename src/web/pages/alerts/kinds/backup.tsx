import { catalog } from '../../../language.ts'
import { duration } from '../../../format.ts'
import { alertTexts } from '../../../strings/alerts.ts'
import type { RuleOf } from '../rule.ts'
import { DurationField } from './duration-field.tsx'
import type { FieldsProps, KindView } from './kind.ts'

type Rule = RuleOf<'backup'>

const AFTER_HOURS = 48

export const backupKind = catalog('backupKind', {
  name: 'Backups fail',
  sentence: (hours: string) => `Tell me when a backup fails, or none succeeds for ${hours}`,
})

export const backup: KindView<Rule> = {
  name: backupKind.name,
  fresh: (common) => ({ kind: 'backup', ...common, afterHours: AFTER_HOURS }),
  sentence: ({ afterHours = AFTER_HOURS }) => backupKind.sentence(duration(afterHours * 3600)),
  Fields,
}

function Fields({ rule, set }: FieldsProps<Rule>) {
  return (
    <DurationField
      label={alertTexts.after}
      minutes={(rule.afterHours ?? AFTER_HOURS) * 60}
      min={60}
      shortest="hours"
      set={(minutes) => set({ afterHours: Math.round(minutes / 60) })}
    />
  )
}
