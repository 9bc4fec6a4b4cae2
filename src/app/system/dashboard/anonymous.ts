import { sql } from 'drizzle-orm'
import { nodes } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import type { Ctx } from '../../base/context.ts'
import { type Dashboard, readFacts } from './dashboard.ts'
import type { PublicView } from '../../accounts/access/public-view.ts'
import { heardInPublic, ofNodesSeenBy, type View, visibleValues } from '../../accounts/access/visible.ts'
import { readerFor } from '../../accounts/access/anonymous-reader.ts'

/** The numbers of shown nodes and messages. Contains nothing about the service, and nothing that counts hidden data. */
export async function readDashboardShown(ctx: Ctx, view: PublicView): Promise<Dashboard> {
  const { store, viewer } = await readerFor(ctx, view)
  const facts = await readFacts(store, viewer.view, ctx.now())
  // Packets are left out, because those of all channels would be counted.
  const hours = facts.hours.map(({ t, messages }) => ({ t, messages, packets: 0 }))
  const messages = hours.reduce((sum, hour) => sum + hour.messages, 0)
  return {
    counts: { ...(await countNodes(store, viewer.view, ctx.now() - 1000 * facts.activeSeconds)), messages, packets: 0 },
    activeSeconds: facts.activeSeconds,
    hours,
    dayBefore: facts.dayBefore && { messages: facts.dayBefore.messages, packets: null },
    channelUtilization: null,
    airUtilTx: null,
    measuredAt: null,
    link: null,
    links: [],
    lastBackup: null,
    storage: { databaseBytes: null },
  }
}

/** The nodes that are shown, and those of them heard in public at or after `since`. */
async function countNodes({ db }: Store, view: View, since: number): Promise<{ nodes: number; activeNodes: number }> {
  const heardAt = heardInPublic('nodes', visibleValues(view).seenChannels)
  const row = await db
    .select({ nodes: sql<number>`count(*)`, activeNodes: sql<number>`coalesce(sum(${heardAt} >= ${since}), 0)` })
    .from(nodes)
    .where(ofNodesSeenBy(view, nodes.nodeNum))
    .get()
  return row ?? { nodes: 0, activeNodes: 0 }
}
