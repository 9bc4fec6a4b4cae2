import { desc, gt, isNull, or, sql } from 'drizzle-orm'
import * as z from 'zod'
import { neighbors, waypoints } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { readChannelTable } from '../radios/channel-table.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { CHANNEL_ROLES } from '../../../shared/mesh/channels.ts'

/** Further ones are neither shown nor stored, because anybody can invent them. The latest count. */
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

const queries = prepareOnce((db) => ({
  neighbors: db.select().from(neighbors).orderBy(desc(neighbors.t), neighbors.nodeNum).limit(MAX_NEIGHBORS).prepare(),
  waypoints: db
    .select()
    .from(waypoints)
    .where(or(isNull(waypoints.expiresAt), gt(waypoints.expiresAt, sql.placeholder('now'))))
    .orderBy(desc(waypoints.t))
    .limit(MAX_WAYPOINTS)
    .prepare(),
}))

/** Who hears whom, the latest report first. */
export async function listNeighbors(store: Store): Promise<z.infer<typeof neighborSchema>[]> {
  const rows = await queries(store).neighbors.all()
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
): Promise<z.infer<typeof channelSchema>[]> {
  return (await readChannelTable(store, radios)).list()
}

/** Those that have not expired at `now`, the latest first. */
export async function listWaypoints(store: Store, now: number): Promise<z.infer<typeof waypointSchema>[]> {
  const rows = await queries(store).waypoints.all({ now })
  return rows.map(({ t, ...row }) => ({ ...row, fromNodeId: formatNodeId(row.fromNodeNum), timestamp: t }))
}
