import { inArray } from 'drizzle-orm'
import { nodes } from '../../../../db/schema.ts'
import { formatNodeId } from '../../../../meshtastic/node-id.ts'
import { distanceMetres, roughness } from '../../../../shared/mesh/distance.ts'
import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { seesNodes } from '../../../accounts/access/visible.ts'
import { readTrack } from '../../nodes/positions.ts'
import { listNeighbors } from '../../topology/topology.ts'
import { readTraceroutes } from '../../topology/traceroutes.ts'
import type { Case, Found } from './case.ts'

const MAX_TRACEROUTES = 20
/** Anybody can report to hear a node: the latest count. */
const MAX_HEARERS = 50
/** Nodes fell silent together if no more than this, or two usual pauses, lies between. */
const TOGETHER_MS = 3 * HOUR_MS
const SILENT_MS = 2 * HOUR_MS
const TRACK_MS = 14 * DAY_MS
const MAX_POSITIONS = 10_000
/** A move this long before the silence may belong to it. */
const MOVED_MS = 2 * DAY_MS
const MOVE_METRES = 1000

/** Reasons between it and us: the nodes that carried its packets, and where it is. */
export async function lookAtWay(silence: Case): Promise<Found[]> {
  return [...(await lookAtRepeaters(silence)), ...(await lookAtMoves(silence))]
}

async function lookAtRepeaters(silence: Case): Promise<Found[]> {
  const { ctx, lastHeard, now, pause } = silence
  const nums = await listCarriers(silence)
  if (nums.length === 0) return []
  const rows = await ctx.store.db
    .select({ nodeNum: nodes.nodeNum, name: nodes.longName, lastHeard: nodes.lastHeard, isLocal: nodes.isLocal })
    .from(nodes)
    .where(inArray(nodes.nodeNum, nums))
    .all()
  const carriers = rows.filter(({ isLocal }) => !isLocal)
  const gone = carriers.flatMap(({ nodeNum, name, lastHeard: at }) => {
    const isGone = at !== null && now - at > SILENT_MS && Math.abs(at - lastHeard) <= Math.max(TOGETHER_MS, 2 * pause)
    return isGone ? [{ nodeNum, nodeId: formatNodeId(nodeNum), name, lastHeard: at }] : []
  })
  if (gone.length === 0) return []
  const others = carriers.length - gone.length
  const isLikely = others === 0
  return [{ weight: isLikely ? 84 : 54, reason: { kind: 'repeater', isLikely, gone, others } }]
}

/** Nodes that hear it, by their own reports and by traceroutes. A node that we hear directly needs none. */
async function listCarriers({ ctx, node, receivers }: Case): Promise<number[]> {
  const { nodeNum } = node
  if (receivers.some(({ gateway, direct, packets }) => gateway === null && direct * 2 > packets)) return []
  const { view } = ctx.viewer
  const hearers = (await listNeighbors(ctx, { node: nodeNum }))
    .filter(({ neighborNum }) => neighborNum === nodeNum)
    .slice(0, MAX_HEARERS)
  const traceroutes = await readTraceroutes(ctx, { limit: MAX_TRACEROUTES, node: nodeNum, answered: true })
  const besides = traceroutes.flatMap(({ fromNodeNum, route, routeBack }) => {
    const isAsker = fromNodeNum === nodeNum
    return [route?.at(isAsker ? 0 : -1), routeBack?.at(isAsker ? -1 : 0)].flatMap((num) => num ?? [])
  })
  return [...new Set([...hearers.map((each) => each.nodeNum), ...besides])].filter((num) => seesNodes(view, [num]))
}

async function lookAtMoves({ ctx, node, lastHeard }: Case): Promise<Found[]> {
  const range = { from: lastHeard - TRACK_MS, to: lastHeard + HOUR_MS, limit: MAX_POSITIONS }
  const { positions } = await readTrack(ctx, node.nodeNum, range)
  const last = positions.at(-1)
  if (last === undefined || last.time < lastHeard - MOVED_MS) return []
  const before = positions.filter(({ time }) => time < lastHeard - MOVED_MS)
  const home = middleOf(before.length > 0 ? before : positions.slice(0, Math.ceil(positions.length / 2)))
  if (home === undefined) return []
  const metres = distanceMetres(home, last)
  const isAway = metres - roughness(home.precisionBits) - roughness(last.precisionBits) >= MOVE_METRES
  if (!isAway) return []
  const isFar = metres >= 5 * MOVE_METRES
  return [
    { weight: isFar ? 76 : 58, reason: { kind: 'moved', isLikely: isFar, at: last.time, metres: Math.round(metres) } },
  ]
}

type Fix = Awaited<ReturnType<typeof readTrack>>['positions'][number]

/** Where it usually was: the position from which the others lie least far. */
function middleOf(positions: readonly Fix[]): Fix | undefined {
  const median = (pick: (fix: Fix) => number) => positions.map(pick).toSorted((a, b) => a - b)[positions.length >> 1]
  const [latitude, longitude] = [median((fix) => fix.latitude), median((fix) => fix.longitude)]
  if (latitude === undefined || longitude === undefined) return undefined
  const from = { latitude, longitude }
  return positions.reduce((best, fix) => (distanceMetres(from, fix) < distanceMetres(from, best) ? fix : best))
}
