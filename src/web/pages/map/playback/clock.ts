import type { TimeSpan } from '../../../state/range.ts'

/** How many times as fast as it happened. */
export const SPEEDS = [1, 10, 60, 300, 600] as const
export type Speed = (typeof SPEEDS)[number]

/** A range should last about this long. */
const LENGTH_MS = 150_000

/** The slowest speed at which a range does not take too long. */
export function usualSpeed({ from, to }: TimeSpan): Speed {
  return SPEEDS.find((speed) => (to - from) / speed <= LENGTH_MS) ?? 600
}

/** The moment after some time of playing, in milliseconds; `isOver`: the range ends there. */
export function moved(
  at: number,
  { passed, speed, span }: { readonly passed: number; readonly speed: number; readonly span: TimeSpan },
): { readonly at: number; readonly isOver: boolean } {
  const next = at + passed * speed
  return next >= span.to ? { at: span.to, isOver: true } : { at: Math.max(span.from, next), isOver: false }
}

/** The step of a slider over the range, in milliseconds: whole seconds. */
export function sliderStep({ from, to }: TimeSpan): number {
  return Math.max(1, Math.round((to - from) / 1_000_000)) * 1000
}

/** The moment in an address, within the range; null: there is none in it. */
export function readMoment(text: string | null, { from, to }: TimeSpan): number | null {
  const at = text !== null && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  return at >= from && at <= to ? at : null
}
