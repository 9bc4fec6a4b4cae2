import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { DAY_MS } from '../../../../shared/time.ts'
import { aboutHeard, defineRule } from '../rule.ts'

const MANY = 3

/** A gateway that hears nodes which nobody else delivers: with it they are lost. */
export const onlyGateway = defineRule({
  name: 'only_gateway',
  evidence: z.object({ lost: z.int().describe('Nodes that nobody else delivers') }),
  least: MANY + 1,
  async look(looking) {
    const { store, now } = looking
    const since = now - 2 * DAY_MS
    const rows = await aboutHeard(looking, (nums) =>
      store.db.all<{ nodeNum: number; gateway: number }>(
        sql`select r.node_num as nodeNum, max(r.gateway) as gateway, count(*) as n from json_each(${nums}) j
          cross join node_receivers r on r.node_num = j.value
          where r.last_at >= ${since} and r.node_num <> r.gateway
          group by r.node_num having n = 1 and gateway <> 0`,
      ),
    )
    const hidden = new Set(
      (await store.db.all<{ num: number }>(sql`select node_num as num from nodes where is_hidden`)).map(
        ({ num }) => num,
      ),
    )
    return Array.from(Map.groupBy(rows, ({ gateway }) => gateway))
      .filter(([gateway, list]) => list.length >= MANY && !hidden.has(gateway))
      .map(([gateway, list]) => ({
        nodes: [gateway, ...list.map(({ nodeNum }) => nodeNum)],
        subject: [gateway],
        channels: [],
        isLikely: true,
        evidence: { lost: list.length },
      }))
  },
})
