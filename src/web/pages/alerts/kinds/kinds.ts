import type { Resource } from '../../../../shared/access/resources.ts'
import { ALERT_NEEDS } from '../../../../shared/alerts/alert-needs.ts'
import { namesOf } from '../../../../shared/names.ts'
import { can, isAdmin } from '../../../state/session.ts'
import type { AlertKind, NewRule, RuleOf } from '../rule.ts'
import { area } from './area.tsx'
import { backup } from './backup.tsx'
import { finding } from './finding.tsx'
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
  finding,
  link,
  backup,
  retention,
  sign_in: signIn,
} satisfies { [Kind in AlertKind]: KindView<RuleOf<Kind>> }

/** Whether the reader may have rules of a kind: they must see what it watches. */
export function mayWatch(kind: AlertKind): boolean {
  const needs = ALERT_NEEDS[kind]
  return needs === 'admin' ? isAdmin.value : needs.every((resource: Resource) => can(resource, 'read'))
}

/** The kinds that the reader may have, in the order in which they are offered. One needs no permission. */
export function offeredKinds(): readonly AlertKind[] {
  return namesOf(KINDS).filter(mayWatch)
}

// A kind's methods may take narrower parameters: they only get rules of their own kind.
export function viewOf(kind: AlertKind): KindView<NewRule> {
  return KINDS[kind]
}

/** A rule as a sentence. */
export function sentence(rule: NewRule): string {
  return viewOf(rule.kind).sentence(rule)
}
