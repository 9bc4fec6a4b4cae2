import { and, eq, isNull, sql } from 'drizzle-orm'
import { findingMutes, findings, nodes } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { type About, nodesLeft, parseFound } from '../../mesh/findings/seen.ts'
import { IS_IMPORTED } from './imported.ts'
import { shownName } from './node-names.ts'
import { type WatchedNode, watchedColumns } from './watched.ts'

/** What is wrong in the mesh. `node`: the one to visit. */
export type WorldFinding = About & {
  /** When it was found first, without a look between that did not find it. */
  readonly since: number
  readonly node: WatchedNode & { readonly name: string }
}

const first = sql<number>`${findings.nodes} ->> '$[0]'`

const queries = prepareOnce((db) => ({
  all: db
    .select({
      rule: findings.rule,
      subject: findings.subject,
      since: findings.since,
      nodes: findings.nodes,
      channels: findings.channels,
      first,
      node: watchedColumns,
      longName: nodes.longName,
      nameAltered: nodes.nameAltered,
    })
    .from(findings)
    .leftJoin(nodes, eq(nodes.nodeNum, first))
    .leftJoin(findingMutes, and(eq(findingMutes.rule, findings.rule), eq(findingMutes.subject, findings.subject)))
    .where(isNull(findingMutes.rule))
    .prepare(),
  imported: db
    .select({ nodeNum: nodes.nodeNum })
    .from(nodes)
    .where(sql`node_num in (select j.value from findings f, json_each(f.nodes) j) and ${IS_IMPORTED}`)
    .prepare(),
}))

/** What is wrong in the mesh, as found by the latest look, without what is muted and what is known from an import alone. */
export async function readMeshFindings(store: Store): Promise<WorldFinding[]> {
  const rows = await queries(store).all.all()
  const imported = new Set((await queries(store).imported.all()).map(({ nodeNum }) => nodeNum))
  const isHeard = (nums: readonly number[]) => nums.every((num) => !imported.has(num))
  const all = rows.map(({ since, first: nodeNum, node, longName, nameAltered, ...row }) => ({
    ...parseFound(row),
    since,
    node: {
      ...(node ?? { nodeNum, role: null, isFavorite: false, isLocal: false, isIgnored: false }),
      name: shownName({ nodeNum, longName, nameAltered: nameAltered ?? false }),
    },
  }))
  return all.filter((found) => nodesLeft(found, isHeard) !== null)
}
