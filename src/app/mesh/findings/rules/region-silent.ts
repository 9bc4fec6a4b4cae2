import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { distanceMetres } from '../../../../shared/mesh/distance.ts'
import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { defineRule, type Found, type Looking } from '../rule.ts'

const MANY = 3
const NEAR_METRES = 5000
/** Of latitude: what is farther is not measured. */
const NEAR_DEGREES = 0.05
const TOGETHER_MS = HOUR_MS
const SILENT_MS = 3 * HOUR_MS

/** Nodes that are compared with all others in a slice. */
const SLICE = 50
/** Nodes whose packets are summed up in a slice; more where each query is a round trip. */
const SUMMED = 500
const SUMMED_AFAR = 5000
/** Nodes that are compared at most, and the packets of a week that one has if it is usually heard. */
const MOST = 2000
const USUAL_PACKETS = 50

const evidence = z.object({ at: z.int().describe('When the last of them was heard'), metres: z.number() })

/** Nodes near each other that fell silent at the same time: a storm, a power cut, or what they all depend on. */
export const regionSilent = defineRule({
  name: 'region_silent',
  evidence,
  least: MANY,
  async look({ store, now, pause }) {
    const rows = await readSilent({ store, now, pause })
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

type Silent = {
  readonly nodeNum: number
  readonly latitude: number
  readonly longitude: number
  readonly at: number
  readonly channel: number | null
}

/** Nodes with a position that were heard often and are silent now, the latest heard first. */
async function readSilent({ store, now, pause }: Pick<Looking, 'store' | 'now' | 'pause'>): Promise<readonly Silent[]> {
  const silent: Silent[] = []
  const limit = store.batch === undefined ? SUMMED : SUMMED_AFAR
  const firstDay = Math.floor(now / DAY_MS) - 8
  let [at, num] = [now - SILENT_MS, Number.MAX_SAFE_INTEGER]
  for (;;) {
    const rows = await store.db.all<Silent & { readonly packets: number | null }>(
      sql`select n.node_num as nodeNum, n.latitude, n.longitude, n.last_heard as at, n.position_channel as channel,
          (select sum(d.packets) from node_days d where d.node_num = n.node_num
            and d.day between ${firstDay} and n.last_heard / ${DAY_MS}) as packets
        from (select node_num, latitude, longitude, last_heard, position_channel from nodes
          where not is_hidden and latitude is not null and last_heard between ${now - 3 * DAY_MS} and ${at}
            and (last_heard, node_num) < (${at}, ${num})
          order by last_heard desc, node_num desc limit ${limit}) n
        order by at desc, nodeNum desc`,
    )
    for (const { packets, ...node } of rows) if ((packets ?? 0) >= USUAL_PACKETS) silent.push(node)
    const last = rows.at(-1)
    if (last === undefined || rows.length < limit || silent.length >= MOST || !(await pause()))
      return silent.slice(0, MOST)
    ;[at, num] = [last.at, last.nodeNum]
  }
}
