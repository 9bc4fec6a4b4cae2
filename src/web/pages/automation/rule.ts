import type { InferRequestType, InferResponseType } from 'hono/client'
import type { api } from '../../api.ts'

export type Automation = InferResponseType<typeof api.automation.$get>['automations'][number]
export type Rule = Automation['rule']
/** A rule as the API returns it. */
export type NewRule = InferRequestType<typeof api.automation.$post>['json']
export type DryRun = Extract<InferResponseType<(typeof api.automation)['dry-run']['$post']>, { messages: unknown }>
/** An example message. */
export type Sample = NonNullable<InferRequestType<(typeof api.automation)['dry-run']['$post']>['json']['sample']>

export function nodeIdOf(nodeNum: number): string {
  return `!${nodeNum.toString(16).padStart(8, '0')}`
}
