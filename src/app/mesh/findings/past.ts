import { desc, eq, sql } from 'drizzle-orm'
import { nodes } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import type { FindingRule } from '../../../shared/mesh/finding-rules.ts'
import { DAY_MS } from '../../../shared/time.ts'
import type { Pause } from '../../base/pacing/slices.ts'
import { MAX_FINDINGS } from './look.ts'
import { aboutHeard, type Looking } from './rule.ts'
import { RULES } from './rules.ts'
import type { About } from './seen.ts'

/** Nodes whose past is looked at, those heard last: anybody on a mesh can make up any number. */
const MAX_KNOWN = 5000

/** What a rule would have found. `from`: the first look that finds it; `until`: the first one after that does not. */
export type PastFinding = About & { readonly from: number; readonly until: number | null }

export type Past = {
  readonly found: readonly PastFinding[]
  /** When what is stored begins, by rule; null: only the present is stored. */
  readonly since: ReadonlyMap<FindingRule, number | null>
}

type Asked = {
  readonly names: readonly FindingRule[]
  readonly from: number
  readonly to: number
}

/**
 * What rules would have found between two times, from what is stored. Only what a rule looks at, nobody's view: see
 * `nodesSeen`. Awaits `pause` after each slice.
 */
export async function lookBack(store: Store, { names, from, to }: Asked, pause: Pause): Promise<Past> {
  const known = await store.db
    .select({ nodeNum: nodes.nodeNum })
    .from(nodes)
    .where(eq(nodes.isHidden, false))
    .orderBy(desc(nodes.lastHeard))
    .limit(MAX_KNOWN)
    .all()
  const looking: Looking = { store, now: to, links: [], heard: known.map(({ nodeNum }) => nodeNum), pause }
  const days = new Map<number, readonly number[]>()
  const heardAt = async (at: number): Promise<readonly number[]> => {
    const day = Math.floor(at / DAY_MS)
    const heard = days.get(day) ?? (await readHeard(looking, day))
    days.set(day, heard)
    return heard
  }
  const since = new Map<FindingRule, number | null>()
  const found: PastFinding[] = []
  for (const { name, past, look } of RULES) {
    if (!names.includes(name)) continue
    const oldest = past === null ? null : ((await past.oldest(looking)) ?? to)
    since.set(name, oldest === null ? null : Math.max(from, oldest))
    if (past === null || oldest === null) continue
    const open = new Map<string, About & { readonly from: number }>()
    const first = Math.max(from, oldest)
    for (let at = to - Math.floor((to - first) / past.everyMs) * past.everyMs; at <= to; at += past.everyMs) {
      const now = (await look({ ...looking, now: at, heard: await heardAt(at) })).slice(0, MAX_FINDINGS)
      const bySubject = new Map(now.map((each) => [(each.subject ?? each.nodes).join('-'), each]))
      for (const [subject, each] of open) {
        if (bySubject.has(subject)) continue
        found.push({ ...each, until: at })
        open.delete(subject)
      }
      for (const [subject, { nodes: named, channels }] of bySubject)
        if (!open.has(subject)) open.set(subject, { rule: name, subject, nodes: named, channels, from: at })
      if (!(await pause())) return { found, since }
    }
    for (const each of open.values()) found.push({ ...each, until: null })
  }
  return { found, since }
}

/** Nodes heard on a day (UTC) or the day before it. */
async function readHeard(looking: Looking, day: number): Promise<readonly number[]> {
  const rows = await aboutHeard(looking, (nums) =>
    looking.store.db.all<{ nodeNum: number }>(
      sql`select distinct d.node_num as nodeNum from json_each(${nums}) j
        cross join node_days d on d.node_num = j.value and d.day between ${day - 1} and ${day}`,
    ),
  )
  return rows.map(({ nodeNum }) => nodeNum)
}
