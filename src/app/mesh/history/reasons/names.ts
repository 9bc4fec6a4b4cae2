import { inArray } from 'drizzle-orm'
import { nodes } from '../../../../db/schema.ts'
import type { Reader } from '../../../base/context.ts'

/** The long names of nodes, by number. The caller knows that the viewer sees them. */
export async function namesOf({ store }: Reader, nums: readonly number[]): Promise<ReadonlyMap<number, string | null>> {
  if (nums.length === 0) return new Map()
  const rows = await store.db
    .select({ nodeNum: nodes.nodeNum, longName: nodes.longName })
    .from(nodes)
    .where(inArray(nodes.nodeNum, [...nums]))
    .all()
  return new Map(rows.map(({ nodeNum, longName }) => [nodeNum, longName]))
}
