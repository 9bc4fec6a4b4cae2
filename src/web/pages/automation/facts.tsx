import { Card, Facts } from '../../parts/page.tsx'
import { a } from '../../strings/automation.ts'
import type { Channels } from './channels.ts'
import { Last, Next } from './automation.tsx'
import { viewOf } from './kinds/kinds.ts'
import type { Automation } from './rule.ts'
import { summary } from './words.ts'

/** A rule for users who may not change it. */
export function RuleFacts({ automation, channels }: { automation: Automation; channels: Channels }) {
  const { rule, updatedBy, blockedBy, runs } = automation
  const { quietHours, timeZone } = rule
  const view = viewOf(rule.kind)
  return (
    <Card title={a.rule}>
      <Facts
        entries={[
          [a.kind, view.name],
          [a.enabled, rule.enabled ? a.on : a.off],
          [a.summary, summary(rule, channels)],
          ...view.facts(rule),
          [a.quiet, quietHours === null ? a.noQuiet : `${quietHours.from} – ${quietHours.to}`],
          [a.timeZone, timeZone],
          [a.columns.next, <Next automation={automation} />],
          [a.columns.last, <Last automation={automation} />],
          [a.holdsBack, !runs ? a.neverRuns : blockedBy === null ? null : a.reasons[blockedBy]],
          [a.changedBy, updatedBy],
        ]}
      />
    </Card>
  )
}
