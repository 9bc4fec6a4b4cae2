import type { JSX } from 'preact'
import type { TokenName } from '../../../../shared/tokens.ts'
import type { Channels } from '../channels.ts'
import type { Form } from '../fields.tsx'
import type { NewRule, Rule, Sample } from '../rule.ts'

export type RuleOf<Kind> = Extract<Rule, { kind: Kind }>
/** What rules of every kind have. */
export type Common = Pick<NewRule, 'name' | 'enabled' | 'timeZone' | 'quietHours'>
export type Fact = readonly [name: string, value: string]

/**
 * How rules of one kind are shown and edited. Each kind is one file in this folder; they are summed in `kinds.ts`. `Own`
 * is what its form asks for.
 */
export type KindView<OwnRule, Own> = {
  readonly name: string
  readonly help: string
  /** Tokens that its text may hold. */
  readonly tokens: readonly TokenName[]
  /** What the form begins with. */
  readonly empty: Own
  draftOf(rule: OwnRule): Partial<Own>
  /** What the form says, right or wrong: the service tells what is wrong with it. */
  ruleOf(draft: Own, common: Common): NewRule
  /** Whether everything is filled in. */
  isWhole(draft: Own): boolean
  /** For what is not filled in, so that the times can be told; null: there are none. */
  readonly standIn: Partial<Own> | null
  /** What somebody might say to try it. Absent: it runs by the clock. */
  sampleOf?(draft: Own): Sample
  Fields(props: { form: Form<Own> }): JSX.Element
  /** A rule in a few words. */
  summary(rule: OwnRule, channels: Channels): readonly string[]
  /** What the summary leaves out. */
  facts(rule: OwnRule): readonly Fact[]
}

/** Stands in for a text. */
export const STAND_IN = '–'
