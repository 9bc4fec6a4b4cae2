import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { DAY_MS } from '../../../../shared/time.ts'
import { defineRule } from '../rule.ts'

const MANY = 3

/** A gateway that hears nodes which nobody else delivers: with it they are lost. */
export const onlyGateway = defineRule({
  name: 'only_gateway',
  evidence: z.object({ lost: z.int().describe('Nodes that nobody else delivers') }),
  least: MANY + 1,
  async look({ store, now }) {
    const since = now - 2 * DAY_MS
    const rows = await store.db.all<{ nodeNum: number; gateway: number; sources: number }>(
      sql`select r.node_num as nodeNum, max(r.gateway) as gateway, count(*) as n from node_receivers r
        cross join nodes x on x.node_num = r.node_num
        where r.last_at >= ${since} and not x.is_hidden and r.node_num <> r.gateway
        group by r.node_num having n = 1 and gateway <> 0`,
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
