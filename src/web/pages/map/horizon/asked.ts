import { place } from '../../../router.ts'

/** Metres above ground. */
export const MIN_HEIGHT = 0.5
export const MAX_HEIGHT = 10_000

/** The height of the chosen node's antenna that the page's address names, in metres; null: none, or an impossible one. */
export function askedHeight(): number | null {
  const text = place.value.query.get('antenna') ?? ''
  const height = text === '' ? Number.NaN : Number(text)
  return height >= MIN_HEIGHT && height <= MAX_HEIGHT ? height : null
}
