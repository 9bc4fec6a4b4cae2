/** Where a node was, oldest first: times in milliseconds, places in pixels of the map at zoom 0. */
export type Track = {
  readonly times: readonly number[]
  readonly xs: readonly number[]
  readonly ys: readonly number[]
}

/** Pixels around the world at zoom 0. */
const WORLD = 256
/** Degrees of latitude that a map of the Web shows. */
const MAX_LATITUDE = 85.0511287798

/** Web Mercator, as the map draws. */
export function worldOf(latitude: number, longitude: number): { readonly x: number; readonly y: number } {
  const lat = Math.max(-MAX_LATITUDE, Math.min(MAX_LATITUDE, latitude))
  const sine = Math.sin((lat * Math.PI) / 180)
  return {
    x: WORLD * (0.5 + longitude / 360),
    y: WORLD * (0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)),
  }
}

/** The track in the three numbers for each position of `GET /api/playback/tracks`. */
export function decodeTrack(points: readonly number[], from: number): Track {
  const [times, xs, ys]: [number[], number[], number[]] = [[], [], []]
  let [t, lat, lon] = [0, 0, 0]
  for (let at = 0; at + 2 < points.length; at += 3) {
    t += points[at] ?? 0
    lat += points[at + 1] ?? 0
    lon += points[at + 2] ?? 0
    const { x, y } = worldOf(lat / 100_000, lon / 100_000)
    const last = xs.at(-1) ?? x
    // The shorter way around the world.
    const near = x + WORLD * Math.round((last - x) / WORLD)
    // A rest needs only its begin and its end.
    if ([xs.at(-1), xs.at(-2)].every((each) => each === near) && [ys.at(-1), ys.at(-2)].every((each) => each === y)) {
      times[times.length - 1] = from + t * 1000
      continue
    }
    times.push(from + t * 1000)
    xs.push(near)
    ys.push(y)
  }
  return { times, xs, ys }
}

/** The index of the last number that is not greater; -1: all are. */
export function lastUpTo(ascending: readonly number[], limit: number): number {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ascending[middle] ?? 0) <= limit) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** Whether the place changes somewhere between two times. */
export function movesBetween({ times, xs, ys }: Track, from: number, to: number): boolean {
  for (let at = Math.max(0, lastUpTo(times, from)); at + 1 < times.length && (times[at] ?? 0) <= to; at++) {
    if (xs[at] !== xs[at + 1] || ys[at] !== ys[at + 1]) return true
  }
  return false
}

/** A place that changes. */
export type Spot = { x: number; y: number }

/** Puts the node's place at a time into `spot`; false: it is not known yet. */
export function placeAt({ times, xs, ys }: Track, t: number, spot: Spot): boolean {
  const before = lastUpTo(times, t)
  const [x, y, begun] = [xs[before], ys[before], times[before]]
  if (x === undefined || y === undefined || begun === undefined) return false
  const [nextX = x, nextY = y, end = begun] = [xs[before + 1], ys[before + 1], times[before + 1]]
  const share = end > begun ? (t - begun) / (end - begun) : 0
  const at = x + (nextX - x) * share
  spot.x = at - WORLD * Math.floor(at / WORLD)
  spot.y = y + (nextY - y) * share
  return true
}
