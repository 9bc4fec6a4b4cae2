/** How large the next slice may be, as a share of a full one: above 0, and at most 1 where it holds the event loop. */
export type Share = () => number

/** Always full slices: for a database with several concurrent writers. */
export const wholeSlices: Share = () => 1

/** How long a slice should hold the only writer, in milliseconds: ingest and requests wait for it. */
const AIM_MS = 8
/** Slower storage gets longer slices: with fewer rows than this share, work would hardly go on. */
const LEAST = 0.005

/** The first slice, before the storage has been measured. */
export const FIRST_SHARE = 0.1

/**
 * The share after a slice that took `tookMs`: much smaller at once if that was long, gradually larger if it was short.
 * An SD card takes ten times as long as a disk, and its speed varies from minute to minute.
 */
export function nextShare(share: number, tookMs: number): number {
  const fitting = tookMs > 0 ? AIM_MS / tookMs : Number.POSITIVE_INFINITY
  return Math.min(1, Math.max(LEAST, share * Math.min(fitting, 2)))
}

/** This share of `full`, at least one. */
export function partOf(full: number, share: number): number {
  return Math.max(1, Math.floor(full * share))
}
