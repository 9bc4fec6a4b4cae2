import { and, asc, desc, eq, gt, gte, lt, sql } from 'drizzle-orm'
import * as z from 'zod'
import { nodes, positions } from '../../../db/schema.ts'
import { prepareOnce, readEach, type Store } from '../../../db/store.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import { SECOND_MS } from '../../../shared/time.ts'
import { seesNodes, type View } from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'
import { nodeNumField } from '../../http/fields.ts'
import { spareTurns } from './spare-turns.ts'

/** Nodes that one query reads. */
const SLICE_NODES = 200
/** Where a query is a round trip: nodes whose positions one of them reads, and nodes of a page, each with two queries. */
const TOGETHER_AFAR = 40
const PAGE_AFAR = 400
/** Positions that one query reads. */
const SLICE = 1000
/** A page ends with the node that reaches one of these: positions read, and positions in the answer. */
const MAX_READ = 40_000
const MAX_POINTS = 20_000
/** Positions of one node: those read in a page, and how many different times there are in an answer. */
const MAX_OF_NODE = 100_000
const TIMES = 1000
/** Earlier positions that are looked at for the place where a node was at the beginning. */
const EARLIER = 20
/** Places are in 1/100,000 of a degree, about a metre. */
const PER_DEGREE = 100_000

export const trackPageSchema = z
  .object({
    tracks: z.array(
      z.object({
        nodeNum: nodeNumField,
        points: z
          .array(z.int())
          .describe(
            'Three numbers for each position, oldest first: seconds since `from`, latitude and longitude in 1/100,000 of a degree, each as the difference from the position before. The first one may be older than `from`: where the node was then',
          ),
      }),
    ),
    next: z.int().nullable().describe('`after` of the next page; null: this is the last one'),
  })
  .meta({ id: 'PlaybackTracks', description: 'Where nodes were' })
export type TrackPage = z.infer<typeof trackPageSchema>

const value = sql.placeholder
const place = {
  t: positions.t,
  latitude: positions.latitude,
  longitude: positions.longitude,
  channel: positions.channel,
}
type Row = Awaited<ReturnType<ReturnType<typeof queries>['during']['all']>>[number]
type Place = { readonly t: number; readonly latitude: number; readonly longitude: number }

// The view is applied to the rows that were read: a query that looked for visible ones could have to read any number.
const queries = prepareOnce((db) => ({
  nodes: db
    .select({ id: nodes.id, nodeNum: nodes.nodeNum })
    .from(nodes)
    .where(gt(nodes.nodeNum, value('after')))
    .orderBy(asc(nodes.nodeNum))
    .limit(SLICE_NODES)
    .prepare(),
  earlier: db
    .select(place)
    .from(positions)
    .where(and(eq(positions.nodeId, value('id')), lt(positions.t, value('from'))))
    .orderBy(desc(positions.t))
    .limit(EARLIER)
    .prepare(),
  during: db
    .select(place)
    .from(positions)
    .where(and(eq(positions.nodeId, value('id')), gte(positions.t, value('from')), lt(positions.t, value('to'))))
    .orderBy(asc(positions.t))
    .limit(SLICE)
    .prepare(),
}))

type Asked = { readonly from: number; readonly to: number; readonly after: number }

/** Where the nodes after a number were in a time (ms, `to` is exclusive), as far as the viewer may see it. */
export async function readTracks({ store, viewer: { view } }: Reader, { from, to, after }: Asked): Promise<TrackPage> {
  const turn = spareTurns()
  const tracks: TrackPage['tracks'] = []
  const isAfar = store.batch !== undefined
  const [together, most] = isAfar ? [TOGETHER_AFAR, PAGE_AFAR] : [1, Number.POSITIVE_INFINITY]
  let [read, points, looked, last] = [0, 0, 0, after]
  for (;;) {
    const rows = await queries(store).nodes.all({ after: last })
    const seen = rows.filter(({ nodeNum }) => seesNodes(view, [nodeNum]))
    for (let at = 0; at < seen.length; at += together) {
      const some = seen.slice(at, at + together)
      for (const { nodeNum, ...begun } of await beginTracks(store, some, { from, to })) {
        const track = await readTrack(store, view, { ...begun, from, to }, turn)
        read += track.read
        if (track.places.length > 0) tracks.push({ nodeNum, points: encode(track.places, from) })
        points += track.places.length
        looked += 1
        if (read >= MAX_READ || points >= MAX_POINTS || looked >= most) return { tracks, next: nodeNum }
      }
    }
    if (rows.length < SLICE_NODES) return { tracks, next: null }
    last = rows.at(-1)?.nodeNum ?? last
    await turn()
  }
}

type Begun = { readonly id: number; readonly earlier: readonly Row[]; readonly first: readonly Row[] }

/** The last positions before a time and the first ones in it, of some nodes. */
async function beginTracks(
  store: Store,
  some: readonly { readonly id: number; readonly nodeNum: number }[],
  times: { readonly from: number; readonly to: number },
): Promise<readonly (Begun & { readonly nodeNum: number })[]> {
  const { earlier, during } = queries(store)
  const values = some.map(({ id }) => ({ id, ...times }))
  const before = await readEach(store, earlier, values)
  const first = await readEach(store, during, values)
  return some.map((node, index) => ({ ...node, earlier: before[index] ?? [], first: first[index] ?? [] }))
}

async function readTrack(
  store: Store,
  view: View,
  { id, earlier, first, from, to }: Begun & { readonly from: number; readonly to: number },
  turn: () => Promise<void>,
): Promise<{ readonly places: readonly Place[]; readonly read: number }> {
  const isShown = ({ channel }: { readonly channel: number | null }) => canReadChannel(view, channel)
  const before = earlier.find(isShown)
  const thinned = thin(Math.max(SECOND_MS, (to - from) / TIMES))
  if (before !== undefined) thinned.add(before)
  let read = 1
  for (let rows = first; ;) {
    await turn()
    read += rows.length
    for (const row of rows) if (isShown(row)) thinned.add(row)
    const end = rows.at(-1)
    if (end === undefined || rows.length < SLICE || read >= MAX_OF_NODE) break
    rows = await queries(store).during.all({ id, from: end.t + 1, to })
  }
  return { places: thinned.places, read }
}

/** Keeps one position of each step (ms), and of those at one place the first and the last. */
function thin(step: number): { readonly places: readonly Place[]; add(place: Place): void } {
  const places: Place[] = []
  const isSame = (a: Place | undefined, b: Place | undefined) =>
    a?.latitude === b?.latitude && a?.longitude === b?.longitude
  return {
    places,
    add: (place) => {
      const [before, last] = [places.at(-2), places.at(-1)]
      const isRest = places.length > 1 && isSame(before, last) && isSame(last, place)
      // A later one of the same step, too, so that it ends where the node stopped.
      const isDense = before !== undefined && last !== undefined && place.t - before.t < step
      if (isRest || isDense) places.pop()
      places.push({ t: place.t, latitude: place.latitude, longitude: place.longitude })
    },
  }
}

function encode(places: readonly Place[], from: number): number[] {
  let before: readonly [number, number, number] = [0, 0, 0]
  return places.flatMap(({ t, latitude, longitude }) => {
    const [seconds, lat, lon] = [
      Math.round((t - from) / SECOND_MS),
      Math.round(latitude * PER_DEGREE),
      Math.round(longitude * PER_DEGREE),
    ]
    const step = [seconds - before[0], lat - before[1], lon - before[2]]
    before = [seconds, lat, lon]
    return step
  })
}
