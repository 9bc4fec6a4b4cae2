import { and, eq, gte, notInArray, sql } from 'drizzle-orm'
import { findingLooks, findings, nodes } from '../../../db/schema.ts'
import type { Statement, Store } from '../../../db/store.ts'
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

/**
 * Looks for everything that can be wrong, rule by rule, and stores what is found. Awaits `pause` after each rule, which
 * returns whether to continue. Returns the number of findings.
 */
export async function lookForFindings(store: Store, now: number, pause: Pause): Promise<number> {
  const links = await readLinks(store, now, pause)
  if (!(await pause())) return 0
  const rows = await store.db
    .select({ nodeNum: nodes.nodeNum })
    .from(nodes)
    .where(and(eq(nodes.isHidden, false), gte(nodes.lastHeard, now - 2 * DAY_MS)))
    .all()
  const heard = rows.map(({ nodeNum }) => nodeNum)
  let count = 0
  for (const rule of RULES) {
    if (!(await pause())) return count
    count += await look(store, rule, { store, now, links, heard, pause })
  }
  return count
}

async function look(store: Store, rule: Rule, looking: Parameters<Rule['look']>[0]): Promise<number> {
  const { name } = rule
  const found = (await rule.look(looking)).slice(0, MAX_FINDINGS)
  await looking.pause()
  const rows = found.map(({ nodes: named, subject = named, channels, isLikely, evidence }) => ({
    rule: name,
    subject: subject.join('-'),
    since: looking.now,
    isLikely,
    nodes: JSON.stringify(named.slice(0, MAX_NODES)),
    channels: JSON.stringify(channels),
    evidence: JSON.stringify(evidence),
  }))
  const unique = [...new Map(rows.map((row) => [row.subject, row])).values()]
  const isGone = and(
    eq(findings.rule, name),
    notInArray(
      findings.subject,
      unique.map(({ subject }) => subject),
    ),
  )
  const writes: Statement[] = unique.map((row) =>
    store.db
      .insert(findings)
      .values(row)
      .onConflictDoUpdate({
        target: [findings.rule, findings.subject],
        set: {
          isLikely: sql`excluded.is_likely`,
          nodes: sql`excluded.nodes`,
          channels: sql`excluded.channels`,
          evidence: sql`excluded.evidence`,
        },
      }),
  )
  const looked = store.db
    .insert(findingLooks)
    .values({ rule: name, at: looking.now })
    .onConflictDoUpdate({ target: findingLooks.rule, set: { at: looking.now } })
  await store.atomic([store.db.delete(findings).where(isGone), ...writes, looked], 'lazily')
  return unique.length
}
