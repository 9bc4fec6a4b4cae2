/** Begins and ends a part of a text that has its own direction, by its first letter. */
export const ISOLATE = '\u2068'
export const ISOLATE_END = '\u2069'

/** A part with its own direction, which ends where it should. */
export const ISOLATED = /(\u2068[^\u2066-\u2069]*\u2069)/
/** Letters of the scripts that are written from right to left. */
const TURNED = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]|[\ud802\ud803\ud83a\ud83b]/
/** Digits too: from right to left, 10–20 would become 20–10. */
const NOT_TURNED = /(?![\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc])[\p{L}\p{N}]/u
/** One run of letters and digits keeps together in every sentence. */
const WORD = /^\w*$/

/** Whether a text could be drawn in the wrong order on a page of this direction. */
export const needsIsolation = (text: string, isRightToLeft: boolean): boolean =>
  (isRightToLeft ? NOT_TURNED : TURNED).test(text)

/** The same texts, in whose sentences each name keeps its own direction and does not affect the words around it. */
export function isolateNames<T>(texts: T, isRightToLeft: boolean): T
export function isolateNames(texts: unknown, isRightToLeft: boolean): unknown {
  const isolated = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(isolated)
    if (typeof value !== 'string' || WORD.test(value)) return value
    // In a sentence within a sentence, names are isolated already.
    const rest = value.split(ISOLATED).filter((part) => !ISOLATED.test(part))
    if (!needsIsolation(rest.join(''), isRightToLeft)) return value
    return ISOLATE + value.replaceAll(/[\u2066-\u2069]/g, '') + ISOLATE_END
  }
  const within = (value: unknown): unknown => {
    if (typeof value === 'function')
      return (...values: readonly unknown[]) => within(Reflect.apply(value, null, values.map(isolated)))
    if (Array.isArray(value)) return value.map(within)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, within(each)]))
  }
  return within(texts)
}
