/** Which part of a full slice the next one may be: above 0, at most 1. */
export type Share = () => number

/** A full slice each time: for a database that many can write to at once. */
export const wholeSlices: Share = () => 1

/** How long a slice should hold the one writer, in milliseconds: ingest and requests wait for it. */
const AIM_MS = 15
const LEAST = 0.01

/** The first slice on storage that nobody has measured yet. */
export const FIRST_SHARE = 0.1

/**
 * The share after one that took `tookMs`: smaller at once when that was long, larger step by step when it was short. An
 * SD card takes ten times as long as a disk, and the same card differs from minute to minute.
 */
export function nextShare(share: number, tookMs: number): number {
  const fitting = tookMs > 0 ? AIM_MS / tookMs : Number.POSITIVE_INFINITY
  return Math.min(1, Math.max(LEAST, share * Math.min(fitting, 2)))
}

/** So many of `full`, at least one. */
export function partOf(full: number, share: number): number {
  return Math.max(1, Math.floor(full * share))
}
