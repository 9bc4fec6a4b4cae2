import type { JSX } from 'preact'
import type { TokenName } from '../../../../shared/automation/tokens.ts'
import type { Channels } from '../channels.ts'
import type { Form } from '../fields.tsx'
import type { NewRule, Rule, Sample } from '../rule.ts'

export type RuleOf<Kind> = Extract<Rule, { kind: Kind }>
/** Fields of every kind of rule. */
export type Common = Pick<NewRule, 'name' | 'enabled' | 'timeZone' | 'quietHours'>
export type Fact = readonly [name: string, value: string]

/**
 * How rules of one kind are shown and edited. Each kind is one file in this folder; `kinds.ts` lists them. `Own`
 * contains the fields of its form.
 */
export type KindView<OwnRule, Own> = {
  readonly name: string
  readonly help: string
  /** Tokens that its text may contain. */
  readonly tokens: readonly TokenName[]
  /** The initial values of the form. */
  readonly empty: Own
  draftOf(rule: OwnRule): Partial<Own>
  /** The form's content, valid or not, because the service reports errors. */
  ruleOf(draft: Own, common: Common): NewRule
  /** Whether everything is filled in. */
  isWhole(draft: Own): boolean
  /** Placeholders for empty fields, so that times can be shown; null: there are no times. */
  readonly standIn: Partial<Own> | null
  /** An example message for the dry run. Absent: the rule runs on schedule. */
  sampleOf?(draft: Own): Sample
  Fields(props: { form: Form<Own> }): JSX.Element
  /** A short description of a rule. */
  summary(rule: OwnRule, channels: Channels): readonly string[]
  /** Details that the summary leaves out. */
  facts(rule: OwnRule): readonly Fact[]
}

/** Placeholder for a text. */
export const STAND_IN = '–'
