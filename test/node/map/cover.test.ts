import * as fc from 'fast-check'
import { zxyToTileId } from 'pmtiles'
import { expect, test } from 'vitest'
import { coverOf, spanAfter } from '../../../src/node/map/pmtiles/cover.ts'
import { readDirectory, writeDirectory } from '../../../src/node/map/pmtiles/directory.ts'

const MAX_ZOOM = 6
/** The edges of tiles, by the inverse of the usual formula. */
const eastOf = (z: number, x: number) => (x / 2 ** z) * 360 - 180
const southOf = (z: number, y: number) => (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / 2 ** z))) * 180) / Math.PI

test('the cover of an area has exactly the ids of the tiles that it overlaps, in as few spans as possible', async () => {
  // Some metres beside the edges of tiles, which no computation of degrees hits exactly.
  const degrees = fc.integer({ min: -17_999, max: 17_999 }).map((hundredths) => hundredths / 100 + 0.00003)
  const latitude = fc.integer({ min: -8499, max: 8499 }).map((hundredths) => hundredths / 100 + 0.00003)
  await fc.assert(
    fc.asyncProperty(degrees, degrees, latitude, latitude, async (a, b, c, d) => {
      fc.pre(a !== b && c !== d)
      const [west, east, south, north] = [Math.min(a, b), Math.max(a, b), Math.min(c, d), Math.max(c, d)]
      const cover = await coverOf({ bounds: [west, south, east, north], maxZoom: MAX_ZOOM })
      const found = cover.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, i) => from + i))
      const wanted: number[] = []
      for (let z = 0; z <= MAX_ZOOM; z++) {
        for (let x = 0; x < 2 ** z; x++) {
          if (eastOf(z, x + 1) <= west || eastOf(z, x) >= east) continue
          for (let y = 0; y < 2 ** z; y++)
            if (southOf(z, y) > south && southOf(z, y + 1) < north) wanted.push(zxyToTileId(z, x, y))
        }
      }
      expect(found).toEqual(wanted.toSorted((one, two) => one - two))
      expect(cover.every(({ to }, i) => to !== cover[i + 1]?.from || isFirst(to))).toBe(true)
    }),
    { numRuns: 60 },
  )
})

/** Spans of two zoom levels stay apart. */
const isFirst = (id: number) => Array.from({ length: MAX_ZOOM + 1 }, (_, z) => zxyToTileId(z, 0, 0)).includes(id)

test('an area of a country at the highest zoom level is covered by few spans', async () => {
  const cover = await coverOf({ bounds: [5.8, 47.2, 15.1, 55.1], maxZoom: 15 })
  const tiles = cover.reduce((sum, { from, to }) => sum + to - from, 0)
  expect(tiles).toBeGreaterThan(1_300_000)
  expect(cover.length).toBeLessThan(10_000)
  const of = (longitude: number, latitude: number) =>
    zxyToTileId(
      15,
      Math.floor(((longitude + 180) / 360) * 2 ** 15),
      Math.floor(((1 - Math.asinh(Math.tan((latitude * Math.PI) / 180)) / Math.PI) / 2) * 2 ** 15),
    )
  const has = (id: number) => (cover[spanAfter(cover, id)]?.from ?? Infinity) <= id
  expect([of(13.4, 52.5), of(8.5, 47.4), of(2.35, 48.86), of(16.4, 48.2)].map(has)).toEqual([true, true, false, false])
})

test('directories are read as they were written', () => {
  const entry = fc.record({
    step: fc.integer({ min: 1, max: 2 ** 33 }),
    run: fc.integer({ min: 0, max: 2 ** 31 }),
    length: fc.integer({ min: 1, max: 2 ** 31 }),
    gap: fc.constantFrom(0, 0, 7, 2 ** 35),
  })
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 50 }), (steps) => {
      let [id, offset] = [0, 0]
      const entries = steps.map(({ step, run, length, gap }) => {
        const made = { id: id + step, offset: offset + gap, length, run }
        id = made.id + Math.max(0, run - 1)
        offset = made.offset + length
        return made
      })
      const at = (index: number) => entries[index] ?? { id: 0, offset: 0, length: 0, run: 0 }
      const bytes = writeDirectory(at, 0, entries.length)
      const within = { from: 0, to: Number.MAX_SAFE_INTEGER, tileBytes: 2 ** 50, leafBytes: 2 ** 50 }
      expect(readDirectory(bytes, within)).toEqual(entries)
      expect(() => readDirectory(bytes.subarray(0, -1), within)).toThrow()
      expect(() => readDirectory(Buffer.concat([bytes, Buffer.from([1])]), within)).toThrow()
    }),
  )
})

test('no bytes make a directory that is out of order, out of bounds or endless', () => {
  const within = { from: 10, to: 1000, tileBytes: 5000, leafBytes: 500 }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      let entries: ReturnType<typeof readDirectory> = []
      try {
        entries = readDirectory(bytes, within)
      } catch (error) {
        expect(error).toMatchObject({ name: 'DamagedArchive' })
        return
      }
      let free = within.from
      for (const { id, run, offset, length } of entries) {
        expect(id >= free && id < within.to && id + run <= within.to && length > 0).toBe(true)
        expect(offset + length).toBeLessThanOrEqual(run === 0 ? within.leafBytes : within.tileBytes)
        free = id + Math.max(1, run)
      }
    }),
    { numRuns: 5000 },
  )
})
