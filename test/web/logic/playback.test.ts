import * as fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import './page.ts'
import type { Message, Node } from '../../../src/web/state/mesh/nodes.ts'
import { moved, readMoment, sliderStep, usualSpeed } from '../../../src/web/pages/map/playback/clock.ts'
import { createHistory } from '../../../src/web/pages/map/playback/history.ts'
import { loadHistory } from '../../../src/web/pages/map/playback/load.ts'
import { lay, over, pixelOf } from '../../../src/web/pages/map/playback/raster.ts'
import { silencesIn } from '../../../src/web/pages/map/playback/silences.ts'
import { decodeTrack, lastUpTo, placeAt, worldOf } from '../../../src/web/pages/map/playback/track.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const FROM = 1_790_000_000_000
const SPAN = { from: FROM, to: FROM + DAY }

describe('a track', () => {
  test('is projected as maps of the Web are', () => {
    expect(worldOf(0, 0)).toEqual({ x: 128, y: 128 })
    // The example of Google's documentation of its world coordinates: Chicago.
    const { x, y } = worldOf(41.85, -87.65)
    expect(x).toBeCloseTo(65.67111111111113, 9)
    expect(y).toBeCloseTo(95.17492654697409, 9)
    expect(worldOf(-90, 180).x).toBe(256)
    expect(worldOf(-90, 180).y).toBeCloseTo(256, 6)
  })

  test('is read from differences, and a place lies on the straight line between two', () => {
    const track = decodeTrack([-60, 5_000_000, 900_000, 120, 0, 200_000, 60, 100_000, 0], FROM)
    expect(track.times).toEqual([FROM - MINUTE, FROM + MINUTE, FROM + 2 * MINUTE])
    const spot = { x: 0, y: 0 }
    expect(placeAt(track, FROM - MINUTE - 1, spot)).toBe(false)
    expect(placeAt(track, FROM, spot)).toBe(true)
    expect(spot.x).toBeCloseTo(worldOf(50, 10).x)
    expect(spot.y).toBeCloseTo(worldOf(50, 9).y)
    placeAt(track, FROM + DAY, spot)
    expect(spot.y).toBeCloseTo(worldOf(51, 11).y)
  })

  test('crosses the edge of the map on the shorter way', () => {
    const track = decodeTrack([0, 0, 17_900_000, 100, 0, -35_800_000], FROM)
    const spot = { x: 0, y: 0 }
    for (const share of [0, 0.25, 0.75, 1]) {
      placeAt(track, FROM + share * 100_000, spot)
      const away = Math.min(spot.x, 256 - spot.x)
      expect(away).toBeLessThan(1)
      expect(spot.x).toBeGreaterThanOrEqual(0)
    }
  })

  test('a place is never outside of those around it, and seeking finds the same as a search', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 0, max: 100_000 }),
        (steps, at) => {
          const track = decodeTrack(
            steps.flatMap((step) => [step, step % 7, step % 5]),
            FROM,
          )
          const t = FROM + at * 1000
          const before = lastUpTo(track.times, t)
          expect(before).toBe(track.times.findLastIndex((each) => each <= t))
          const spot = { x: 0, y: 0 }
          expect(placeAt(track, t, spot)).toBe(before >= 0)
          if (before < 0) return
          const ends = [track.xs[before] ?? 0, track.xs[before + 1] ?? track.xs[before] ?? 0]
          expect(spot.x).toBeGreaterThanOrEqual(Math.min(...ends) - 1e-9)
          expect(spot.x).toBeLessThanOrEqual(Math.max(...ends) + 1e-9)
        },
      ),
    )
  })
})

describe('pixels', () => {
  test('a colour is read as the browser computes it', () => {
    expect(pixelOf('rgb(26, 107, 53)') >>> 0).toBe(0xff356b1a)
    expect(pixelOf('rgba(255, 0, 16, 1)') >>> 0).toBe(0xff1000ff)
    expect(pixelOf('color(srgb 1 0.5 0)') >>> 0).toBe(0xff0080ff)
  })

  test('a colour over another is mixed as a canvas does', () => {
    expect(over(0, 0xff356b1a, 128) >>> 0).toBe(0x80356b1a)
    expect(over(0xff000000, 0xff356b1a, 255) >>> 0).toBe(0xff356b1a)
    fc.assert(
      fc.property(fc.integer(), fc.integer(), fc.integer({ min: 0, max: 255 }), (below, colour, alpha) => {
        const [share, under] = [alpha / 255, (below >>> 24) / 255]
        const all = share + under * (1 - share)
        const mixed = over(below, colour, alpha)
        expect(Math.abs((mixed >>> 24) - 255 * all)).toBeLessThanOrEqual(1)
        if (all < 0.1) return
        for (const shift of [0, 8, 16]) {
          const [top, bottom] = [(colour >>> shift) & 255, (below >>> shift) & 255]
          const expected = (top * share + bottom * under * (1 - share)) / all
          expect(Math.abs(((mixed >>> shift) & 255) - expected)).toBeLessThanOrEqual(8)
        }
      }),
    )
  })

  test('a small picture is cut at the edges', () => {
    const small = { pixels: new Int32Array(4).fill(-1), width: 2, height: 2 }
    const laid = (left: number, top: number) => {
      const onto = { pixels: new Int32Array(9), width: 3, height: 3 }
      lay(onto, small, left, top)
      return [...onto.pixels].flatMap((pixel, index) => (pixel === 0 ? [] : index))
    }
    expect([laid(-1, -1), laid(1, 0), laid(2, 2), laid(3, 0), laid(0, -2)]).toEqual([[0], [1, 2, 4, 5], [8], [], []])
  })
})

test('time passes at each speed and ends with the range', () => {
  expect(moved(FROM, { passed: 500, speed: 60, span: SPAN })).toEqual({ at: FROM + 30_000, isOver: false })
  expect(moved(SPAN.to - 10, { passed: 500, speed: 60, span: SPAN })).toEqual({ at: SPAN.to, isOver: true })
  expect([usualSpeed({ from: 0, to: MINUTE }), usualSpeed({ from: 0, to: HOUR }), usualSpeed(SPAN)]).toEqual([
    1, 60, 600,
  ])
  expect(usualSpeed({ from: 0, to: 365 * DAY })).toBe(600)
  expect([sliderStep({ from: 0, to: MINUTE }), sliderStep(SPAN)]).toEqual([1000, 86_000])
})

test.each([
  [String(FROM + 5), FROM + 5],
  [String(FROM), FROM],
  [String(SPAN.to + 1), null],
  ['-1', null],
  ['1e3', null],
  ['', null],
  [null, null],
])('the moment %j of an address is %j', (text, at) => {
  expect(readMoment(text, SPAN)).toBe(at)
})

test('a node is silent when it was not heard for six of its usual pauses, and never for less than it is active', () => {
  const each = (pause: number, count: number) => Array.from({ length: count }, (_, index) => FROM + index * pause)
  const hourly = each(HOUR, 6)
  expect(silencesIn(hourly, FROM + 11 * HOUR, 2 * HOUR)).toEqual([])
  expect(silencesIn(hourly, FROM + 12 * HOUR, 2 * HOUR)).toEqual([
    { since: FROM + 5 * HOUR, noticed: FROM + 11 * HOUR, until: null },
  ])
  expect(silencesIn([...each(MINUTE, 9), FROM + 3 * HOUR], FROM + 3 * HOUR, 2 * HOUR)).toMatchObject([
    { since: FROM + 8 * MINUTE, until: FROM + 3 * HOUR },
  ])
  expect(silencesIn(each(HOUR, 3), FROM + 30 * DAY, 2 * HOUR)).toEqual([])
})

describe('a history', () => {
  const nodeOf = (nodeNum: number, more: Partial<Node> = {}): Node =>
    // Only what a history reads.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    ({ nodeNum, firstHeard: FROM - DAY, position: { latitude: 50, longitude: nodeNum }, ...more }) as Node
  const historyOf = (nodes: readonly Node[], isHeardKnown = true) =>
    createHistory(SPAN, nodes, { activeMs: 2 * HOUR, isHeardKnown })
  const statesAt = (history: ReturnType<typeof historyOf>, t: number) => {
    const states: Record<number, unknown> = {}
    for (const part of Object.values(history.part(t, t)))
      history.eachNode(part, t, ({ nodeNum }, _, state) => (states[nodeNum] = state))
    return states
  }
  const pairsAt = (history: ReturnType<typeof historyOf>, t: number) => {
    const pairs: unknown[] = []
    history.eachPair(t, (a, b, snr, age) => pairs.push([Math.round(a.x), Math.round(b.x), snr, Math.round(age * 10)]))
    return pairs
  }

  test('tells those that move before a time from those that stay', () => {
    const history = historyOf([nodeOf(1), nodeOf(2), nodeOf(3, { firstHeard: FROM + 2 * HOUR })])
    // Node 1 stays for an hour, moves for an hour, and stays again.
    const points = [0, 5_000_000, 100_000, 3600, 0, 0, 3600, 0, 10_000, 3600, 0, 0]
    history.addTracks([{ nodeNum: 1, points }])
    history.settle()
    const resting = (from: number, to: number) => {
      const { resting: found, others } = history.part(FROM + from, FROM + to)
      expect(found.length + others.length).toBe(3)
      return found.map(({ node }) => node.nodeNum)
    }
    expect(resting(0, HOUR - 1)).toEqual([1, 2, 3])
    expect(resting(0, HOUR)).toEqual([2, 3])
    expect(resting(HOUR + MINUTE, HOUR + 2 * MINUTE)).toEqual([2, 3])
    expect(resting(2 * HOUR - MINUTE, 2 * HOUR)).toEqual([2])
    expect(resting(2 * HOUR, 10 * HOUR)).toEqual([1, 2, 3])
  })

  test('shows each node from when it was first heard, as it was then', () => {
    const history = historyOf([nodeOf(1), nodeOf(2, { firstHeard: FROM + HOUR }), nodeOf(3, { position: null })])
    history.addHeard(1, [FROM + 2 * HOUR, FROM + HOUR])
    history.addHours(
      2,
      [FROM + 3 * HOUR, FROM + 4 * HOUR].map((t) => t),
    )
    history.settle()
    expect(statesAt(history, FROM)).toEqual({ 1: 2 })
    expect(statesAt(history, FROM + HOUR)).toEqual({ 1: 0, 2: 2 })
    expect(statesAt(history, FROM + 5 * HOUR)).toEqual({ 1: 1, 2: 0 })
    // Its track arrives later.
    history.addTracks([
      { nodeNum: 3, points: [0, 5_000_000, 900_000] },
      { nodeNum: 99, points: [0, 0, 0] },
    ])
    expect(Object.keys(statesAt(history, FROM + HOUR))).toEqual(['1', '2', '3'])
    expect(statesAt(historyOf([nodeOf(1)], false), FROM)).toEqual({ 1: 0 })
  })

  test('an hour counts only if nothing in it is known more exactly', () => {
    const history = historyOf([nodeOf(1)])
    history.addHours(1, [FROM + HOUR, FROM + 2 * HOUR])
    history.addHeard(1, [FROM + 10 * MINUTE])
    history.settle()
    // Not at the end of the first hour, but at that of the second.
    expect(statesAt(history, FROM + 9 * MINUTE)).toEqual({ 1: 2 })
    expect(statesAt(history, FROM + 3 * HOUR)).toEqual({ 1: 0 })
    expect(statesAt(history, FROM + 4 * HOUR + 1)).toEqual({ 1: 1 })
  })

  test('a link stands for an hour after it was heard, a report of neighbours longer, in any order', () => {
    const history = historyOf([nodeOf(1), nodeOf(2), nodeOf(3)])
    history.addHops([
      { from: 2, to: 1, snr: -3, t: FROM + 2 * HOUR },
      { from: 1, to: 2, snr: 5, t: FROM + HOUR },
      { from: 1, to: 77, snr: 5, t: FROM + HOUR },
    ])
    history.addHops([{ from: 3, to: 2, snr: null, t: FROM }], 6 * HOUR)
    history.settle()
    expect(pairsAt(history, FROM + 30 * MINUTE)).toEqual([[129, 130, null, 1]])
    expect(pairsAt(history, FROM + HOUR)).toEqual([
      [129, 129, 5, 0],
      [129, 130, null, 2],
    ])
    expect(pairsAt(history, FROM + 2.5 * HOUR)).toEqual([
      [129, 129, -3, 5],
      [129, 130, null, 4],
    ])
    expect(pairsAt(history, FROM + 6 * HOUR)).toEqual([])
  })

  test('what happened comes in its order, and nothing of later', () => {
    const history = historyOf([nodeOf(1), nodeOf(2)])
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const text = (id: number, timestamp: number) => ({ id, timestamp, fromNodeNum: 2, text: `text ${id}` }) as Message
    history.addTexts([text(2, FROM + 9 * HOUR), text(1, FROM + 1)])
    history.addHeard(
      1,
      [0, 1, 2, 3, 20].map((hours) => FROM + hours * HOUR),
    )
    history.settle()
    expect(history.latest(FROM, 10)).toEqual([])
    const kinds = (t: number) => history.latest(t, 10).map((each) => [each.kind, (each.t - FROM) / HOUR])
    expect(kinds(FROM + 8 * HOUR)).toEqual([['text', 1 / HOUR]])
    expect(kinds(FROM + 20 * HOUR)).toEqual(
      [
        ['back', 20],
        ['silent', 9],
        ['text', 9],
        ['text', 1 / HOUR],
      ].toSorted(([, a], [, b]) => Number(b) - Number(a)),
    )
    expect(history.latest(FROM + DAY, 2).length).toBe(2)
    expect(statesAt(history, FROM + 10 * HOUR)).toMatchObject({ 1: 'silent' })
    expect(statesAt(history, FROM + 20 * HOUR)).toMatchObject({ 1: 0 })
  })

  test('of nothing it says so', () => {
    const history = historyOf([nodeOf(1)])
    history.settle()
    expect(history.isEmpty()).toBe(true)
    history.addHops([{ from: 1, to: 2, snr: 1, t: FROM }])
    expect(history.isEmpty()).toBe(false)
  })
})

describe('loading', () => {
  afterEach(() => vi.unstubAllGlobals())

  test.each([
    [3, true],
    [1000, false],
  ])('of %i pages of tracks is whole: %s', async (pages, isWhole) => {
    let asked = 0
    vi.stubGlobal('fetch', async () => {
      asked += 1
      return Response.json({ tracks: [], next: asked < pages ? asked : null })
    })
    const history = createHistory(SPAN, [], { activeMs: 2 * HOUR, isHeardKnown: false })
    expect(await loadHistory(history, () => true)).toBe(isWhole)
    expect(asked).toBe(Math.min(pages, 20))
  })
})
