import { type KindName, type OwnDraft, type OwnDrafts, ownDrafts, viewOf } from './kinds/kinds.ts'
import type { Common } from './kinds/kind.ts'
import type { NewRule, Rule } from './rule.ts'

/** All fields of the form. Fields of one kind keep their values while another kind is shown. */
export type Draft = {
  readonly kind: KindName
  readonly name: string
  readonly enabled: boolean
  readonly timeZone: string
  readonly isQuiet: boolean
  readonly quietFrom: string
  readonly quietTo: string
  readonly own: OwnDrafts
}

/** A new rule, off. */
export function emptyDraft(kind: KindName): Draft {
  return {
    kind,
    name: '',
    enabled: false,
    timeZone: ownTimeZone(),
    isQuiet: false,
    quietFrom: '22:00',
    quietTo: '07:00',
    own: ownDrafts(),
  }
}

function ownTimeZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'
}

export function draftOf(rule: Rule): Draft {
  const { kind, name, enabled, timeZone, quietHours } = rule
  const quiet = quietHours === null ? {} : { isQuiet: true, quietFrom: quietHours.from, quietTo: quietHours.to }
  return withOwn({ ...emptyDraft(kind), name, enabled, timeZone, ...quiet }, viewOf(kind).draftOf(rule))
}

/** A draft with other settings of its kind. */
export function withOwn(draft: Draft, changes: Partial<OwnDraft>): Draft {
  const { kind, own } = draft
  return { ...draft, own: { ...own, [kind]: { ...own[kind], ...changes } } }
}

/** The form's content, valid or not, because the service reports errors. */
export function ruleOf({ kind, own, ...draft }: Draft): NewRule {
  const common: Common = {
    name: draft.name.trim(),
    enabled: draft.enabled,
    timeZone: draft.timeZone,
    quietHours: draft.isQuiet ? { from: draft.quietFrom, to: draft.quietTo } : null,
  }
  return viewOf(kind).ruleOf(own[kind], common)
}

/**
 * The part of a draft that can be tried. `isWhole` false: placeholders replace missing fields, but its times are valid.
 */
export type Tryable = { readonly rule: NewRule; readonly isWhole: boolean }

/** Empty fields are missing rather than wrong. Null: the draft cannot be tried yet. */
export function tryableOf(draft: Draft): Tryable | null {
  const { isWhole, standIn } = viewOf(draft.kind)
  if (isWhole(draft.own[draft.kind])) return { rule: ruleOf(draft), isWhole: true }
  return standIn === null ? null : { rule: ruleOf(withOwn(draft, standIn)), isWhole: false }
}
