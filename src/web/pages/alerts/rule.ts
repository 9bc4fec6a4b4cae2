import type { InferRequestType, InferResponseType } from 'hono/client'
import { api } from '../../api.ts'

export type NewRule = InferRequestType<typeof api.alerts.rules.$post>['json']
export type ShownRule = InferResponseType<typeof api.alerts.rules.$get, 200>['rules'][number]
export type AlertKind = NewRule['kind']
export type RuleOf<K extends AlertKind> = Extract<NewRule, { kind: K }>
/** An area that a rule watches. */
export type Shape = NonNullable<RuleOf<'area'>['shape']>
