import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { distanceMetres } from '../../../../shared/mesh/distance.ts'
import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { defineRule, type Found } from '../rule.ts'

const MANY = 3
const NEAR_METRES = 5000
/** Of latitude: what is farther is not measured. */
const NEAR_DEGREES = 0.05
const TOGETHER_MS = HOUR_MS
const SILENT_MS = 3 * HOUR_MS

/** Nodes that are compared with all others in a slice. */
const SLICE = 50

const evidence = z.object({ at: z.int().describe('When the last of them was heard'), metres: z.number() })

/** Nodes near each other that fell silent at the same time: a storm, a power cut, or what they all depend on. */
export const regionSilent = defineRule({
  name: 'region_silent',
  evidence,
  least: MANY,
  async look({ store, now, pause }) {
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
    const found: Found<z.infer<typeof evidence>>[] = []
    for (const [index, first] of rows.entries()) {
      if (index % SLICE === SLICE - 1 && !(await pause())) return found
      if (taken.has(first.nodeNum)) continue
      const near = rows.filter(
        (other) =>
          !taken.has(other.nodeNum) &&
          first.at - other.at >= 0 &&
          first.at - other.at <= TOGETHER_MS &&
          Math.abs(first.latitude - other.latitude) < NEAR_DEGREES &&
          distanceMetres(first, other) <= NEAR_METRES,
      )
      if (near.length < MANY) continue
      for (const { nodeNum } of near) taken.add(nodeNum)
      const metres = Math.round(Math.max(...near.map((other) => distanceMetres(first, other))))
      found.push({
        nodes: near.map(({ nodeNum }) => nodeNum),
        subject: [Math.min(...near.map(({ nodeNum }) => nodeNum))],
        channels: [...new Set(near.map(({ channel }) => channel))],
        isLikely: true,
        evidence: { at: first.at, metres },
      })
    }
    return found
  },
})
