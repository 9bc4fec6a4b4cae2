import type { JSX } from 'preact'
import type { NewRule } from '../rule.ts'

/** The initial values of a new rule of any kind. */
export type Common = { readonly name: string; readonly destinations: number[] }

export type FieldsProps<Rule> = { readonly rule: Rule; set(changes: Partial<Rule>): void }

/** How rules of one kind are shown and edited. Each kind is one file in this folder; `kinds.ts` lists them. */
export type KindView<Rule extends NewRule> = {
  readonly name: string
  /** It is over as soon as it has happened, so nothing can be repeated or end. */
  readonly isEvent?: true
  /** A rule with initial values. */
  fresh(common: Common): Rule
  /** A rule as a sentence. */
  sentence(rule: Rule): string
  /** The fields that only this kind has; null: none. */
  Fields(props: FieldsProps<Rule>): JSX.Element | null
}

export const NoFields = () => null
