import { forEachName, namesOf } from '../../../../shared/names.ts'
import type { Rule } from '../rule.ts'
import { acknowledge } from './acknowledge.tsx'
import { announce } from './announce.tsx'
import type { KindView } from './kind.ts'
import { schedule } from './schedule.tsx'
import { traceroute } from './traceroute.tsx'

/** How each kind of rule is shown and edited. */
const KINDS = { announce, acknowledge, traceroute, schedule } satisfies Record<Rule['kind'], object>

export type KindName = Rule['kind']
/** In the order in which they are offered. */
export const KIND_NAMES: readonly KindName[] = namesOf(KINDS)

/** The fields of one kind's form. */
export type OwnDraft = (typeof KINDS)[keyof typeof KINDS]['empty']
export type OwnDrafts = Readonly<Record<KindName, OwnDraft>>

/** The initial values of the forms of all kinds. */
export function ownDrafts(): OwnDrafts {
  return forEachName(KINDS, (name) => KINDS[name].empty)
}

// A kind's methods may take narrower parameters: they only get rules and drafts of their own kind.
export function viewOf(kind: KindName): KindView<Rule, OwnDraft> {
  return KINDS[kind]
}
