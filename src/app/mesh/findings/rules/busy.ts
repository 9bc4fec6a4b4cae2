import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { hasRuns } from '../../../../db/runs.ts'
import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { oldestMeasured } from '../oldest.ts'
import { packedHours } from '../packed.ts'
import { aboutHeard, defineRule } from '../rule.ts'

/** From 25 % on firmware sends its own measurements less often; from 40 % on none. */
const BUSY = 25
const METRIC = 'deviceMetrics.channelUtilization'

const isAsked = (nums: string) => sql`m.name = ${METRIC} and n.node_num in (select value from json_each(${nums}))`

/** A place where the channel is nearly full. */
export const busy = defineRule({
  name: 'busy',
  evidence: z.object({ use: z.number().describe('Percent of the time, the average of the last day') }),
  past: { everyMs: 6 * HOUR_MS, oldest: oldestMeasured('telemetry_hourly', METRIC) },
  async look(looking) {
    const { store, now } = looking
    const isPacked = await hasRuns(store)
    const rows = await aboutHeard(looking, (nums) =>
      store.db.all<{ nodeNum: number; mean: number; channel: number | null }>(
        sql`select nodeNum, sum(sum) / sum(n) as mean, channel from (
            select n.node_num as nodeNum, d.n as n, d.sum as sum, d.channel as channel
            from metrics m cross join nodes n cross join telemetry_hourly d on d.node_id = n.id and d.metric = m.id
            where ${isAsked(nums)} and d.t between ${now - DAY_MS} and ${now}
            ${isPacked ? sql`union all ${packedHours({ isAsked: isAsked(nums), from: now - DAY_MS, to: now })}` : sql``})
          group by nodeNum, channel having count(*) >= 3 and mean >= ${BUSY}`,
      ),
    )
    return rows.map(({ nodeNum, mean, channel }) => ({
      nodes: [nodeNum],
      channels: [channel],
      isLikely: true,
      evidence: { use: Math.round(mean) },
    }))
  },
})
