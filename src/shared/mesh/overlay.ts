import { removeHidden } from '../hidden-characters.ts'
import { MAX_SHAPE_DESCRIPTION, MAX_SHAPE_NAME, MAX_SHAPE_POINTS } from '../limits.ts'

/** Longitude and latitude in degrees. */
export type Point = readonly [number, number]

export type ShapeGeometry =
  | { readonly type: 'Point'; readonly coordinates: Point }
  | { readonly type: 'LineString'; readonly coordinates: readonly Point[] }
  | { readonly type: 'Polygon'; readonly coordinates: readonly (readonly Point[])[] }

/** A GeoJSON feature (RFC 7946) with what the map shows of it, and nothing else. */
export type Shape = {
  readonly type: 'Feature'
  readonly geometry: ShapeGeometry
  readonly properties: { readonly name?: string; readonly description?: string; readonly colour?: string }
}

/**
 * Why a file cannot be put on the map:
 *
 * - `format`: it is not GeoJSON
 * - `geometry`: a kind of geometry that GeoJSON does not have
 * - `coordinates`: not numbers, outside the world, or too few of them
 * - `points`: one shape has more than `MAX_SHAPE_POINTS`
 */
export const SHAPE_FAULTS = ['format', 'geometry', 'coordinates', 'points'] as const
export type ShapeFault = (typeof SHAPE_FAULTS)[number]

/** Collections within collections. */
const MAX_DEPTH = 4
/** Of a degree: 11 cm. */
const DIGITS = 1e6

/**
 * The shapes of one feature or geometry of GeoJSON: a geometry of several parts becomes several shapes, one without a
 * geometry none. Everything else in it is left out; nothing of `value` itself is kept.
 */
export function shapesOf(value: unknown): readonly Shape[] | ShapeFault {
  const type = read(value, 'type')
  if (type !== 'Feature') return typeof type === 'string' && type in PARTS ? shaped(value, {}) : 'format'
  const geometry = read(value, 'geometry')
  if (geometry === null || geometry === undefined) return []
  return shaped(geometry, propertiesOf(read(value, 'properties')))
}

/** The features of a whole file; null: it is not GeoJSON. */
export function featuresOf(file: unknown): readonly unknown[] | null {
  const type = read(file, 'type')
  const features = read(file, 'features')
  if (type === 'FeatureCollection') return Array.isArray(features) ? features : null
  return type === 'Feature' || (typeof type === 'string' && type in PARTS) ? [file] : null
}

function shaped(geometry: unknown, properties: Shape['properties']): readonly Shape[] | ShapeFault {
  const found = geometriesOf(geometry, 0)
  if (typeof found === 'string') return found
  return found.map((each): Shape => ({ type: 'Feature', geometry: each, properties }))
}

/** How each kind of geometry is taken apart. */
const PARTS: Readonly<Record<string, (geometry: object, depth: number) => readonly ShapeGeometry[] | ShapeFault>> =
  Object.assign(Object.create(null), {
    Point: (geometry: object) => one(geometry, pointGeometry),
    MultiPoint: (geometry: object) => several(geometry, pointGeometry),
    LineString: (geometry: object) => one(geometry, lineGeometry),
    MultiLineString: (geometry: object) => several(geometry, lineGeometry),
    Polygon: (geometry: object) => one(geometry, areaGeometry),
    MultiPolygon: (geometry: object) => several(geometry, areaGeometry),
    GeometryCollection(geometry: object, depth: number) {
      const all = read(geometry, 'geometries')
      if (!Array.isArray(all) || depth >= MAX_DEPTH) return 'geometry'
      return collect(all, (each) => geometriesOf(each, depth + 1))
    },
  })

function geometriesOf(geometry: unknown, depth: number): readonly ShapeGeometry[] | ShapeFault {
  const type = read(geometry, 'type')
  const parts = typeof type === 'string' ? PARTS[type] : undefined
  return parts === undefined || typeof geometry !== 'object' || geometry === null ? 'geometry' : parts(geometry, depth)
}

type Make = (coordinates: unknown) => ShapeGeometry | ShapeFault

function one(geometry: object, make: Make): readonly ShapeGeometry[] | ShapeFault {
  const made = make(read(geometry, 'coordinates'))
  return typeof made === 'string' ? made : [made]
}

function several(geometry: object, make: Make): readonly ShapeGeometry[] | ShapeFault {
  const all = read(geometry, 'coordinates')
  if (!Array.isArray(all)) return 'coordinates'
  return collect(all, (each) => {
    const made = make(each)
    return typeof made === 'string' ? made : [made]
  })
}

function collect(
  all: readonly unknown[],
  take: (each: unknown) => readonly ShapeGeometry[] | ShapeFault,
): readonly ShapeGeometry[] | ShapeFault {
  const found: ShapeGeometry[] = []
  for (const each of all) {
    const taken = take(each)
    if (typeof taken === 'string') return taken
    found.push(...taken)
  }
  return found
}

function pointGeometry(coordinates: unknown): ShapeGeometry | ShapeFault {
  const point = pointOf(coordinates)
  return point === null ? 'coordinates' : { type: 'Point', coordinates: point }
}

function lineGeometry(coordinates: unknown): ShapeGeometry | ShapeFault {
  const line = lineOf(coordinates, 2)
  return typeof line === 'string' ? line : { type: 'LineString', coordinates: line }
}

function areaGeometry(coordinates: unknown): ShapeGeometry | ShapeFault {
  if (!Array.isArray(coordinates) || coordinates.length === 0) return 'coordinates'
  const rings: (readonly Point[])[] = []
  let points = 0
  for (const each of coordinates) {
    const ring = lineOf(each, 3)
    if (typeof ring === 'string') return ring
    points += ring.length
    if (points > MAX_SHAPE_POINTS) return 'points'
    rings.push(ring)
  }
  return { type: 'Polygon', coordinates: rings }
}

function lineOf(coordinates: unknown, least: number): readonly Point[] | ShapeFault {
  if (!Array.isArray(coordinates) || coordinates.length < least) return 'coordinates'
  if (coordinates.length > MAX_SHAPE_POINTS) return 'points'
  const line: Point[] = []
  for (const each of coordinates) {
    const point = pointOf(each)
    if (point === null) return 'coordinates'
    line.push(point)
  }
  return line
}

/** Without its height; null: it is not a place in the world. */
function pointOf(value: unknown): Point | null {
  if (!Array.isArray(value) || value.length < 2) return null
  const [longitude, latitude]: readonly unknown[] = value
  if (typeof longitude !== 'number' || typeof latitude !== 'number') return null
  // Comparisons with NaN are false.
  return Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90 ? [round(longitude), round(latitude)] : null
}

/** Without −0. */
const round = (degrees: number) => Math.round(degrees * DIGITS) / DIGITS + 0

/** Only own properties count: what a prototype has was not in the file. */
function read(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined
}

/** The names that common programs and formats give to these, the first ones first. */
const NAMES = ['name', 'title']
const DESCRIPTIONS = ['description', 'desc']
/** Those of simplestyle 1.1 besides our own. */
const COLOURS = ['colour', 'color', 'stroke', 'fill', 'marker-color']

const COLOUR = /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i

function propertiesOf(given: unknown): Shape['properties'] {
  const name = textIn(given, NAMES, MAX_SHAPE_NAME)
  const description = textIn(given, DESCRIPTIONS, MAX_SHAPE_DESCRIPTION)
  const colour = COLOURS.map((key) => read(given, key)).find((found) => typeof found === 'string' && COLOUR.test(found))
  return {
    ...(name !== '' && { name }),
    ...(description !== '' && { description }),
    ...(typeof colour === 'string' && { colour: colour.toLowerCase() }),
  }
}

/** Nothing in such a text needs to be cleaned. */
const PLAIN = /^[!-~]+(?: [!-~]+)*$/

function textIn(given: unknown, keys: readonly string[], most: number): string {
  for (const key of keys) {
    const found = read(given, key)
    if (typeof found !== 'string' && typeof found !== 'number') continue
    // Cut before it is cleaned, which takes time.
    const text = String(found).slice(0, 4 * most)
    if (text.length <= most && PLAIN.test(text)) return text
    return [...removeHidden(text.replaceAll(/\s+/g, ' ')).trim()].slice(0, most).join('').toWellFormed()
  }
  return ''
}
