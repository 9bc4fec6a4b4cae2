import { and, type Column, eq, sql } from 'drizzle-orm'
import { channelHearings, channelMetrics, channelPositions, channelStatuses, nodes } from '../../../db/schema.ts'
import { prepareOnce, rawRows, type Store } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { isWeakKey } from '../../../meshtastic/crypto/public-key.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import {
  type NodeChannels,
  onVisibleChannel,
  seesNodes,
  type View,
  visibleValues,
} from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'
import { sha256Hex } from '../../base/crypto.ts'
import { AppError } from '../../http/errors.ts'
import { readClaims } from '../radios/source-table.ts'
import { type NodeRow, pickColumns } from './columns.ts'
import {
  DETAILED,
  listAllRefused,
  type Node,
  type NodeDetail,
  publicMetrics,
  publicNode,
  readNodeRow,
} from './nodes.ts'
import { listSuspicions } from './identity/suspicions.ts'
import { listFormerNums, readPresentNum } from './identity/renumbering.ts'

// Nodes as seen by a viewer who may not read every channel.

type Hearing = typeof channelHearings.$inferSelect

/** What the row of the node knows later, if its latest hearing is on the same channel. */
const latestOf = <Name extends 'lastHeard' | 'hopsAway' | 'viaMqtt'>(name: Name, later: Column) =>
  sql<Hearing[Name]>`iif(${nodes.publicChannel} is ${channelHearings.channel}
    and ${nodes.publicHeard} >= ${channelHearings.lastHeard}, ${later}, ${channelHearings[name]})`

const queries = prepareOnce((db) => {
  const nodeNum = sql.placeholder('nodeNum')
  const among = sql`(select value from json_each(${sql.placeholder('ids')}))`
  return {
    id: db.select({ id: nodes.id }).from(nodes).where(eq(nodes.nodeNum, nodeNum)).prepare(),
    // Most nodes have nothing in any of these tables, and one look beats five.
    kept: db
      .select({
        suspected: sql`exists (select 1 from suspicions where node_num = ${nodeNum})`.as('suspected'),
        refusing: sql`exists (select 1 from refused_identities where node_num = ${nodeNum})`.as('refusing'),
        claimed: sql`exists (select 1 from sources where local_node_num = ${nodeNum} or disputed_node_num = ${nodeNum})
          or exists (select 1 from own_radio_decisions where node_num = ${nodeNum})`.as('claimed'),
        renumbered: sql`exists (select 1 from renumberings where to_node_num = ${nodeNum})`.as('renumbered'),
      })
      .from(sql`(select 1)`)
      .prepare(),
    rows: db
      .select()
      .from(nodes)
      .where(sql`${nodes.id} in ${among}`)
      .prepare(),
    positions: db
      .select()
      .from(channelPositions)
      .where(and(sql`${channelPositions.nodeId} in ${among}`, onVisibleChannel(channelPositions.channel)))
      .orderBy(channelPositions.t)
      .prepare(),
    metrics: db
      .select()
      .from(channelMetrics)
      .where(and(sql`${channelMetrics.nodeId} in ${among}`, onVisibleChannel(channelMetrics.channel)))
      .orderBy(channelMetrics.t)
      .prepare(),
    statuses: db
      .select()
      .from(channelStatuses)
      .where(and(sql`${channelStatuses.nodeId} in ${among}`, onVisibleChannel(channelStatuses.channel)))
      .orderBy(channelStatuses.t)
      .prepare(),
    hearings: db
      .select({
        nodeId: channelHearings.nodeId,
        channel: channelHearings.channel,
        firstHeard: channelHearings.firstHeard,
        lastHeard: latestOf('lastHeard', nodes.publicHeard).as('latest'),
        hopsAway: latestOf('hopsAway', nodes.publicHops),
        viaMqtt: latestOf('viaMqtt', nodes.publicViaMqtt).mapWith(channelHearings.viaMqtt),
      })
      .from(channelHearings)
      .innerJoin(nodes, eq(nodes.id, channelHearings.nodeId))
      .where(and(sql`${channelHearings.nodeId} in ${among}`, onVisibleChannel(channelHearings.channel)))
      .orderBy(sql`latest`)
      .prepare(),
  }
})

type Kept = readonly [suspected: 0 | 1, refusing: 0 | 1, claimed: 0 | 1, renumbered: 0 | 1]

export function channelsOf(row: NodeRow): NodeChannels {
  return {
    position: row.latitude === null ? null : row.positionChannel,
    deviceMetrics: publicMetrics(row) === null ? null : row.metricsChannel,
    status: row.status === null ? null : row.statusChannel,
    channel: row.channel,
  }
}

/** Whether the view includes all of these channels. */
export function seesWhole(view: View, channels: NodeChannels): boolean {
  return Object.values(channels).every((each) => canReadChannel(view, each))
}

/** The rows of some nodes, by id. */
export async function readNodeRows(store: Store, ids: readonly number[]): Promise<readonly NodeRow[]> {
  return queries(store).rows.all({ ids: JSON.stringify(ids) })
}

/**
 * Nodes as the view shows them, without hidden ones. A position, metrics or a status from a channel that the view does not
 * include are replaced by the latest from one that it does.
 */
export async function nodesSeenBy(store: Store, view: View, rows: readonly NodeRow[]): Promise<Node[]> {
  const shown = rows.filter(({ nodeNum }) => seesNodes(view, [nodeNum]))
  const isPublic = view.isPublic === true
  const lacking = shown.filter((row) => (isPublic && !row.isLocal) || !seesWhole(view, channelsOf(row)))
  if (lacking.length === 0) return shown.map(publicNode)
  const values = { ids: JSON.stringify(lacking.map(({ id }) => id)), ...visibleValues(view) }
  const { positions, metrics, statuses, hearings } = queries(store)
  // The last row of a node is its latest, and wins in the map.
  const places = new Map((await positions.all(values)).map((place) => [place.nodeId, place]))
  const measured = new Map((await metrics.all(values)).map((each) => [each.nodeId, each]))
  const said = new Map((await statuses.all(values)).map((each) => [each.nodeId, each]))
  const heard = Map.groupBy(isPublic ? await hearings.all(values) : [], ({ nodeId }) => nodeId)
  return shown.map((row) => {
    const channels = channelsOf(row)
    const isOn = (channel: number | null) => canReadChannel(view, channel)
    return publicNode({
      ...row,
      ...(isOn(channels.position) ? {} : earlierPlace(places.get(row.id))),
      ...(isOn(channels.deviceMetrics) ? {} : earlierMetrics(measured.get(row.id))),
      ...(isOn(channels.status) ? {} : earlierStatus(said.get(row.id))),
      channel: isOn(channels.channel) ? row.channel : null,
      ...(isPublic && !row.isLocal ? heardInPublic(heard.get(row.id) ?? []) : {}),
    })
  })
}

/** When and how a node was heard, as far as the public may know. `hearings`: by channel, the latest last. */
function heardInPublic(hearings: readonly Hearing[]): Partial<NodeRow> {
  const { lastHeard = null, hopsAway = null, viaMqtt = false, channel = null } = hearings.at(-1) ?? {}
  const firstHeard = Math.min(...hearings.map((each) => each.firstHeard), lastHeard ?? 0)
  return { firstHeard, lastHeard, hopsAway, viaMqtt, channel }
}

function earlierPlace(place: typeof channelPositions.$inferSelect | undefined): Partial<NodeRow> {
  const {
    latitude = null,
    longitude = null,
    altitude = null,
    precisionBits = null,
    t: positionTime = null,
  } = place ?? {}
  return { latitude, longitude, altitude, precisionBits, positionTime }
}

function earlierMetrics(measured: typeof channelMetrics.$inferSelect | undefined): Partial<NodeRow> {
  const { batteryLevel = null, voltage = null, channelUtilization = null } = measured ?? {}
  const { airUtilTx = null, uptimeSeconds = null, t: deviceMetricsTime = null } = measured ?? {}
  return { batteryLevel, voltage, channelUtilization, airUtilTx, uptimeSeconds, deviceMetricsTime }
}

function earlierStatus(said: typeof channelStatuses.$inferSelect | undefined): Partial<NodeRow> {
  return { status: said?.status ?? null, statusTime: said?.t ?? null }
}

/** Also finds a node by an earlier number. Throws `node_not_found`, also for a node that the view hides. */
async function findByAnyNum(store: Store, view: View, nodeNum: number): Promise<NodeRow> {
  const row = await readNodeRow(store, nodeNum)
  const present = row === null ? await readPresentNum(store, nodeNum) : null
  const found = present === null ? row : await readNodeRow(store, present)
  if (found === null || !seesNodes(view, [found.nodeNum])) throw new AppError('node_not_found')
  return found
}

/** One node, also by an earlier number. Throws `node_not_found`. */
export async function getNode(store: Store, view: View, nodeNum: number): Promise<NodeDetail> {
  const row = await findByAnyNum(store, view, nodeNum)
  const [node] = await nodesSeenBy(store, view, [row])
  if (node === undefined) throw new AppError('node_not_found')
  const { publicKey, statusSigned } = row
  const [[suspected, refusing, claimed, renumbered] = []] = await rawRows<Kept>(queries(store).kept, row)
  const suspicions = (suspected ? await listSuspicions(store, row.nodeNum) : []).map((each) => {
    const gateway = seesNodes(view, [each.gateway]) ? each.gateway : null
    return { ...each, gateway, gatewayId: gateway === null ? null : formatNodeId(gateway) }
  })
  const refused = (await listAllRefused(store, row, refusing === 1)).map((each) => {
    const gateway = each.gateway !== null && seesNodes(view, [each.gateway]) ? each.gateway : null
    return { ...each, gateway, gatewayId: gateway === null ? null : formatNodeId(gateway) }
  })
  return {
    ...node,
    ...pickColumns(row, DETAILED),
    refused,
    ...(claimed ? await readClaims(store, row.nodeNum) : { claims: [], declaredOwn: null }),
    formerNodeNums: renumbered ? await listFormerNums(store, row.nodeNum) : [],
    suspicions,
    weakKey: publicKey !== null && isWeakKey(publicKey, sha256Hex),
    // Only of the one that the viewer sees.
    statusSigned: statusSigned && canReadChannel(view, channelsOf(row).status),
  }
}

/** One node for who may read nodes at all. Throws `node_not_found`. */
export async function seenNode({ store, viewer }: Reader, nodeNum: number): Promise<NodeDetail> {
  if (!viewer.permissions.nodes.read) throw new AppError('node_not_found')
  return getNode(store, viewer.view, nodeNum)
}

/** The row id of a node, also by an earlier number. Throws `node_not_found`. */
export async function getNodeRowId(store: Store, view: View, nodeNum: number): Promise<number> {
  const [row] = await rawRows<readonly [id: number]>(queries(store).id, { nodeNum })
  if (row === undefined) return (await findByAnyNum(store, view, nodeNum)).id
  if (!seesNodes(view, [nodeNum])) throw new AppError('node_not_found')
  return row[0]
}
