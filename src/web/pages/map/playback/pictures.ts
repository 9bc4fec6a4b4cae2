import { plain } from '../../../format.ts'
import type { Palette, Token } from '../../../parts/map/colour.ts'
import type { Frame } from '../../../parts/map/sheet.ts'
import type { Node } from '../../../state/mesh/nodes.ts'
import { RELAYS } from '../layers/nodes.ts'
import type { NodeState } from './history.ts'
import { over, pixelOf, type Raster } from './raster.ts'

/** A small finished picture, as pixels or for a canvas: its width and height in pixels of the page. */
export type Picture = { readonly width: number; readonly height: number } & (
  | { readonly raster: Raster; readonly image: null }
  | { readonly raster: null; readonly image: ImageBitmap }
)

/** Each is drawn once for a scheme of colours and copied from then on: thousands are, in each frame. */
export type Pictures = {
  node(node: Node, state: NodeState): Picture
  /** What stands below a node. */
  name(node: Node): Picture
  /** A text in a frame. */
  words(text: string): Picture
}

type Pen = OffscreenCanvasRenderingContext2D

const NAME_FONT = '600 12px system-ui, sans-serif'
const NAME_HEIGHT = 18
const WORDS_FONT = '13px system-ui, sans-serif'
const WORDS_HEIGHT = 22
const PADDING = 6
/** Letters of a text. */
const MAX_LETTERS = 40
/** Pictures that are kept. */
const MAX_KEPT = 500

/** Pixels of a sheet for each pixel of the page. It keeps them on another screen, until the map changes. */
export const sharpness = ({ pen }: Pick<Frame, 'pen'>): number => pen.getTransform().a

/** Returns the pictures in the current colours, for a sheet. */
export function createPictures(palette: () => Palette): (frame: Pick<Frame, 'pen'>) => Pictures {
  let known = new Map<string, Picture>()
  let colours = palette()
  let times = 1
  const ruler = new OffscreenCanvas(1, 1).getContext('2d')
  const widthOf = (text: string, font: string) => {
    if (ruler === null) return 0
    ruler.font = font
    return Math.ceil(ruler.measureText(text).width)
  }
  const kept = (key: string, make: () => Picture) => {
    const found = known.get(key) ?? make()
    if (known.size >= MAX_KEPT) known.clear()
    known.set(key, found)
    return found
  }
  const pictures: Pictures = {
    node: ({ isLocal, role }, state) => {
      const isRelay = RELAYS.has(role ?? '')
      return kept(`node ${state} ${isLocal} ${isRelay}`, () => drawNode(colours, state, isLocal, isRelay, times))
    },
    name: ({ shortName, nodeId }) => {
      const name = shortName ?? nodeId.slice(-4)
      return kept(`name ${name}`, () => drawName(colours, name, widthOf(name, NAME_FONT), times))
    },
    words: (text) =>
      kept(`words ${text}`, () => {
        const words = shortened(plain(text))
        return drawWords(colours, words, widthOf(words, WORDS_FONT), times)
      }),
  }
  return (frame) => {
    const current = sharpness(frame)
    if (colours !== palette() || times !== current) known = new Map()
    colours = palette()
    times = current
    return pictures
  }
}

function draw(width: number, height: number, times: number, paint: (pen: Pen) => void): Picture {
  const canvas = new OffscreenCanvas(width * times, height * times)
  const pen = canvas.getContext('2d')
  pen?.scale(times, times)
  if (pen !== null) paint(pen)
  return { raster: null, image: canvas.transferToImageBitmap(), width, height }
}

const STATE_TOKENS = { 0: '--age-0', 1: '--age-1', 2: '--age-2', silent: '--bad' } as const satisfies Record<
  NodeState,
  Token
>

/** Its shape is computed, because nothing can be read from a canvas everywhere. */
function drawNode(colours: Palette, state: NodeState, isLocal: boolean, isRelay: boolean, times: number): Picture {
  const radius = isRelay ? 8 : 6
  const reach = radius * 1.4
  // No larger than it must be, and even, so that its middle lies between pixels.
  const middle = isLocal ? Math.ceil(reach + 1.5) : radius + 1
  const size = 2 * middle * times
  const pixels = new Int32Array(size * size)
  // Not everybody sees colours: those that are not heard are hollow, and a silent one is crossed out.
  const isHollow = state === 2 || state === 'silent'
  const [own, surface] = [pixelOf(colours(STATE_TOKENS[state])), pixelOf(colours('--surface'))]
  const [fill, edge] = isHollow ? [surface, own] : [own, surface]
  /** How much of a pixel is covered whose middle is so far inside of an edge. */
  const covered = (inside: number) => Math.round(255 * Math.max(0, Math.min(1, 0.5 + inside * times)))
  for (let index = 0; index < pixels.length; index++) {
    const x = ((index % size) + 0.5) / times - middle
    const y = (Math.floor(index / size) + 0.5) / times - middle
    const inside = isLocal ? (reach - Math.abs(x) - Math.abs(y)) * Math.SQRT1_2 : radius - Math.hypot(x, y)
    const filled = over(0, fill, covered(inside))
    const edged = over(filled, edge, covered(1 - Math.abs(inside)))
    const [falling, rising] = [Math.abs(x - y) * Math.SQRT1_2, Math.abs(x + y) * Math.SQRT1_2]
    const cross = Math.min(1 - Math.min(falling, rising), 3 * Math.SQRT2 - Math.max(falling, rising))
    pixels[index] = state === 'silent' ? over(edged, own, covered(cross)) : edged
  }
  return { raster: { pixels, width: size, height: size }, image: null, width: 2 * middle, height: 2 * middle }
}

function drawName(colours: Palette, name: string, wide: number, times: number): Picture {
  // Even, and with room for the edge.
  const middle = Math.ceil(wide / 2) + 2
  return draw(2 * middle, NAME_HEIGHT, times, (pen) => {
    pen.font = NAME_FONT
    pen.textAlign = 'center'
    pen.textBaseline = 'top'
    pen.lineWidth = 3
    pen.lineJoin = 'round'
    pen.strokeStyle = colours('--surface')
    pen.fillStyle = colours('--text')
    pen.strokeText(name, middle, 2)
    pen.fillText(name, middle, 2)
  })
}

function drawWords(colours: Palette, words: string, wide: number, times: number): Picture {
  return draw(wide + 2 * PADDING + 2, WORDS_HEIGHT, times, (pen) => {
    pen.font = WORDS_FONT
    pen.textBaseline = 'middle'
    pen.fillStyle = colours('--raised')
    pen.strokeStyle = colours('--accent')
    pen.beginPath()
    pen.roundRect(1, 1, wide + 2 * PADDING, WORDS_HEIGHT - 2, 6)
    pen.fill()
    pen.stroke()
    pen.fillStyle = colours('--text')
    pen.fillText(words, 1 + PADDING, WORDS_HEIGHT / 2 + 0.5)
  })
}

function shortened(text: string): string {
  const letters = [...text]
  return letters.length > MAX_LETTERS ? `${letters.slice(0, MAX_LETTERS - 1).join('')}…` : text
}
