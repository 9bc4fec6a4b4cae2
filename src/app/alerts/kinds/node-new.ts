import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { nodes } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { HOUR_MS } from '../../../shared/time.ts'
import { readNames } from '../node-names.ts'
import { readNodes } from '../preview/past.ts'
import { common } from './fields.ts'
import { type Batch, defineKind, type Event, nodeSubject, type Watching } from './kind.ts'

const nodeNewSchema = z
  .strictObject({ kind: z.literal('node_new'), ...common })
  .meta({ id: 'NodeNewRule', description: 'A node is heard for the first time' })

export const nodeNew = defineKind(nodeNewSchema, {
  heard: findNew,
  async preview(ctx, _rule, { from }) {
    const recent = (await readNodes(ctx)).filter(({ firstHeard }) => firstHeard >= from)
    return {
      fires: recent.map(({ firstHeard, nodeNum, name }) => {
        return { at: firstHeard, resolvedAt: null, nodeNum, what: sentence(name) }
      }),
      note: null,
    }
  },
})

const sentence = (name: string) => `${name} was heard for the first time`

const queries = prepareOnce((db) => ({
  first: db
    .select({ at: sql<number | null>`min(first_heard)` })
    .from(nodes)
    .prepare(),
}))

/** For this long after the first node was heard, all nodes are new. */
const FILL_MS = HOUR_MS

/** Whether an unknown node is news. `firstHeard`: of the node known longest; null: there is none. */
function isNewsworthy(firstHeard: number | null, now: number): boolean {
  return firstHeard !== null && now - firstHeard >= FILL_MS
}

/** Unknown nodes that were heard just now; none while all nodes are new. */
async function findNew(store: Store, rules: readonly Watching[], batch: Batch): Promise<Event[]> {
  const { plan, newNodes, now } = batch
  if (rules.length === 0 || newNodes.size === 0) return []
  const heard = new Set(plan.news.map(({ packet }) => packet.from).filter((nodeNum) => newNodes.has(nodeNum)))
  if (heard.size === 0 || !isNewsworthy((await queries(store).first.get())?.at ?? null, now)) return []
  const nameOf = await readNames(store, plan, [...heard])
  return [...heard].flatMap((nodeNum) =>
    rules.map((watching) => ({
      watching,
      subject: nodeSubject(nodeNum),
      key: `${nodeNum}@${now}`,
      nodeNum,
      channel: null,
      direct: false,
      what: sentence(nameOf(nodeNum)),
    })),
  )
}
