import { inArray, sql } from 'drizzle-orm'
import * as z from 'zod'
import { alerts } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { WATCHED_STATES, type WatchedState } from '../../../shared/alerts/alert-kinds.ts'
import { seesNodes } from '../../accounts/access/visible.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { sortInTurns } from '../../base/pacing/sort.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { wordsFor } from '../../words/reader.ts'
import { tellAlert } from '../facts.ts'
import { kindOf } from '../kinds/kinds.ts'
import { maySee } from '../rights.ts'
import { shownName } from '../world/node-names.ts'
import { watcher } from '../world/watched.ts'
import { isSilenced } from './rule.ts'
import { type OwnRule, readOwnRules, readWatchable, watchedOf } from './watched-nodes.ts'

/** The alerts and rules that are named for each node. */
const MAX_NAMED = 5

/** Nodes looked at before other requests have their turn: a few milliseconds with as many rules as there may be. */
const AT_A_TIME = 200

const watchedNodeSchema = z
  .object({
    nodeNum: nodeNumField,
    nodeId: nodeIdField,
    name: z.string(),
    lastHeard: timeField.nullable().describe('null: not yet'),
    state: z
      .enum(WATCHED_STATES)
      .describe(
        'The first that applies. firing: an alert fires. unknown: so it did, but the radios are down. pending: a condition holds, but not long enough yet. muted: every rule that watches it is muted for it. unheard: it was never heard',
      ),
    silentSince: timeField.nullable().describe('When it was last heard, if it fires because it is silent'),
    alerts: z
      .array(z.object({ id: z.int(), ruleId: z.int(), what: z.string(), startedAt: timeField }))
      .max(MAX_NAMED)
      .describe('Its alerts that are not over, those that fire first'),
    rules: z
      .array(z.object({ id: z.int(), name: z.string() }))
      .max(MAX_NAMED)
      .describe('The rules that watch it'),
    totalRules: z.int(),
    mutedUntil: timeField.nullable().describe('If it is muted: when the first of the rules watches it again'),
  })
  .meta({ id: 'WatchedNode', description: 'A node that your rules watch, and its state' })

export const watchedPageSchema = z.object({
  nodes: z.array(watchedNodeSchema).describe('By state, those that fire first; then by name'),
  total: z.int(),
  totals: z.record(z.enum(WATCHED_STATES), z.int()).describe('Number of nodes in each state'),
})

const queries = prepareOnce((db) => ({
  open: db
    .select({
      id: alerts.id,
      ruleId: alerts.ruleId,
      nodeNum: alerts.nodeNum,
      state: alerts.state,
      inhibited: alerts.inhibited,
      startedAt: alerts.startedAt,
      channel: alerts.channel,
      direct: alerts.direct,
    })
    .from(alerts)
    .where(
      sql`rule_id in (select value from json_each(${sql.placeholder('ruleIds')})) and state <> 'resolved' and node_num is not null`,
    )
    .prepare(),
}))

type Open = Awaited<ReturnType<ReturnType<typeof queries>['open']['all']>>[number]
type Watched = {
  readonly nodeNum: number
  readonly name: string
  readonly lastHeard: number | null
  readonly rules: readonly OwnRule[]
  readonly open: readonly Open[]
  readonly state: WatchedState
}

/** The nodes that the viewer's rules watch, and their states. */
export async function listWatched(
  ctx: SignedInCtx,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<z.infer<typeof watchedPageSchema>> {
  const { store } = ctx
  const words = await wordsFor(ctx)
  const { compare } = new Intl.Collator(words.language, { numeric: true })
  const all = await sortInTurns(
    await readWatched(ctx),
    (a, b) =>
      WATCHED_STATES.indexOf(a.state) - WATCHED_STATES.indexOf(b.state) ||
      compare(a.name, b.name) ||
      a.nodeNum - b.nodeNum,
  )
  const page = all.slice(offset, offset + limit)
  const named = page.flatMap(({ open }) => open.slice(0, MAX_NAMED).map(({ id }) => id))
  const { id, what, fact, held } = alerts
  const rows =
    named.length === 0 ? [] : await store.db.select({ id, what, fact, held }).from(alerts).where(among(named))
  const texts = new Map(rows.map((row) => [row.id, tellAlert(words, row)]))
  const totals: Record<WatchedState, number> = { firing: 0, unknown: 0, pending: 0, muted: 0, unheard: 0, well: 0 }
  for (const { state } of all) totals[state] += 1
  const now = ctx.now()
  return {
    nodes: page.map((node) => {
      const { nodeNum, name, lastHeard, state, rules, open } = node
      const silent = open.find(
        (alert) => alert.state === 'firing' && rules.some((each) => each.id === alert.ruleId && isAboutSilence(each)),
      )
      return {
        nodeNum,
        nodeId: formatNodeId(nodeNum),
        name,
        lastHeard,
        state,
        silentSince: state === 'firing' ? (silent?.startedAt ?? null) : null,
        alerts: open.slice(0, MAX_NAMED).flatMap((alert) => {
          const text = texts.get(alert.id)
          return text === undefined
            ? []
            : [{ id: alert.id, ruleId: alert.ruleId, what: text, startedAt: alert.startedAt }]
        }),
        rules: rules.slice(0, MAX_NAMED).map(({ id: ruleId, rule }) => ({ id: ruleId, name: rule.name })),
        totalRules: rules.length,
        mutedUntil: state === 'muted' ? Math.min(...rules.map(({ rule }) => mutedUntil(rule, nodeNum, now))) : null,
      }
    }),
    total: all.length,
    totals,
  }
}

const among = (ids: readonly number[]) => inArray(alerts.id, sql`(select value from json_each(${JSON.stringify(ids)}))`)

function isAboutSilence({ rule }: OwnRule): boolean {
  return rule.kind === 'node_silent'
}

async function readWatched(ctx: SignedInCtx): Promise<Watched[]> {
  const { store, viewer } = ctx
  const now = ctx.now()
  const rules = (await readOwnRules(ctx)).flatMap((own) => {
    const watched = watchedOf(own.rule)
    return watched === null ? [] : [{ own, watched, isWatched: watcher(watched) }]
  })
  if (rules.length === 0) return []
  const known = await readWatchable(ctx)
  const nums = new Set(known.map(({ nodeNum }) => nodeNum))
  const listed = rules.flatMap(({ watched }) => (watched.kind === 'list' ? watched.nodes : []))
  const unknown = [...new Set(listed)].filter((nodeNum) => !nums.has(nodeNum) && seesNodes(viewer.view, [nodeNum]))
  const byId = new Map(rules.map(({ own }) => [own.id, own]))
  const ruleIds = JSON.stringify([...byId.keys()])
  const isSeen = ({ ruleId, ...contents }: Open) => {
    const own = byId.get(ruleId)
    return own !== undefined && maySee(own.owner, kindOf(own.rule.kind).requires, contents)
  }
  const open = Map.groupBy((await queries(store).open.all({ ruleIds })).filter(isSeen), ({ nodeNum }) => nodeNum)
  const found: Watched[] = []
  for (const [i, node] of [...known, ...unknown.map(unheard)].entries()) {
    if (i % AT_A_TIME === AT_A_TIME - 1) await nextTurn()
    const { nodeNum, lastHeard } = node
    const watching = rules.flatMap(({ own, isWatched }) => (isWatched(node) ? [own] : []))
    if (watching.length === 0) continue
    const ofNode = (open.get(nodeNum) ?? []).toSorted(
      (a, b) => Number(b.state === 'firing') - Number(a.state === 'firing') || b.startedAt - a.startedAt,
    )
    const loud = watching.filter(({ rule }) => !isSilenced(rule, nodeNum, now))
    const state = stateOf(
      ofNode.filter(({ ruleId }) => loud.some(({ id }) => id === ruleId)),
      { isMuted: loud.length === 0, isHeard: lastHeard !== null },
    )
    found.push({ nodeNum, name: shownName(node), lastHeard, rules: watching, open: ofNode, state })
  }
  return found
}

/** A node that a rule names and nobody has heard. */
function unheard(nodeNum: number): Awaited<ReturnType<typeof readWatchable>>[number] {
  const unknown = { role: null, isFavorite: false, isLocal: false, isIgnored: false }
  return { nodeNum, ...unknown, lastHeard: null, longName: null, nameAltered: false }
}

/** `open`: without those that are muted. */
function stateOf(
  open: readonly Open[],
  { isMuted, isHeard }: { readonly isMuted: boolean; readonly isHeard: boolean },
): WatchedState {
  const firing = open.filter(({ state }) => state === 'firing')
  if (firing.some(({ inhibited }) => !inhibited)) return 'firing'
  if (firing.length > 0) return 'unknown'
  if (open.length > 0) return 'pending'
  if (isMuted) return 'muted'
  return isHeard ? 'well' : 'unheard'
}

/** When a muted rule watches a node again. */
function mutedUntil({ silencedUntil, silencedNodes }: OwnRule['rule'], nodeNum: number, now: number): number {
  const ends = silencedNodes.flatMap(({ node, until }) => (node === nodeNum ? [until] : []))
  return Math.max(now, silencedUntil ?? 0, ...ends)
}
