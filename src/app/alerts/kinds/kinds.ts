import type { AlertKind } from '../../../shared/alerts/alert-kinds.ts'
import { namesOf } from '../../../shared/names.ts'
import { area } from './area.ts'
import { backup } from './backup.ts'
import type { CommonRule } from './fields.ts'
import { key } from './key.ts'
import type { Kind } from './kind.ts'
import { link } from './link.ts'
import { message } from './message.ts'
import { metric } from './metric.ts'
import { nodeNew } from './node-new.ts'
import { nodeRestarted } from './node-restarted.ts'
import { nodeSilent } from './node-silent.ts'
import { signIn } from './sign-in.ts'

/** The implementation of each kind of rule. */
const KINDS = {
  node_silent: nodeSilent,
  metric,
  node_new: nodeNew,
  node_restarted: nodeRestarted,
  area,
  message,
  key,
  link,
  backup,
  sign_in: signIn,
} satisfies Record<AlertKind, object>
type Kinds = typeof KINDS

const [first, ...others] = namesOf(KINDS)
const schemaOf = <Name extends keyof Kinds>(name: Name): Kinds[Name]['schema'] => KINDS[name].schema

/** The schemas of the rules of all kinds. */
export const KIND_SCHEMAS = [schemaOf(first), ...others.map(schemaOf)] as const

// A kind's methods may take narrower parameters: they only get rules of their own kind.
export function kindOf(kind: AlertKind): Kind<CommonRule> {
  return KINDS[kind]
}
