import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { DAY_MS } from '../../../../shared/time.ts'
import { oldestHearing } from '../oldest.ts'
import { aboutHeard, defineRule } from '../rule.ts'

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
  past: { everyMs: DAY_MS, oldest: oldestHearing },
  async look(looking) {
    const { store, now } = looking
    const day = Math.floor(now / DAY_MS) - 1
    const rows = await aboutHeard(looking, (nums) =>
      store.db.all<{ nodeNum: number; packets: number }>(
        sql`select d.node_num as nodeNum, d.packets from json_each(${nums}) j
          cross join node_days d on d.node_num = j.value and d.day = ${day}
          cross join nodes n on n.node_num = d.node_num and not n.is_local`,
      ),
    )
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
