import type { Message } from '../../state/mesh/nodes.ts'
import { isWall } from '../../state/wall.ts'

/** Which texts are drawn: their places in the list of all, without the one at `end`. */
export type Span = { readonly first: number; readonly end: number }
/** The same by the ids of the first and the last one: their places change when earlier ones are loaded or dropped. */
export type HeldSpan = { readonly firstId: number; readonly lastId: number }

/** The height of a short text. */
const ROW_PX = 60
/** What is drawn beyond the view, in heights of it: more is added below `LEAST`, and removed beyond `MOST`. */
const LEAST = 1
const MOST = 2

const MAX_ON_WALL = 20

/** The number of rows that fill the window several times. */
function manyRows(): number {
  return isWall.peek() ? MAX_ON_WALL : 3 * Math.ceil(innerHeight / ROW_PX)
}

export function latestSpan(texts: readonly Message[]): Span {
  return { first: Math.max(0, texts.length - manyRows()), end: texts.length }
}

export function firstSpan(texts: readonly Message[]): Span {
  return { first: 0, end: Math.min(texts.length, manyRows()) }
}

/** The rows around one of them. */
export function spanAround(texts: readonly Message[], index: number): Span {
  const half = Math.ceil(manyRows() / 2)
  return { first: Math.max(0, index - half), end: Math.min(texts.length, index + half) }
}

export function hold(texts: readonly Message[], { first, end }: Span): HeldSpan {
  return { firstId: texts[first]?.id ?? 0, lastId: texts[end - 1]?.id ?? 0 }
}

/** Where the held texts are now; null if none of them is there any more. */
export function find(texts: readonly Message[], { firstId, lastId }: HeldSpan): Span | null {
  const first = texts.findIndex(({ id }) => id >= firstId)
  const end = texts.findLastIndex(({ id }) => id <= lastId) + 1
  return first >= 0 && first < end ? { first, end } : null
}

/** The same with more rows before or after them. */
export function widen({ first, end }: Span, total: number, direction: -1 | 1): Span {
  const more = manyRows()
  return direction < 0 ? { first: Math.max(0, first - more), end } : { first, end: Math.min(total, end + more) }
}

/** The rows to draw when those of `span` are in the box, of `total` texts. */
export function extend(box: HTMLElement, span: Span, total: number): Span {
  const view = box.getBoundingClientRect()
  const rows = [...box.querySelectorAll('li[id]')].map((row) => row.getBoundingClientRect())
  const [top, bottom] = [rows.at(0)?.top, rows.at(-1)?.bottom]
  if (top === undefined || bottom === undefined || rows.length !== span.end - span.first) return span
  const step = Math.ceil((1.5 * view.height) / ROW_PX)
  const isShortAbove = span.first > 0 && view.top - top < LEAST * view.height
  const isShortBelow = span.end < total && bottom - view.bottom < LEAST * view.height
  if (!isShortAbove && !isShortBelow) return span
  const farAbove = rows.filter((row) => row.bottom < view.top - MOST * view.height).length
  const farBelow = rows.filter((row) => row.top > view.bottom + MOST * view.height).length
  return {
    first: isShortAbove ? Math.max(0, span.first - step) : span.first + farAbove,
    end: isShortBelow ? Math.min(total, span.end + step) : span.end - farBelow,
  }
}
