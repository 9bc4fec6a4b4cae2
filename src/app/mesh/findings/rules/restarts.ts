import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { DAY_MS } from '../../../../shared/time.ts'
import { defineRule } from '../rule.ts'

const MANY = 3

/** A node that restarted several times in a day. */
export const restarts = defineRule({
  name: 'restarts',
  evidence: z.object({
    restarts: z.int().describe('In the last 24 hours'),
    longest: z.number().describe('Seconds, its longest uptime between them'),
  }),
  async look({ store, now }) {
    const rows = await store.db.all<{ nodeNum: number; n: number; longest: number; channel: number | null }>(
      sql`select c.node_num as nodeNum, count(*) as n, max(cast(c.before as real)) as longest, c.channel as channel
        from node_changes c cross join nodes x on x.node_num = c.node_num
        where c.field = 'restarted' and c.t >= ${now - DAY_MS} and not x.is_hidden
        group by c.node_num, c.channel having count(*) >= ${MANY}`,
    )
    return rows.map(({ nodeNum, n, longest, channel }) => ({
      nodes: [nodeNum],
      channels: [channel],
      isLikely: true,
      evidence: { restarts: n, longest },
    }))
  },
})
