import * as z from 'zod'
import { isNameOf } from '../../../shared/names.ts'
import { common, type CommonRule } from '../kinds/fields.ts'
import { KIND_SCHEMAS, kindOf } from '../kinds/kinds.ts'

/** A rule as it is stored. */
export const alertRuleSchema = z
  .discriminatedUnion('kind', KIND_SCHEMAS)
  .meta({ id: 'AlertRule', description: 'What is watched, and where alerts are sent' })
export type AlertRule = z.infer<typeof alertRuleSchema>

/** A rule to be saved or previewed. */
export const newAlertRuleSchema = alertRuleSchema.superRefine((rule, issues) => {
  for (const { path, message } of kindOf(rule.kind).problemsOf?.(rule) ?? []) {
    issues.addIssue({ code: 'custom', path: [path], message })
  }
})

/** The rule of a row; null if it is damaged or was written by another version. */
export function parseRule(text: string): AlertRule | null {
  try {
    return newAlertRuleSchema.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}

/** What a rule watches, without its notifications: a change of it ends its alerts. */
export function watchedBy(rule: AlertRule): string {
  return JSON.stringify(Object.entries(rule).filter(([name]) => !isNameOf(common, name)))
}

/** Whether this node is silenced now. */
export function isSilenced(rule: CommonRule, nodeNum: number | null, now: number): boolean {
  if (rule.silencedUntil !== null && now < rule.silencedUntil) return true
  return rule.silencedNodes.some(({ node, until }) => node === nodeNum && now < until)
}
