/** The forms that a language needs: Polish has four, Spanish, French and Portuguese say large round numbers with another one. */
type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { readonly other: string }

/** Writes a number with the form of a noun that fits it: `2 nodes`. */
export function pluralIn(tag: string, forms: Forms): (n: number) => string {
  const rules = new Intl.PluralRules(tag)
  const format = new Intl.NumberFormat(tag)
  return (n) => `${format.format(n)} ${forms[rules.select(n)] ?? forms.other}`
}

/** Writes numbers as a language does. */
export function numbersIn(tag: string): (n: number) => string {
  const format = new Intl.NumberFormat(tag)
  return (n) => format.format(n)
}
