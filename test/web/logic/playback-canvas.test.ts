import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import './page.ts'
import type { Frame } from '../../../src/web/parts/map/sheet.ts'
import { copiesOf } from '../../../src/web/pages/map/playback/copies.ts'
import { createHistory } from '../../../src/web/pages/map/playback/history.ts'
import { createPictures } from '../../../src/web/pages/map/playback/pictures.ts'
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
