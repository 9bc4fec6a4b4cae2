import { sql } from 'drizzle-orm'
import { nodes } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import type { Plan } from '../../mesh/ingest/plan.ts'
import { cleanText } from '../names.ts'

const queries = prepareOnce((db) => ({
  names: db
    .select({ nodeNum: nodes.nodeNum, longName: nodes.longName, nameAltered: nodes.nameAltered })
    .from(nodes)
    .where(sql`node_num in (select value from json_each(${sql.placeholder('nums')}))`)
    .prepare(),
}))

/** Names of nodes after a batch. */
export async function readNames(
  store: Store,
  plan: Plan,
  nums: readonly number[],
): Promise<(nodeNum: number) => string> {
  const rows = await queries(store).names.all({ nums: JSON.stringify([...new Set(nums)]) })
  const names = new Map<number, Named>(rows.map((row) => [row.nodeNum, row]))
  for (const { nodeNum, longName = null, nameAltered = false } of plan.heard) {
    if (longName !== null && !names.has(nodeNum)) names.set(nodeNum, { nodeNum, longName, nameAltered })
  }
  return (nodeNum) => shownName(names.get(nodeNum) ?? { nodeNum, longName: null, nameAltered: false })
}

type Named = Pick<typeof nodes.$inferSelect, 'nodeNum' | 'longName' | 'nameAltered'>

/** The displayed name of a node. With its id, if the name of another node may look exactly like it. */
export function shownName({ nodeNum, longName, nameAltered }: Named): string {
  const name = longName === null ? '' : cleanText(longName, 60)
  if (name === '') return formatNodeId(nodeNum)
  return nameAltered ? `${name} (${formatNodeId(nodeNum)})` : name
}
