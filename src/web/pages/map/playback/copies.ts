import type { Frame } from '../../../parts/map/sheet.ts'
import type { Node } from '../../../state/mesh/nodes.ts'
import type { History, Part } from './history.ts'
import { type Picture, type Pictures, sharpness } from './pictures.ts'
import { wordsAt } from './words.ts'

/** A picture at its place on a sheet. */
type Copy = {
  readonly picture: Picture
  readonly left: number
  readonly top: number
  /** Of a node: its middle, in parts of a pixel. */
  readonly of: { readonly node: Node; readonly x: number; readonly y: number } | null
}
export type Copies = readonly Copy[]

/** Pixels from a node to the name below it, and to its text. */
const NAME_AWAY = 8
const WORDS_AWAY = 13
/** The margin around a sheet in which a node still shows. */
const REACH_PX = 16

export type Shown = { readonly history: History; readonly part: Part; readonly at: number }

/** The nodes of a part. They lie on whole pixels, where copying is several times as fast as between them. */
export function copiesOf(frame: Frame, { history, part, at }: Shown, pictures: Pictures): Copies {
  const { x, y, touches } = frame
  const times = sharpness(frame)
  const found: Copy[] = []
  history.eachNode(part, at, (node, spot, state) => {
    const of = { node, x: x(spot), y: y(spot) }
    if (!touches(of.x, of.y, of.x, of.y, REACH_PX)) return
    const picture = pictures.node(node, state)
    const left = Math.round(of.x * times) / times - picture.width / 2
    const top = Math.round(of.y * times) / times - picture.height / 2
    found.push({ picture, left, top, of })
  })
  return found
}

/** The names below nodes. */
export function namesOf(copies: Copies, pictures: Pictures): Copies {
  return copies.flatMap(({ of, left, top, picture: { width, height } }): Copy[] => {
    if (of === null) return []
    const picture = pictures.name(of.node)
    const [middle, centre] = [left + width / 2, top + height / 2]
    return [{ picture, left: middle - picture.width / 2, top: centre + NAME_AWAY, of: null }]
  })
}

/** The latest texts beside their senders. */
export function wordsOf({ x, y }: Frame, history: History, at: number, speed: number, pictures: Pictures): Copies {
  return Array.from(wordsAt(history, at, speed)).flatMap(([nodeNum, text]): Copy[] => {
    const spot = history.placeOf(nodeNum, at)
    if (spot === null) return []
    const picture = pictures.words(text)
    const [left, top] = [Math.round(x(spot)) + WORDS_AWAY, Math.round(y(spot)) - WORDS_AWAY - picture.height]
    return [{ picture, left, top, of: null }]
  })
}

/** `pixels`: the longest way that a node has moved. */
export type Difference = { readonly isAny: boolean; readonly pixels: number }

export function differenceOf(before: Copies, after: Copies): Difference {
  let isAny = before.length !== after.length
  let pixels = 0
  for (const [index, copy] of after.entries()) {
    const old = before[index]
    isAny ||= old === undefined || old.picture !== copy.picture || old.left !== copy.left || old.top !== copy.top
    if (old?.of === undefined || old.of === null || copy.of === null || old.of.node !== copy.of.node) continue
    pixels = Math.max(pixels, Math.abs(copy.of.x - old.of.x), Math.abs(copy.of.y - old.of.y))
  }
  return { isAny, pixels }
}
