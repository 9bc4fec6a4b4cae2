import { countTextBytes } from '../../meshtastic/link/to-radio.ts'
import { TOKEN, type TokenName, widestOf } from '../../shared/automation/tokens.ts'

/** Stands for an unknown value. */
const UNKNOWN = '?'

/** Values by token; null: unknown. */
export type TokenValues = { readonly [Name in TokenName]?: string | number | null }

/** The unknown tokens in a text, as written. */
export function unknownTokens(template: string, known: readonly string[]): string[] {
  const all = Array.from(template.matchAll(TOKEN))
  const unknown = all.flatMap(([written, name = '']) => (known.includes(name) ? [] : [written]))
  return [...new Set(unknown)]
}

/** The text to send. Values wider than the widest expected one, such as long names, are cut. */
export function render(template: string, values: TokenValues): string {
  const known = new Map(Object.entries(values))
  return template.replace(TOKEN, (written, name: string) => {
    const widest = widestOf(name)
    if (widest === null) return written
    return fit(String(known.get(name) ?? UNKNOWN), countTextBytes(widest))
  })
}

/** Removes control characters, and cuts the value to this number of bytes, after a whole character. */
function fit(value: string, maxBytes: number): string {
  let fitted = ''
  let bytes = 0
  for (const character of value.toWellFormed().replaceAll(/\p{Cc}/gu, '')) {
    bytes += countTextBytes(character)
    if (bytes > maxBytes) break
    fitted += character
  }
  return fitted === '' ? UNKNOWN : fitted
}
