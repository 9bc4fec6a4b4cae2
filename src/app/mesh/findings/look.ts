import { and, eq, getTableColumns, gte, sql } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../db/json-rows.ts'
import { findingLooks, findings, nodes } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { DAY_MS } from '../../../shared/time.ts'
import type { Pause } from '../../base/pacing/slices.ts'
import { readLinks } from './links.ts'
import type { Rule } from './rule.ts'
import { RULES } from './rules.ts'

/**
 * Findings of a rule that are kept, and nodes of each, the first ones: anybody on a mesh can make up any number, and each
 * look at the list reads all of them.
 */
export const MAX_FINDINGS = 50
const MAX_NODES = 100

const queries = prepareOnce((db) => ({
  store: prepareJsonInsert(db, findings, {
    values: Object.fromEntries(Object.keys(getTableColumns(findings)).map((name) => [name, field(name)])),
    onConflict: sql`on conflict (rule, subject) do update set is_likely = excluded.is_likely, nodes = excluded.nodes,
      channels = excluded.channels, evidence = excluded.evidence`,
  }),
}))

/**
 * Looks for everything that can be wrong, rule by rule, and stores what is found. Awaits `pause` after each rule, which
 * returns whether to continue. Returns the number of findings.
 */
export async function lookForFindings(store: Store, now: number, pause: Pause): Promise<number> {
  let goesOn = true
  const watched = async () => (goesOn = goesOn && (await pause()))
  const links = await readLinks(store, now, watched)
  if (!(await watched())) return 0
  const rows = await store.db
    .select({ nodeNum: nodes.nodeNum })
    .from(nodes)
    .where(and(eq(nodes.isHidden, false), gte(nodes.lastHeard, now - 2 * DAY_MS)))
    .all()
  const heard = rows.map(({ nodeNum }) => nodeNum)
  let count = 0
  for (const rule of RULES) {
    const found = (await rule.look({ store, now, links, heard, pause: watched })).slice(0, MAX_FINDINGS)
    // What was found until then is not all.
    if (!(await watched())) return count
    count += await keep(store, rule, found, now)
  }
  return count
}

async function keep(
  store: Store,
  { name }: Rule,
  found: Awaited<ReturnType<Rule['look']>>,
  now: number,
): Promise<number> {
  const rows = found.map(({ nodes: named, subject = named, channels, isLikely, evidence }) => ({
    rule: name,
    subject: subject.join('-'),
    since: now,
    isLikely,
    nodes: JSON.stringify(named.slice(0, MAX_NODES)),
    channels: JSON.stringify(channels),
    evidence: JSON.stringify(evidence),
  }))
  const unique = [...new Map(rows.map((row) => [row.subject, row])).values()]
  const subjects = JSON.stringify(unique.map(({ subject }) => subject))
  const isGone = and(
    eq(findings.rule, name),
    sql`${findings.subject} not in (select value from json_each(${subjects}))`,
  )
  const looked = store.db
    .insert(findingLooks)
    .values({ rule: name, at: now })
    .onConflictDoUpdate({ target: findingLooks.rule, set: { at: now } })
  await store.atomic([store.db.delete(findings).where(isGone), queries(store).store(unique), looked], 'lazily')
  return unique.length
}
