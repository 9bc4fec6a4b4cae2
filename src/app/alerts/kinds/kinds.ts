import { isNameOf, namesOf } from '../../../shared/names.ts'
import { area } from './area.ts'
import { backup } from './backup.ts'
import type { CommonRule } from './fields.ts'
import { finding } from './finding/finding.ts'
import { key } from './key.ts'
import type { Kind } from './kind.ts'
import { link } from './link.ts'
import { message } from './message.ts'
import { metric } from './metric.ts'
import { nodeNew } from './node-new.ts'
import { nodeRestarted } from './node-restarted.ts'
import { nodeSilent } from './node-silent.ts'
import { retention } from './retention.ts'
import { signIn } from './sign-in.ts'

/** The implementation of each kind of rule. The only list of the kinds: the page has a form for each. */
const KINDS = {
  node_silent: nodeSilent,
  metric,
  node_new: nodeNew,
  node_restarted: nodeRestarted,
  area,
  message,
  key,
  finding,
  link,
  backup,
  retention,
  sign_in: signIn,
}
type Kinds = typeof KINDS
export type AlertKind = keyof Kinds
export const ALERT_KINDS = namesOf(KINDS)

const [first, ...others] = ALERT_KINDS
const schemaOf = <Name extends keyof Kinds>(name: Name): Kinds[Name]['schema'] => KINDS[name].schema

/** The schemas of the rules of all kinds. */
export const KIND_SCHEMAS = [schemaOf(first), ...others.map(schemaOf)] as const

/** False: only another version has this kind. */
export function isAlertKind(kind: string): kind is AlertKind {
  return isNameOf(KINDS, kind)
}

// A kind's methods may take narrower parameters: they only get rules of their own kind.
export function kindOf(kind: AlertKind): Kind<CommonRule> {
  return KINDS[kind]
}
