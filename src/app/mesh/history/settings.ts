import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { auditLog, sources } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import type { SignedInCtx } from '../../base/context.ts'

/** Entries of each action that are looked at, the latest. */
const LATEST = 2000

/** What somebody set about a node on this service, or at the node from here. */
export type SettingsChange = {
  readonly t: number
  /** Username at that time; null: the service. */
  readonly by: string | null
  /** The section of its configuration; null: what is known of it here. */
  readonly section: string | null
  readonly fields: readonly string[]
  readonly isRestart: boolean
}

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  ofNodes: db
    .select({
      t: sql<number>`x.timestamp`,
      by: sql<string | null>`x.username`,
      details: sql<string>`x.details`,
    })
    .from(
      sql`(select id, timestamp, username, details from ${auditLog} where action = ${value('action')}
        order by id desc limit ${sql.raw(String(LATEST))}) x
        where x.timestamp >= ${value('since')} and (x.details ->> '$.nodeNum' in (select value from json_each(${value('nums')}))
          or x.details ->> '$.nodeNum' is null and x.details ->> '$.source' in (select name from ${sources}
            where local_node_num in (select value from json_each(${value('nums')}))))`,
    )
    .orderBy(sql`x.id desc`)
    .prepare(),
}))

const detailsSchema = z.object({
  section: z.string().nullish(),
  restart: z.boolean().nullish(),
  before: z.record(z.string(), z.unknown()).nullish(),
  after: z.record(z.string(), z.unknown()).nullish(),
  secretsChanged: z.array(z.string()).nullish(),
})

/** Who set what about a node with these numbers, from the audit log. Only for signed-in administrators, who may read that. */
export async function listSettings(
  { store, viewer }: SignedInCtx,
  nums: readonly number[],
  since: number,
): Promise<SettingsChange[]> {
  if (!viewer.user.isAdmin || viewer.credential.kind !== 'session') return []
  const asked = { nums: JSON.stringify(nums), since }
  const rows = [
    ...(await queries(store).ofNodes.all({ ...asked, action: 'node_updated' })),
    ...(await queries(store).ofNodes.all({ ...asked, action: 'configuration_updated' })),
  ]
  return rows.flatMap(({ t, by, details }) => {
    const { data } = detailsSchema.safeParse(JSON.parse(details))
    if (data === undefined) return []
    const { section = null, restart, before, after, secretsChanged } = data
    // Their names alone: values may be long, and the audit log has them.
    const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {}), ...(secretsChanged ?? [])])]
    return [{ t, by, section, fields, isRestart: restart === true }]
  })
}
