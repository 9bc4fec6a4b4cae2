import { sql } from 'drizzle-orm'
import { deletedNodes } from '../../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../../db/store.ts'

/** A node, and when it was heard, in milliseconds, if known. */
export type LastWord = { readonly nodeNum: number; readonly lastHeard?: number | null }

const queries = prepareOnce((db) => ({
  unheard: db
    .select({ nodeNum: sql<number>`d.node_num`, deletedAt: sql<number>`d.deleted_at` })
    .from(
      sql`json_each(${sql.placeholder('keys')}) k cross join ${deletedNodes} d on d.node_num = k.value
        and not exists (select 1 from nodes where node_num = d.node_num)`,
    )
    .prepare(),
}))

/** The `words` that come only from a radio's memory and whose node was deleted since. */
export async function listDeleted<Word extends LastWord>(store: Store, words: readonly Word[]): Promise<Word[]> {
  if (words.length === 0) return []
  const keys = JSON.stringify([...new Set(words.map(({ nodeNum }) => nodeNum))])
  const rows = await queries(store).unheard.all({ keys })
  const deleted = new Map(rows.map(({ nodeNum, deletedAt }) => [nodeNum, deletedAt]))
  return words.filter(({ nodeNum, lastHeard }) => (lastHeard ?? 0) <= (deleted.get(nodeNum) ?? -1))
}
