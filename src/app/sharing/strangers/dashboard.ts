import type { Ctx } from '../../context.ts'
import { type Dashboard, readFacts } from '../../system/dashboard.ts'
import type { PublicView } from '../public-view.ts'
import { readerFor } from './reader.ts'

/** The numbers of shown nodes and messages: nothing about the service, and nothing that counts hidden data. */
export async function readDashboardShown(ctx: Ctx, view: PublicView): Promise<Dashboard> {
  const { store, viewer } = await readerFor(ctx, view)
  const facts = await readFacts(store, viewer.view, ctx.now())
  // The packets of all channels would be counted.
  const hours = facts.hours.map(({ t, messages }) => ({ t, messages, packets: 0 }))
  const messages = hours.reduce((sum, hour) => sum + hour.messages, 0)
  return {
    counts: { ...facts.counts, messages, packets: 0 },
    activeSeconds: facts.activeSeconds,
    hours,
    channelUtilization: null,
    airUtilTx: null,
    measuredAt: null,
    link: null,
    links: [],
    lastBackup: null,
    storage: { databaseBytes: null },
  }
}
