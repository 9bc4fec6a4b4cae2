import { namesOf } from '../../../../shared/names.ts'
import type { AlertKind, NewRule, RuleOf } from '../rule.ts'
import { area } from './area.tsx'
import { backup } from './backup.tsx'
import { key } from './key.ts'
import type { KindView } from './kind.ts'
import { link } from './link.tsx'
import { message } from './message.tsx'
import { metric } from './metric.tsx'
import { nodeNew } from './node-new.ts'
import { nodeRestarted } from './node-restarted.ts'
import { nodeSilent } from './node-silent.tsx'
import { retention } from './retention.ts'
import { signIn } from './sign-in.ts'

/** How each kind of rule is shown and edited. */
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
  retention,
  sign_in: signIn,
} satisfies { [Kind in AlertKind]: KindView<RuleOf<Kind>> }

/** In the order in which they are offered. */
export const ALERT_KINDS: readonly AlertKind[] = namesOf(KINDS)

// A kind's methods may take narrower parameters: they only get rules of their own kind.
export function viewOf(kind: AlertKind): KindView<NewRule> {
  return KINDS[kind]
}

/** A rule as a sentence. */
export function sentence(rule: NewRule): string {
  return viewOf(rule.kind).sentence(rule)
}
