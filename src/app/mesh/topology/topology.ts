import { and, desc, eq, gt, isNull, or, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { neighbors, waypoints } from '../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import type { Ctx, Reader } from '../../base/context.ts'
import { canReadChannel, type Scope } from '../../../shared/access/scope.ts'
import {
  ofVisibleNodes,
  onVisibleChannel,
  seesEverything,
  seesNodes,
  visibleValues,
} from '../../accounts/access/visible.ts'
import { readChannelTable } from '../radios/channel-table.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { CHANNEL_ROLES } from '../../../shared/mesh/channels.ts'

/** The maximum number that is shown and stored, because anybody can make them up. The latest ones count. */
export const MAX_NEIGHBORS = 20_000
export const MAX_WAYPOINTS = 5000

export const neighborSchema = z
  .object({
    nodeNum: nodeNumField.describe('The node that hears'),
    nodeId: nodeIdField,
    neighborNum: nodeNumField.describe('The node that is heard'),
    neighborId: nodeIdField,
    snr: z.number().describe('dB'),
    timestamp: timeField,
  })
  .meta({ id: 'Neighbor', description: 'A direct neighbour of a node, according to its own report' })

export type Neighbor = z.infer<typeof neighborSchema>

export const channelSchema = z
  .object({
    source: z.string().describe('The radio or broker; the first one if several have it'),
    index: z
      .int()
      .describe(
        '`channel` of its messages: 0 to 7 is its slot in the radio; from 256 on it is a channel of brokers only, or of a radio whose slot number is already taken by another channel',
      ),
    name: z.string().describe('Empty: named after the modem preset'),
    role: z.enum(CHANNEL_ROLES),
  })
  .meta({ id: 'Channel', description: 'A channel, without its key' })

export const waypointSchema = z
  .object({
    id: z.int(),
    fromNodeNum: nodeNumField,
    fromNodeId: nodeIdField,
    timestamp: timeField,
    name: z.string(),
    description: z.string(),
    icon: z.string().nullable(),
    latitude: z.number(),
    longitude: z.number(),
    expiresAt: timeField.nullable(),
    lockedTo: nodeNumField.nullable().describe('The only node that may change it'),
  })
  .meta({ id: 'Waypoint', description: 'A named place that a node shared' })

export type Waypoint = z.infer<typeof waypointSchema>

const readNeighbors = (db: Db, isSeen?: SQL) =>
  db.select().from(neighbors).where(isSeen).orderBy(desc(neighbors.t), neighbors.nodeNum).limit(MAX_NEIGHBORS).prepare()

/** What a node hears, and who hears it. */
const isOfNode = or(eq(neighbors.nodeNum, sql.placeholder('node')), eq(neighbors.neighborNum, sql.placeholder('node')))

const readWaypoints = (db: Db, isSeen?: SQL) =>
  db
    .select()
    .from(waypoints)
    .where(and(or(isNull(waypoints.expiresAt), gt(waypoints.expiresAt, sql.placeholder('now'))), isSeen))
    .orderBy(desc(waypoints.t))
    .limit(MAX_WAYPOINTS)
    .prepare()

/** The numbers of nodes as a JSON array. */
const AMONG = sql`${neighbors.nodeNum} in (select value from json_each(${sql.placeholder('nums')}))`

const queries = prepareOnce((db) => ({
  neighbors: readNeighbors(db),
  someNeighbors: readNeighbors(db, AMONG),
  ofNode: readNeighbors(db, isOfNode),
  waypoints: readWaypoints(db),
}))

const IS_SEEN = and(onVisibleChannel(neighbors.channel), ofVisibleNodes(neighbors.nodeNum, neighbors.neighborNum))
/** The same for views that do not see everything. */
const seenQueries = prepareOnce((db) => ({
  neighbors: readNeighbors(db, IS_SEEN),
  someNeighbors: readNeighbors(db, and(AMONG, IS_SEEN)),
  ofNode: readNeighbors(db, and(isOfNode, IS_SEEN)),
  waypoints: readWaypoints(db, and(onVisibleChannel(waypoints.channel), ofVisibleNodes(waypoints.fromNodeNum))),
}))

const queriesFor = ({ store, viewer: { view } }: Reader) => (seesEverything(view) ? queries(store) : seenQueries(store))

type Asked = { readonly ids?: readonly number[] | undefined; readonly node?: number | undefined }

/**
 * Who hears whom, the latest report first, as far as the viewer may see it. `ids`: only reports of these nodes; `node`:
 * only what it hears or who hears it.
 */
export async function listNeighbors(ctx: Reader, { ids, node }: Asked = {}): Promise<Neighbor[]> {
  const { neighbors: all, someNeighbors: some, ofNode } = queriesFor(ctx)
  const values = visibleValues(ctx.viewer.view)
  const read = () => {
    if (node !== undefined) return ofNode.all({ ...values, node })
    return ids === undefined ? all.all(values) : some.all({ ...values, nums: JSON.stringify(ids) })
  }
  const rows = await read()
  return rows.map(({ nodeNum, neighborNum, snr, t }) => ({
    nodeNum,
    nodeId: formatNodeId(nodeNum),
    neighborNum,
    neighborId: formatNodeId(neighborNum),
    snr,
    timestamp: t,
  }))
}

/** Names and roles; keys are not stored. `radios`: names of the configured ones, in their order, or null. */
export async function listChannels(
  store: Store,
  radios: readonly string[] | null,
  scope: Scope,
): Promise<z.infer<typeof channelSchema>[]> {
  const all = (await readChannelTable(store, radios)).list()
  return all.filter(({ index }) => canReadChannel(scope, index))
}

/** Waypoints that have not expired, the latest first, as far as the viewer may see them. */
export async function listWaypoints(ctx: Reader & Pick<Ctx, 'now'>): Promise<Waypoint[]> {
  const { view } = ctx.viewer
  const rows = await queriesFor(ctx).waypoints.all({ now: ctx.now(), ...visibleValues(view) })
  return rows.map((row) => {
    const { id, fromNodeNum, name, description, icon, latitude, longitude, expiresAt } = row
    const lockedTo = seesNodes(view, [row.lockedTo]) ? row.lockedTo : null
    const place = { name, description, icon, latitude, longitude, expiresAt, lockedTo }
    return { id, fromNodeNum, fromNodeId: formatNodeId(fromNodeNum), timestamp: row.t, ...place }
  })
}
