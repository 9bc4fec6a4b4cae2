import { nameOfId } from '../../state/mesh.ts'
import { Card, Facts } from '../../parts/page.tsx'
import { a } from '../../strings/automation.ts'
import type { Channels } from './channels.ts'
import { type Automation, nodeIdOf, type Rule } from './draft.ts'
import { Last, Next } from './automation.tsx'
import { summary } from './words.ts'

type Fact = readonly [name: string, value: string | null]

/** A rule for those who may not change it. */
export function RuleFacts({ automation, channels }: { automation: Automation; channels: Channels }) {
  const { rule, updatedBy, blockedBy, runs } = automation
  const { quietHours, timeZone } = rule
  return (
    <Card title={a.rule}>
      <Facts
        entries={[
          [a.kind, a.kinds[rule.kind]],
          [a.enabled, rule.enabled ? a.on : a.off],
          [a.summary, summary(rule, channels)],
          ...factsOf(rule),
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

function factsOf(rule: Rule): readonly Fact[] {
  switch (rule.kind) {
    case 'announce':
      return [[a.text, rule.text]]
    case 'acknowledge':
      return [
        [a.mode, a.modes[rule.match.mode]],
        [a.answer, rule.answer.kind === 'text' ? rule.answer.text : rule.answer.emoji],
      ]
    case 'traceroute':
      return []
    case 'schedule':
      return rule.action.kind === 'text'
        ? [
            [a.text, rule.action.text],
            [a.to, rule.action.to === null ? a.everybody : nameOfId(nodeIdOf(rule.action.to))],
          ]
        : []
    default:
      return rule satisfies never
  }
}
