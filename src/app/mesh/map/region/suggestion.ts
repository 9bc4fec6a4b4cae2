import { type Area, type Bounds, MAX_LATITUDE, MAX_REGION_ZOOM } from './area.ts'

/** In degrees. */
export type Place = { readonly latitude: number; readonly longitude: number }

const KM_PER_DEGREE = 111.32
/** A node further from the middle of the mesh than this multiple of the usual distance is an outlier. */
const OUTLIER = 6
/** Nodes within this distance of the middle are never outliers. */
const NEAR_KM = 25
const PADDING = 0.15
const LEAST_PADDING_KM = 3
/** About 100,000 tiles of a land with towns are one gigabyte. */
const FEW_TILES = 100_000

/**
 * An area around most of the places: a single node that is far away, or at 0° 0° because it has no position yet, does
 * not make it large. Null without a place.
 */
export function suggestArea(places: readonly Place[]): Area | null {
  const usable = places.filter(
    ({ latitude, longitude }) => Math.abs(latitude) < MAX_LATITUDE && (latitude !== 0 || longitude !== 0),
  )
  if (usable.length === 0) return null
  const first = middleOf(usable.map(({ longitude }) => longitude))
  // Around the middle, so that a mesh on both sides of the 180th meridian stays together.
  const unrolled = usable.map(({ latitude, longitude }) => ({ latitude, longitude: around(longitude, first) }))
  const middle = {
    latitude: middleOf(unrolled.map(({ latitude }) => latitude)),
    longitude: middleOf(unrolled.map(({ longitude }) => longitude)),
  }
  const far = unrolled.map((place) => kmBetween(place, middle))
  const limit = Math.max(NEAR_KM, OUTLIER * middleOf(far))
  const bounds = padded(
    unrolled.filter((_, index) => (far[index] ?? 0) <= limit),
    middle,
  )
  return { bounds, maxZoom: zoomFor(bounds) }
}

function padded(places: readonly Place[], middle: Place): Bounds {
  const latitudes = places.map(({ latitude }) => latitude)
  const longitudes = places.map(({ longitude }) => longitude)
  const [south, north] = [Math.min(...latitudes), Math.max(...latitudes)]
  const [west, east] = [Math.min(...longitudes), Math.max(...longitudes)]
  const least = LEAST_PADDING_KM / KM_PER_DEGREE
  const up = Math.max(least, (north - south) * PADDING)
  const aside = Math.max(least / Math.cos((middle.latitude * Math.PI) / 180), (east - west) * PADDING)
  // A region cannot cross the 180th meridian: the part on the side of the middle.
  return [
    rounded(Math.max(-180, west - aside)),
    rounded(Math.max(-MAX_LATITUDE, south - up)),
    rounded(Math.min(180, east + aside)),
    rounded(Math.min(MAX_LATITUDE, north + up)),
  ]
}

function zoomFor([west, south, east, north]: Bounds): number {
  const share = (((east - west) / 360) * (mercator(north) - mercator(south))) / 2
  const fits = Math.floor(Math.log(FEW_TILES / share) / Math.log(4))
  return Math.max(0, Math.min(MAX_REGION_ZOOM, fits))
}

/** -1 to 1 from the south to the north of the square web map. */
function mercator(latitude: number): number {
  return Math.asinh(Math.tan((latitude * Math.PI) / 180)) / Math.PI
}

function middleOf(values: readonly number[]): number {
  // Without calling a comparison for each pair: five times as fast.
  return Float64Array.from(values).toSorted()[Math.floor((values.length - 1) / 2)] ?? 0
}

function around(longitude: number, middle: number): number {
  const east = longitude - middle
  return east > 180 ? longitude - 360 : east < -180 ? longitude + 360 : longitude
}

/** Exact enough to tell outliers. */
function kmBetween(a: Place, b: Place): number {
  const aside = (a.longitude - b.longitude) * Math.cos((((a.latitude + b.latitude) / 2) * Math.PI) / 180)
  return Math.sqrt((a.latitude - b.latitude) ** 2 + aside ** 2) * KM_PER_DEGREE
}

function rounded(degrees: number): number {
  return Math.round(degrees * 1e4) / 1e4
}
