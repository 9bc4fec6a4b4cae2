import { matchesFolded } from '../../automation/kinds/matcher.ts'
import { cleanText } from '../names.ts'
import type { AlertRuleOf } from '../rules/rule.ts'

/** A text as the rules evaluate it. */
export type Text = {
  readonly from: number
  readonly channel: number
  /** It is a direct message. */
  readonly direct: boolean
  readonly text: string
  /** Result of `foldText`, computed once for all rules. */
  readonly folded: string
}

/** Whether a text matches the rule. */
export function isWanted({ match, from, channels, direct }: AlertRuleOf<'message'>, said: Text): boolean {
  if (said.direct ? !direct : channels !== 'all' && !channels.includes(said.channel)) return false
  if (from !== null && !from.includes(said.from)) return false
  return match === null || matchesFolded(match, said.folded)
}

export function quote(name: string, { text, direct, channel }: Omit<Text, 'folded'>): string {
  const where = direct ? 'in a direct message' : `on channel ${channel}`
  return `${name} ${where}: “${cleanText(text, 240)}”`
}
