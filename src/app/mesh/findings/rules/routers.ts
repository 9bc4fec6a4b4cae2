import { and, eq, inArray } from 'drizzle-orm'
import * as z from 'zod'
import { nodes } from '../../../../db/schema.ts'
import { Config_DeviceConfig_Role } from '../../../../meshtastic/gen/config_pb.ts'
import { defineRule } from '../rule.ts'

const ROUTERS = [
  Config_DeviceConfig_Role.ROUTER,
  Config_DeviceConfig_Role.ROUTER_LATE,
  Config_DeviceConfig_Role.REPEATER,
]
/** Two that hear each other as well as this stand beside each other. */
const BESIDE_DB = 3

/** Two routers that hear each other very well: both repeat every packet, and one of them would do. */
export const routers = defineRule({
  name: 'routers',
  evidence: z.object({ snr: z.number().describe('dB with which one hears the other') }),
  async look({ store, links }) {
    const rows = await store.db
      .select({ nodeNum: nodes.nodeNum })
      .from(nodes)
      .where(and(inArray(nodes.role, ROUTERS), eq(nodes.isHidden, false)))
      .all()
    const isRouter = new Set(rows.map(({ nodeNum }) => nodeNum))
    const pairs = new Map<string, (typeof links)[number] & { snr: number }>()
    for (const link of links) {
      const { from, to, snr } = link
      if (snr === null || snr < BESIDE_DB || !isRouter.has(from) || !isRouter.has(to)) continue
      const key = [from, to].toSorted((a, b) => a - b).join(' ')
      if ((pairs.get(key)?.snr ?? -Infinity) < snr) pairs.set(key, { ...link, snr })
    }
    return Array.from(pairs.values(), ({ from, to, snr, channel }) => ({
      nodes: [Math.min(from, to), Math.max(from, to)],
      channels: [channel],
      isLikely: false,
      evidence: { snr },
    }))
  },
})
