import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { distanceMetres } from '../../../../shared/mesh/distance.ts'
import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { defineRule } from '../rule.ts'

const MANY = 3
const NEAR_METRES = 5000
/** Of latitude: what is farther is not measured. */
const NEAR_DEGREES = 0.05
const TOGETHER_MS = HOUR_MS
const SILENT_MS = 3 * HOUR_MS

/** Nodes near each other that fell silent at the same time: a storm, a power cut, or what they all depend on. */
export const regionSilent = defineRule({
  name: 'region_silent',
  evidence: z.object({ at: z.int().describe('When the last of them was heard'), metres: z.number() }),
  least: MANY,
  async look({ store, now }) {
    const rows = await store.db.all<{
      nodeNum: number
      latitude: number
      longitude: number
      at: number
      channel: number | null
    }>(
      sql`select n.node_num as nodeNum, n.latitude, n.longitude, n.last_heard as at, n.position_channel as channel from nodes n
        where not n.is_hidden and n.latitude is not null and n.last_heard between ${now - 3 * DAY_MS} and ${now - SILENT_MS}
          and (select sum(d.packets) from node_days d where d.node_num = n.node_num
            and d.day between ${Math.floor(now / DAY_MS) - 8} and n.last_heard / ${DAY_MS}) >= 50
        order by n.last_heard desc limit 2000`,
    )
    const taken = new Set<number>()
    return rows.flatMap((first) => {
      const near = rows.filter(
        (other) =>
          !taken.has(other.nodeNum) &&
          first.at - other.at >= 0 &&
          first.at - other.at <= TOGETHER_MS &&
          Math.abs(first.latitude - other.latitude) < NEAR_DEGREES &&
          distanceMetres(first, other) <= NEAR_METRES,
      )
      if (taken.has(first.nodeNum) || near.length < MANY) return []
      for (const { nodeNum } of near) taken.add(nodeNum)
      const metres = Math.round(Math.max(...near.map((other) => distanceMetres(first, other))))
      return [
        {
          nodes: near.map(({ nodeNum }) => nodeNum),
          subject: [Math.min(...near.map(({ nodeNum }) => nodeNum))],
          channels: [...new Set(near.map(({ channel }) => channel))],
          isLikely: true,
          evidence: { at: first.at, metres },
        },
      ]
    })
  },
})
