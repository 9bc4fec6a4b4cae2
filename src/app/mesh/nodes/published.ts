import { sql } from 'drizzle-orm'
import { nodes } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { readViewOf } from '../../accounts/access/anonymous-reader.ts'
import { readPublicView } from '../../accounts/access/public-access.ts'
import { findOwner } from '../../accounts/access/viewer.ts'
import { readView, seesNodes, type View } from '../../accounts/access/visible.ts'
import { findUserByName } from '../../accounts/users/users.ts'
import type { Ports } from '../../base/context.ts'
import { nodeForAnonymous } from './anonymous-node.ts'
import type { NodeRow } from './columns.ts'
import type { Node } from './nodes.ts'
import { nodesSeenBy } from './seen.ts'

/** What leaves the service about a node: never its position, its notes, or what it says. */
export type PublishedNode = Pick<
  Node,
  'nodeNum' | 'nodeId' | 'longName' | 'nameAltered' | 'hwModel' | 'firmwareVersion' | 'lastHeard'
> & {
  /** Null: not reported, or on a channel that the viewer may not read. */
  readonly power: { readonly batteryLevel: number | null; readonly voltage: number | null } | null
}

/** A published node keeps its place for this long after it was last heard, so that places do not change hands each minute. */
const KEEPS_PLACE_MS = 7 * DAY_MS

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  candidates: db
    .select()
    .from(nodes)
    .where(
      sql`id in (select id from nodes where is_local or is_favorite
          or node_num in (select value from json_each(${value('known')}))
        union select id from (select id from nodes where node_num not in (select value from json_each(${value('hidden')}))
          order by last_heard desc limit ${value('most')}))`,
    )
    .prepare(),
}))

type Needs = Pick<Ports, 'config' | 'store' | 'providers' | 'now'>

/**
 * The nodes that are published on behalf of a user, or of people without an account if `viewer` is null; at most `most`.
 * Null: the viewer may not see nodes, or does not exist. Hidden nodes never are, not even for an administrator.
 * `known`: the numbers of those that are published already.
 */
export async function readPublishedNodes(
  needs: Needs,
  viewer: string | null,
  { known, most }: { readonly known: readonly number[]; readonly most: number },
): Promise<readonly PublishedNode[] | null> {
  const { store, now } = needs
  const publicView = viewer === null ? await readPublicView(needs) : null
  const view = viewer === null ? await publicViewOf(needs, publicView) : await viewOfUser(needs, viewer)
  if (view === null) return null
  const values = { known: JSON.stringify(known), hidden: JSON.stringify([...view.hidden]), most }
  const rows = await queries(store).candidates.all(values)
  const shown = rows.filter(({ nodeNum }) => seesNodes(view, [nodeNum]))
  const seen = await nodesSeenBy(store, view, choose(shown, new Set(known), { most, now: now() }))
  return seen.map((node) => publish(publicView === null ? node : nodeForAnonymous(node, publicView)))
}

async function publicViewOf(needs: Needs, shown: Awaited<ReturnType<typeof readPublicView>>): Promise<View | null> {
  return shown?.permissions.nodes.read === true ? readViewOf(needs, shown) : null
}

async function viewOfUser(needs: Needs, username: string): Promise<View | null> {
  const user = await findUserByName(needs.store, username)
  const owner = user === null ? null : await findOwner(needs, user.id)
  if (owner === null || !owner.permissions.nodes.read) return null
  // Users who may change nodes see hidden ones, but here they see them as others do.
  return readView(needs.store, owner.view, { ...owner.permissions, nodes: { read: true, write: false } })
}

type Candidate = Pick<NodeRow, 'nodeNum' | 'isLocal' | 'isFavorite' | 'lastHeard'>

/** Own radios and favourites, then those that have a place and were heard lately, then the latest heard. */
export function choose<Row extends Candidate>(
  rows: readonly Row[],
  known: ReadonlySet<number>,
  { most, now }: { readonly most: number; readonly now: number },
): Row[] {
  const rank = ({ nodeNum, isLocal, isFavorite, lastHeard }: Candidate) => {
    if (isLocal || isFavorite) return 0
    return known.has(nodeNum) && now - (lastHeard ?? 0) < KEEPS_PLACE_MS ? 1 : 2
  }
  return rows
    .map((row) => ({ row, rank: rank(row) }))
    .toSorted((a, b) => a.rank - b.rank || (b.row.lastHeard ?? 0) - (a.row.lastHeard ?? 0))
    .slice(0, most)
    .map(({ row }) => row)
}

function publish(node: Node): PublishedNode {
  const { nodeNum, nodeId, longName, nameAltered, hwModel, firmwareVersion, lastHeard, deviceMetrics } = node
  const power =
    deviceMetrics === null ? null : { batteryLevel: deviceMetrics.batteryLevel, voltage: deviceMetrics.voltage }
  return { nodeNum, nodeId, longName, nameAltered, hwModel, firmwareVersion, lastHeard, power }
}
