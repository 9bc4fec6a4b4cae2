import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { channelPositions } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import { AREA_EVENTS } from '../../../shared/alerts/alert-kinds.ts'
import { distanceMetres, roughness } from '../../../shared/mesh/distance.ts'
import { onChannelSeenBy } from '../../accounts/access/visible.ts'
import { readPlaces } from '../past/history.ts'
import { type Fire, lookAtNodes } from '../past/past.ts'
import { readWorldOfPlaces } from '../world/read-world.ts'
import { maySee, type Requirement } from '../rights.ts'
import { watchedSchema, watcher } from '../world/watched.ts'
import type { Anchor, Place, World, WorldNode } from '../world/world.ts'
import type { Fact } from '../facts.ts'
import { common } from './fields.ts'
import { defineKind, type Finding, nodeSubject, type OpenAlerts, type Watching } from './kind.ts'
import { ALERT_NEEDS } from '../../../shared/alerts/alert-needs.ts'

const degrees = (most: number) => z.number().min(-most).max(most)
const placeFields = { latitude: degrees(90), longitude: degrees(180) }

const shapeSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('circle'), ...placeFields, metres: z.number().min(10).max(1_000_000) }),
  z.strictObject({
    kind: z.literal('polygon'),
    points: z
      .array(z.tuple([degrees(90), degrees(180)]))
      .min(3)
      .max(100)
      .describe('Latitude and longitude of each corner; it must not cross the 180th meridian'),
  }),
])

const areaSchema = z
  .strictObject({
    kind: z.literal('area'),
    ...common,
    nodes: watchedSchema,
    when: z.enum(AREA_EVENTS),
    shape: shapeSchema.nullable().default(null).describe('Required for enters and leaves'),
    metres: z
      .number()
      .min(10)
      .max(1_000_000)
      .nullable()
      .default(null)
      .describe('Required for moves: distance from the earlier position'),
  })
  .meta({ id: 'AreaRule', description: 'A watched node enters or leaves an area, or moves' })

type AreaRule = z.infer<typeof areaSchema>

const REQUIRES: Requirement = ALERT_NEEDS.area

export const area = defineKind(areaSchema, {
  requires: REQUIRES,
  problemsOf: ({ when, shape, metres }) =>
    when === 'moves'
      ? metres === null
        ? [{ path: 'metres', message: `needed for ${when}` }]
        : []
      : shape === null
        ? [{ path: 'shape', message: `needed for ${when}` }]
        : [],
  state: {
    needs: () => ({ nodes: true, anchors: true }),
    find: findInArea,
    seenBy,
    newAnchors,
    changes: {
      fields: ['latitude', 'longitude'],
      watches: ({ nodes }) => watcher(nodes),
      readWorld: readWorldOfPlaces,
    },
  },
  preview: (ctx, rule, { from }) =>
    lookAtNodes(ctx, rule.nodes, async (node) => areaFires(rule, node, await readPlaces(ctx, node.id, from))),
})

type Shape = NonNullable<AreaRule['shape']>

/** Whether a position is inside a shape; on the border either result is possible. */
function isInside(shape: Shape, place: Place): boolean {
  if (shape.kind === 'circle') return distanceMetres(shape, place) <= shape.metres
  let inside = false
  shape.points.forEach(([latitude, longitude], index) => {
    const [otherLatitude, otherLongitude] = shape.points.at(index - 1) ?? [latitude, longitude]
    if (latitude > place.latitude === otherLatitude > place.latitude) return
    const crossing =
      ((otherLongitude - longitude) * (place.latitude - latitude)) / (otherLatitude - latitude) + longitude
    if (place.longitude < crossing) inside = !inside
  })
  return inside
}

/** Whether the condition holds for a node at this position. `anchor`: its position when the rule began to watch it. */
function isSo(rule: AreaRule, place: Place, anchor: Place | null, rough = 0): boolean {
  if (rule.when === 'moves') return anchor !== null && distanceMetres(anchor, place) - rough > (rule.metres ?? 0)
  return rule.shape !== null && isInside(rule.shape, place) === (rule.when === 'enters')
}

/** An event is a change: a node that is first seen inside the area has not entered it. */
function findInArea(watching: Watching<AreaRule>, world: World, _open: OpenAlerts): Finding[] {
  const { rule, id } = watching
  const anchors = world.anchors.get(id)
  return placed(watching, world).flatMap(({ node, place }) => {
    const anchor = anchors?.get(node.nodeNum)
    if (anchor === undefined || !isSo(rule, place, anchor, roughness(node.precisionBits))) return []
    const { nodeNum } = node
    const key = `${nodeNum}@${world.now}`
    return [
      {
        subject: nodeSubject(nodeNum),
        key,
        nodeNum,
        channel: node.positionChannel,
        since: world.now,
        forMs: 0,
        isKnown: true,
        fact: factOf(rule, node.name),
      },
    ]
  })
}

const factOf = ({ when, metres }: AreaRule, name: string): Fact => ({ event: 'area', name, when, metres })

/** Nodes whose position becomes the reference of the rule: the first one seen, before the condition holds. */
function newAnchors(watching: Watching<AreaRule>, world: World): Anchor[] {
  const known = world.anchors.get(watching.id)
  return placed(watching, world).flatMap(({ node: { nodeNum }, place }) =>
    known?.has(nodeNum) === true || isSo(watching.rule, place, null)
      ? []
      : [{ ruleId: watching.id, nodeNum, ...place }],
  )
}

function placed({ rule, owner }: Watching<AreaRule>, { nodes }: World): { node: WorldNode; place: Place }[] {
  const isWatched = watcher(rule.nodes)
  return nodes.flatMap((node) => {
    const { latitude, longitude, positionChannel: channel } = node
    if (latitude === null || longitude === null || !isWatched(node)) return []
    return maySee(owner, REQUIRES, { channel, direct: false }) ? [{ node, place: { latitude, longitude } }] : []
  })
}

/** The world with the latest positions that the owner may read. */
async function seenBy({ db }: Store, { owner: { view } }: Watching<AreaRule>, world: World): Promise<World> {
  const { nodes } = world
  const lacking = nodes.filter((node) => node.latitude !== null && !canReadChannel(view, node.positionChannel))
  if (lacking.length === 0) return world
  const ids = JSON.stringify(lacking.map(({ id }) => id))
  const rows = await db
    .select()
    .from(channelPositions)
    .where(
      sql`${channelPositions.nodeId} in (select value from json_each(${ids}))
        and ${onChannelSeenBy(channelPositions.channel, view)}`,
    )
    .orderBy(channelPositions.t)
    .all()
  // The last row of a node is its latest, and wins in the map.
  const places = new Map(rows.map((row) => [row.nodeId, row]))
  const shown = nodes.map((node) => {
    const place = places.get(node.id)
    if (place === undefined || canReadChannel(view, node.positionChannel)) return node
    const { latitude, longitude, precisionBits, channel: positionChannel } = place
    return { ...node, latitude, longitude, precisionBits, positionChannel }
  })
  return { ...world, nodes: shown }
}

function areaFires(
  rule: AreaRule,
  { nodeNum, name, precisionBits }: WorldNode,
  places: readonly { t: number; latitude: number; longitude: number }[],
): Fire[] {
  const fires: Fire[] = []
  const rough = roughness(precisionBits)
  const anchor = places.find(
    (place) =>
      rule.when === 'moves' || (rule.shape !== null && isInside(rule.shape, place) !== (rule.when === 'enters')),
  )
  if (anchor === undefined) return []
  let fired: Fire | null = null
  for (const place of places.slice(places.indexOf(anchor))) {
    const is = isSo(rule, place, anchor, rough)
    if (is) fired ??= { at: place.t, resolvedAt: null, nodeNum, fact: factOf(rule, name) }
    else if (fired !== null) {
      fires.push({ ...fired, resolvedAt: place.t })
      fired = null
    }
  }
  return fired === null ? fires : [...fires, fired]
}
