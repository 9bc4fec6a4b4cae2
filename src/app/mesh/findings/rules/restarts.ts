import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { oldestHearing } from '../oldest.ts'
import { aboutHeard, defineRule } from '../rule.ts'

const MANY = 3

/** A node that restarted several times in a day. */
export const restarts = defineRule({
  name: 'restarts',
  evidence: z.object({
    restarts: z.int().describe('In the last 24 hours'),
    longest: z.number().describe('Seconds, its longest uptime between them'),
  }),
  past: { everyMs: 6 * HOUR_MS, oldest: oldestHearing },
  async look(looking) {
    const { store, now } = looking
    const rows = await aboutHeard(looking, (nums) =>
      store.db.all<{ nodeNum: number; n: number; longest: number; channel: number | null }>(
        sql`select c.node_num as nodeNum, count(*) as n, max(cast(c.before as real)) as longest, c.channel as channel
          from json_each(${nums}) j cross join node_changes c on c.node_num = j.value
          where c.field = 'restarted' and c.t between ${now - DAY_MS} and ${now}
          group by c.node_num, c.channel having count(*) >= ${MANY}`,
      ),
    )
    return rows.map(({ nodeNum, n, longest, channel }) => ({
      nodes: [nodeNum],
      channels: [channel],
      isLikely: true,
      evidence: { restarts: n, longest },
    }))
  },
})
