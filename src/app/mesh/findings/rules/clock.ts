import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { defineRule } from '../rule.ts'

/** A node whose clock is wrong: its measurements stand at another time. */
export const clock = defineRule({
  name: 'clock',
  evidence: z.object({ ahead: z.number().describe('Milliseconds; negative: behind') }),
  async look({ store, now }) {
    const rows = await store.db.all<{ nodeNum: number; ahead: number; channel: number | null }>(
      sql`select node_num as nodeNum, telemetry_time - device_metrics_time as ahead, metrics_channel as channel from nodes
        where not is_hidden and last_heard >= ${now - DAY_MS} and telemetry_time is not null
          and abs(telemetry_time - device_metrics_time) > ${HOUR_MS}`,
    )
    return rows.map(({ nodeNum, ahead, channel }) => ({
      nodes: [nodeNum],
      channels: [channel],
      isLikely: true,
      evidence: { ahead },
    }))
  },
})
