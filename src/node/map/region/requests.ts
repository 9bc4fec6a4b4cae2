import { nextTurn } from '../../../app/base/pacing/next-turn.ts'
import type { Contents } from './contents.ts'

/** Bytes between two wanted stretches that are read along, instead of another request. */
export const MAX_GAP = 32 * 1024
export const MAX_REQUEST_BYTES = 4 * 1024 * 1024

/** One request for tiles of the planet. */
export type TileRequest = {
  /** Within the tiles of the planet. */
  readonly offset: number
  readonly length: number
  /** The contents within it, in the order of their places. */
  readonly contents: readonly number[]
}

/** The requests for all contents, always the same ones in the same order. */
export function* requestsFor(contents: Contents): Generator<TileRequest> {
  let [offset, end] = [0, 0]
  let within: number[] = []
  for (const content of contents.inReadingOrder()) {
    const from = contents.sourceOf(content)
    const to = from + contents.lengthOf(content)
    const isBeside = from >= offset && from - end <= MAX_GAP && Math.max(end, to) - offset <= MAX_REQUEST_BYTES
    if (within.length > 0 && !isBeside) {
      yield { offset, length: end - offset, contents: within }
      within = []
    }
    if (within.length === 0) [offset, end] = [from, to]
    within.push(content)
    end = Math.max(end, to)
  }
  if (within.length > 0) yield { offset, length: end - offset, contents: within }
}

/** Contents that are counted before other work gets its turn. */
const SLICE = 5000

/** Bytes of all requests. */
export async function requestedBytes(contents: Contents): Promise<number> {
  let bytes = 0
  let counted = 0
  for (const { length, contents: within } of requestsFor(contents)) {
    bytes += length
    counted += within.length
    if (counted < SLICE) continue
    counted = 0
    await nextTurn()
  }
  return bytes
}
