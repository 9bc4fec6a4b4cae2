import { forEachName, namesOf } from '../../../../shared/names.ts'
import type { RuleKind } from '../../../../shared/rule-kinds.ts'
import type { Rule } from '../rule.ts'
import { acknowledge } from './acknowledge.tsx'
import { announce } from './announce.tsx'
import type { KindView } from './kind.ts'
import { schedule } from './schedule.tsx'
import { traceroute } from './traceroute.tsx'

/** How each kind of rule is shown and edited. */
const KINDS = { announce, acknowledge, traceroute, schedule } satisfies Record<RuleKind, object>

export type KindName = keyof typeof KINDS
/** In the order in which they are offered. */
export const KIND_NAMES = namesOf(KINDS)

/** What the form of one kind asks for. */
export type OwnDraft = (typeof KINDS)[KindName]['empty']
export type OwnDrafts = Readonly<Record<KindName, OwnDraft>>

/** What the forms of all kinds begin with. */
export function ownDrafts(): OwnDrafts {
  return forEachName(KINDS, (name) => KINDS[name].empty)
}

// Parameters of methods may be narrower: a kind gets rules and drafts of its own kind alone.
export function viewOf(kind: KindName): KindView<Rule, OwnDraft> {
  return KINDS[kind]
}
