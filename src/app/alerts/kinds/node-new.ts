import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { HOUR_MS } from '../../../shared/time.ts'
import { readNames } from '../world/node-names.ts'
import { readNodes } from '../past/past.ts'
import type { Fact } from '../facts.ts'
import { common } from './fields.ts'
import { type Batch, defineKind, type Event, nodeSubject, type Watching } from './kind.ts'
import { ALERT_NEEDS } from '../../../shared/alerts/alert-needs.ts'

const nodeNewSchema = z
  .strictObject({ kind: z.literal('node_new'), ...common })
  .meta({ id: 'NodeNewRule', description: 'A node is heard for the first time' })

export const nodeNew = defineKind(nodeNewSchema, {
  requires: ALERT_NEEDS.node_new,
  heard: findNew,
  async preview(ctx, _rule, { from }) {
    const recent = (await readNodes(ctx)).filter(({ firstHeard }) => firstHeard >= from)
    return {
      fires: recent.map(({ firstHeard, nodeNum, name }) => {
        return { at: firstHeard, resolvedAt: null, nodeNum, fact: factOf(name) }
      }),
      note: null,
    }
  },
})

const factOf = (name: string): Fact => ({ event: 'node_new', name })

const queries = prepareOnce((db) => ({
  facts: db
    .select({
      isFilled: sql<0 | 1>`exists (select 1 from nodes where first_heard <= ${sql.placeholder('before')})`,
      isRestored: sql<0 | 1>`exists
        (select 1 from audit_log where action = 'system_restored'
          and timestamp > ${sql.placeholder('before')} and timestamp <= ${sql.placeholder('now')})`,
    })
    .from(sql`(select 1)`)
    .prepare(),
}))

/** For this long after the first node was heard, and after a restore, every node would count as new. */
const FILL_MS = HOUR_MS

async function isFilling(store: Store, now: number): Promise<boolean> {
  const facts = await queries(store).facts.get({ before: now - FILL_MS, now })
  return facts?.isFilled !== 1 || facts.isRestored === 1
}

/** Unknown nodes that were heard just now; none while the database fills. */
async function findNew(store: Store, rules: readonly Watching[], batch: Batch): Promise<Event[]> {
  const { plan, newNodes, now } = batch
  if (rules.length === 0 || newNodes.size === 0) return []
  const heard = new Set(plan.news.map(({ packet }) => packet.from).filter((nodeNum) => newNodes.has(nodeNum)))
  if (heard.size === 0 || (await isFilling(store, now))) return []
  const nameOf = await readNames(store, plan, [...heard])
  return [...heard].flatMap((nodeNum) =>
    rules.map((watching) => ({
      watching,
      subject: nodeSubject(nodeNum),
      key: `${nodeNum}@${now}`,
      nodeNum,
      channel: null,
      direct: false,
      fact: factOf(nameOf(nodeNum)),
    })),
  )
}
