import { sql } from 'drizzle-orm'
import { nodes } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { formatNodeId } from '../../meshtastic/node-id.ts'
import type { Plan } from '../mesh/ingest/plan.ts'
import { cleanText } from './names.ts'

const queries = prepareOnce((db) => ({
  names: db
    .select({ nodeNum: nodes.nodeNum, longName: nodes.longName })
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
  const names = new Map(rows.map(({ nodeNum, longName }) => [nodeNum, longName]))
  for (const { nodeNum, longName } of plan.heard) {
    if (longName !== undefined && longName !== null && !names.has(nodeNum)) names.set(nodeNum, longName)
  }
  return (nodeNum) => shownName(nodeNum, names.get(nodeNum) ?? null)
}

/** The displayed name of a node. */
export function shownName(nodeNum: number, longName: string | null): string {
  const name = longName === null ? '' : cleanText(longName, 60)
  return name === '' ? formatNodeId(nodeNum) : name
}
