import { eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { nodeDays, nodes } from '../../../../db/schema.ts'
import { DAY_MS } from '../../../../shared/time.ts'
import { defineRule } from '../rule.ts'

const SHARE = 0.2
const MANY = 300
/** In a smaller mesh everybody has a large share. */
const NODES = 8

/** A node that sends much more than others. */
export const chatty = defineRule({
  name: 'chatty',
  evidence: z.object({
    packets: z.int().describe('Of the last whole day, UTC'),
    share: z.number().describe('Of the packets of all nodes, 0 to 1'),
  }),
  async look({ store, now }) {
    const day = Math.floor(now / DAY_MS) - 1
    const rows = await store.db
      .select({ nodeNum: nodeDays.nodeNum, packets: nodeDays.packets })
      .from(nodeDays)
      .innerJoin(nodes, eq(nodes.nodeNum, nodeDays.nodeNum))
      .where(sql`${nodeDays.day} = ${day} and not ${nodes.isHidden} and not ${nodes.isLocal}`)
      .all()
    const all = rows.reduce((sum, { packets }) => sum + packets, 0)
    if (rows.length < NODES) return []
    return rows
      .filter(({ packets }) => packets >= MANY && packets / all >= SHARE)
      .map(({ nodeNum, packets }) => ({
        nodes: [nodeNum],
        channels: [],
        isLikely: true,
        evidence: { packets, share: Math.round((packets / all) * 100) / 100 },
      }))
  },
})
