import { desc, eq, max, sql } from 'drizzle-orm'
import { nodeReceivers, sources } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import { ofVisibleNodes, visibleValues } from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  ofNodes: db
    .select({
      sourceId: nodeReceivers.sourceId,
      source: sources.name,
      kind: sources.kind,
      gateway: nodeReceivers.gateway,
      firstAt: nodeReceivers.firstAt,
      lastAt: nodeReceivers.lastAt,
      packets: nodeReceivers.packets,
      direct: nodeReceivers.direct,
      snr: nodeReceivers.snr,
      hops: nodeReceivers.hops,
    })
    .from(nodeReceivers)
    .innerJoin(sources, eq(sources.id, nodeReceivers.sourceId))
    .where(
      sql`${nodeReceivers.nodeNum} in (select value from json_each(${value('nums')}))
        and ${ofVisibleNodes(nodeReceivers.gateway)}`,
    )
    .orderBy(desc(nodeReceivers.lastAt))
    .prepare(),
  latest: db
    .select({ at: max(nodeReceivers.lastAt) })
    .from(nodeReceivers)
    .where(sql`${nodeReceivers.sourceId} = ${value('sourceId')} and ${nodeReceivers.gateway} = ${value('gateway')}`)
    .prepare(),
}))

/** By whom a node with these numbers was heard, the latest first, without hidden gateways. */
export async function listReceivers({ store, viewer }: Reader, nums: readonly number[]) {
  const rows = await queries(store).ofNodes.all({ nums: JSON.stringify(nums), ...visibleValues(viewer.view) })
  return rows.map(({ gateway, ...row }) => ({ ...row, gateway: gateway === 0 ? null : gateway }))
}
export type Receiver = Awaited<ReturnType<typeof listReceivers>>[number]

/** When this receiver heard any node for the last time; null: unknown. */
export async function lastHearingOf({ store }: Reader, { sourceId, gateway }: Receiver): Promise<number | null> {
  return (await queries(store).latest.get({ sourceId, gateway: gateway ?? 0 }))?.at ?? null
}
