import type { Ctx } from '../../context.ts'
import { MAX_NODES } from '../../mesh/nodes/list.ts'
import { readSettings } from '../../settings/settings.ts'
import type { Dashboard } from '../../system/dashboard.ts'
import { firstHour, trafficHours } from '../../system/traffic-hours.ts'
import type { PublicView } from '../public-view.ts'
import { listNodesShown } from './nodes.ts'

/** The numbers of shown and active nodes: nothing about the service, and nothing that counts hidden data. */
export async function readDashboardShown(ctx: Ctx, view: PublicView): Promise<Dashboard> {
  const { nodeActiveSeconds: activeSeconds } = await readSettings(ctx.store)
  const nodes = await listNodesShown(ctx, view, { limit: MAX_NODES })
  const since = ctx.now() - activeSeconds * 1000
  const activeNodes = nodes.filter(({ lastHeard }) => lastHeard !== null && lastHeard >= since).length
  return {
    counts: { nodes: nodes.length, activeNodes, messages: 0, packets: 0 },
    activeSeconds,
    hours: trafficHours(firstHour(ctx.now()), [], []),
    channelUtilization: null,
    airUtilTx: null,
    measuredAt: null,
    link: null,
    links: [],
    lastBackup: null,
    storage: { databaseBytes: null },
  }
}
