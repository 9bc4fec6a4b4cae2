import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import './page.ts'
import type { Frame } from '../../../src/web/parts/map/sheet.ts'
import { copiesOf } from '../../../src/web/pages/map/playback/copies.ts'
import { createHistory } from '../../../src/web/pages/map/playback/history.ts'
import { createPictures } from '../../../src/web/pages/map/playback/pictures.ts'
import { createSurface } from '../../../src/web/pages/map/playback/surface.ts'
import type { Node } from '../../../src/web/state/mesh/nodes.ts'

// It needs a page, and nothing here needs it.
vi.mock('leaflet', () => ({}))

beforeEach(() => {
  vi.stubGlobal(
    'OffscreenCanvas',
    class {
      getContext = () => null
    },
  )
})
afterEach(() => {
  vi.unstubAllGlobals()
})

/** A sheet whose canvas has so many pixels for each pixel of the page. */
function sheetOf(times: number) {
  const pen = { getTransform: () => ({ a: times, e: 0, f: 0 }) }
  const toPixels = ({ x }: { readonly x: number }) => x
  // Only what is read of a context.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { pen: pen as unknown as Frame['pen'], scale: 1, x: toPixels, y: toPixels, touches: () => true }
}

test('nodes have the size of their sheet, also after the window went to a screen with other pixels', () => {
  const position = { latitude: 50, longitude: 0.5 }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const node = { nodeNum: 1, firstHeard: 0, position, isLocal: false, role: null } as Node
  const history = createHistory({ from: 0, to: 1000 }, [node], { activeMs: 1000, isHeardKnown: false })
  history.settle()
  const pictures = createPictures(() => () => 'rgb(1, 2, 3)')
  const drawn = (times: number, ratio: number) => {
    vi.stubGlobal('devicePixelRatio', ratio)
    const sheet = sheetOf(times)
    const { others, resting } = history.part(500, 500)
    const [copy] = copiesOf(sheet, { history, part: [...others, ...resting], at: 500 }, pictures(sheet))
    if (copy === undefined) throw new Error('Nothing is drawn')
    const middle = copy.left + copy.picture.width / 2
    return { times: (copy.picture.raster?.width ?? 0) / copy.picture.width, isWhole: Number.isInteger(middle) }
  }
  // Its middle is at 128.36: on 128.5 only on a sheet with two pixels for one.
  expect(drawn(1, 2)).toEqual({ times: 1, isWhole: true })
  expect(drawn(2, 1)).toEqual({ times: 2, isWhole: false })
  expect(drawn(1, 2).times).toBe(1)
})

test('on a canvas is what lies there, and little memory beside it', () => {
  let bytes = 0
  const Plain = Int32Array
  // Views of what is there already take nothing.
  const Counted = new Proxy(Plain, {
    construct(target, given: [number]) {
      if (typeof given[0] === 'number') bytes += 4 * given[0]
      return Reflect.construct(target, given)
    },
  })
  const [width, height] = [3840, 2160]
  const canvas = new Plain(width * height)
  vi.stubGlobal('Int32Array', Counted)
  vi.stubGlobal(
    'ImageData',
    class {
      readonly data: Uint8ClampedArray
      readonly width: number
      constructor(wide: number, high: number) {
        this.width = wide
        this.data = new Uint8ClampedArray(4 * wide * high)
        bytes += this.data.byteLength
      }
    },
  )
  type Image = { readonly data: Uint8ClampedArray; readonly width: number }
  const pen = {
    canvas: { width, height },
    getTransform: () => ({ a: 2, e: 320, f: 180 }),
    putImageData(image: Image, dx: number, dy: number, x: number, y: number, wide: number, high: number) {
      const from = new Plain(image.data.buffer)
      for (let row = y; row < y + high; row++) {
        const begin = row * image.width + x
        canvas.set(from.subarray(begin, begin + wide), (dy + row) * width + dx + x)
      }
    },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const context = pen as unknown as Frame['pen']
  const small = { pixels: new Plain(40 * 40).fill(-1), width: 40, height: 40 }
  const picture = { raster: small, image: null, width: 20, height: 20 }
  const at = (left: number, top: number) => ({ picture, left, top, of: null })
  /** The corners of all that is white, in pixels of the canvas. */
  const white = () => {
    const rows = Array.from({ length: height }, (_, y) => canvas.subarray(y * width, (y + 1) * width))
    return { pixels: canvas.reduce((sum, pixel) => sum + (pixel === -1 ? 1 : 0), 0), rows }
  }
  const surface = createSurface()
  surface.ground(context, [at(100, 100)])
  // Over the edges of squares, and of the canvas at the bottom.
  surface.paint(context, [at(470, 300), at(1000, 980)], true)
  const first = white()
  expect(first.pixels).toBe(3 * 1600 - 40 * 20)
  expect([first.rows[380]?.[520], first.rows[419]?.[559], first.rows[780]?.[1260], first.rows[819]?.[1299]]).toEqual([
    -1, -1, -1, -1,
  ])
  // What moved is gone where it was.
  surface.paint(context, [at(471, 300)], false)
  expect(white().pixels).toBe(2 * 1600)
  expect([canvas[780 * width + 1261], canvas[780 * width + 1262]]).toEqual([0, -1])
  // This and the two canvases of playback, on a map of 1600 × 900 with two pixels for one.
  expect(bytes + 2 * canvas.byteLength).toBeLessThan(120e6)
})
