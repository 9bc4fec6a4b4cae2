import * as z from 'zod'
import { formatNodeId } from '../../meshtastic/node-id.ts'
import { DAY_MS } from '../../shared/time.ts'
import type { SignedInCtx } from '../base/context.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'
import { eachTurn } from '../base/pacing/slices.ts'
import { sortInTurns } from '../base/pacing/sort.ts'
import { nodeIdField, nodeNumField, timeField } from '../http/fields.ts'
import { wordsFor } from '../words/reader.ts'
import { factSchema, tellFact } from './facts.ts'
import { kindOf } from './kinds/kinds.ts'
import { FIRST_MS, TOGETHER_MS } from './findings/occur.ts'
import type { AlertRule } from './rules/rule.ts'
import { demandSight } from './rules/rules.ts'
import { readNodes } from './past/past.ts'
import { watchedOf } from './rules/watched-nodes.ts'
import { watcher } from './world/watched.ts'

const DAYS = 7
const MAX_SHOWN = 200
/** Sentences that are made in one turn of the event loop. */
const TOLD_AT_ONCE = 50
/** Nodes that are named. */
const MAX_NAMED = 20

const fireSchema = z.object({
  at: timeField,
  resolvedAt: timeField.nullable().describe('null: it would still fire, or it is a single event'),
  nodeNum: nodeNumField.nullable(),
  nodeId: nodeIdField.nullable(),
  what: z.string().describe('What would have happened, as a sentence in the language of the request'),
  fact: factSchema,
})

export const previewSchema = z
  .object({
    from: timeField,
    to: timeField,
    fires: z.array(fireSchema).max(MAX_SHOWN).describe('Newest first'),
    total: z.int().describe('How often it would have fired'),
    messages: z.int().describe('Number of messages, not counting those that report the end'),
    looked: z
      .object({
        total: z.int(),
        nodes: z.array(z.object({ nodeNum: nodeNumField, nodeId: nodeIdField, name: z.string() })).max(MAX_NAMED),
      })
      .nullable()
      .describe('The nodes that the rule watches now, by name; null: it is not about certain nodes'),
    note: z.string().nullable().describe('Limits of the stored history'),
  })
  .meta({ id: 'AlertPreview', description: 'What a rule would have done' })

/** Runs a rule over stored history, with the permissions of the viewer, until `signal` ends it. Throws `forbidden`, `admin_required`. */
export async function preview(
  ctx: SignedInCtx,
  rule: AlertRule,
  signal: AbortSignal,
): Promise<z.infer<typeof previewSchema>> {
  demandSight(ctx, rule.kind)
  const words = await wordsFor(ctx)
  const to = ctx.now()
  const kind = kindOf(rule.kind)
  const from = to - (kind.pastDays ?? DAYS) * DAY_MS
  const pause = async () => (await eachTurn()) && !signal.aborted
  const { fires, note } = await kind.preview(ctx, rule, { from, to, pause })
  const sorted = await sortInTurns(fires, (a, b) => b.at - a.at)
  const shown: z.infer<typeof fireSchema>[] = []
  for (const { at, resolvedAt, nodeNum, fact } of sorted.slice(0, MAX_SHOWN)) {
    if (shown.length % TOLD_AT_ONCE === 0) await nextTurn()
    const nodeId = nodeNum === null ? null : formatNodeId(nodeNum)
    shown.push({ at, resolvedAt, nodeNum, nodeId, what: tellFact(words, fact), fact })
  }
  return {
    from,
    to,
    fires: shown,
    total: fires.length,
    messages: countTogether(sorted.map(({ at }) => at).toReversed(), kind.heard === undefined ? TOGETHER_MS : FIRST_MS),
    looked: await lookedAt(ctx, rule, words.language),
    note: note === null ? null : words.tell(note),
  }
}

/** The nodes that a rule watches; null: it is not about certain nodes. */
async function lookedAt(ctx: SignedInCtx, rule: AlertRule, language: string) {
  const watched = watchedOf(rule)
  if (watched === null) return null
  const { compare } = new Intl.Collator(language, { numeric: true })
  const seen = (await readNodes(ctx)).filter(watcher(watched))
  const nodes = await sortInTurns(seen, (a, b) => compare(a.name, b.name))
  const named = nodes.slice(0, MAX_NAMED)
  return {
    total: nodes.length,
    nodes: named.map(({ nodeNum, name }) => ({ nodeNum, nodeId: formatNodeId(nodeNum), name })),
  }
}

/** The number of messages. `times`: oldest first. `waitMs`: how long the first one after a pause waits for others. */
function countTogether(times: readonly number[], waitMs: number): number {
  let count = 0
  let begunAt = Number.NEGATIVE_INFINITY
  let sentAt = Number.NEGATIVE_INFINITY
  for (const at of times) {
    if (at <= sentAt && at < begunAt + TOGETHER_MS) continue
    count++
    begunAt = at
    sentAt = Math.max(at + waitMs, sentAt + TOGETHER_MS)
  }
  return count
}
