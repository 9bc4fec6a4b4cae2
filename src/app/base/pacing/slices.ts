import { nextTurn } from './next-turn.ts'
import { partOf, type Share, wholeSlices } from './slice-share.ts'

/** Awaited after each slice of a few milliseconds; returns whether to continue. */
export type Pause = () => Promise<boolean>

/** Lets requests run, and continues to the end. */
export const eachTurn: Pause = async () => {
  await nextTurn()
  return true
}

type Slices = {
  /** Rows of a full slice. */
  readonly full: number
  /** The maximum number of rows in total. */
  readonly atMost?: number | undefined
  /** Awaited between two slices. */
  readonly pause: Pause
  readonly share?: Share
}

/**
 * Works through rows in slices until one is not full. `takeSlice` gets the maximum number of rows, and returns the
 * number it took. Returns the total; `goesOn` is false if `pause` ended the work early.
 */
export async function inSlices(
  takeSlice: (rows: number) => Promise<readonly unknown[]> | readonly unknown[],
  { full, atMost = Number.POSITIVE_INFINITY, pause, share = wholeSlices }: Slices,
): Promise<{ readonly rows: number; readonly goesOn: boolean }> {
  for (let rows = 0; ;) {
    const limit = Math.min(partOf(full, share()), atMost - rows)
    const { length } = limit <= 0 ? [] : await takeSlice(limit)
    rows += length
    if (length < limit || rows >= atMost) return { rows, goesOn: true }
    if (!(await pause())) return { rows, goesOn: false }
  }
}
