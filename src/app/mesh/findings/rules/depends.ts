import { eq } from 'drizzle-orm'
import * as z from 'zod'
import { nodes } from '../../../../db/schema.ts'
import { lostWithout } from '../../../../shared/mesh/graph.ts'
import { defineRule } from '../rule.ts'

/** Nodes that must depend on one for it to be told. */
const MANY = 3

/** Without this node, others are not reached from our radios any more. */
export const depends = defineRule({
  name: 'depends',
  evidence: z.object({ lost: z.int().describe('Nodes that are not reached without it') }),
  least: MANY + 1,
  async look({ store, links, pause }) {
    const own = await store.db.select({ nodeNum: nodes.nodeNum }).from(nodes).where(eq(nodes.isLocal, true)).all()
    const roots = own.map(({ nodeNum }) => nodeNum)
    if (!(await pause())) return []
    const channels = [...new Set(links.map(({ channel }) => channel))]
    return Array.from(await lostWithout(links, roots, pause), ([node, { count, some }]) => ({
      nodes: [node, ...some],
      subject: [node],
      channels,
      isLikely: true,
      evidence: { lost: count },
    })).filter(({ evidence }) => evidence.lost >= MANY)
  },
})
