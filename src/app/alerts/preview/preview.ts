import * as z from 'zod'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { DAY_MS } from '../../../shared/time.ts'
import type { SignedInCtx } from '../../context.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { nextTurn } from '../../http/limits/next-turn.ts'
import { TOGETHER_MS } from '../occur.ts'
import type { AlertRule, AlertRuleOf } from '../rules/rule.ts'
import { demandSight } from '../rules/rules.ts'
import { watcher } from '../rules/watched.ts'
import { isInside, isSo, roughness } from '../kinds/area.ts'
import { findBackups } from '../kinds/backup.ts'
import { findKeys } from '../kinds/key.ts'
import { isBeyond, sentence } from '../kinds/metric.ts'
import { isWanted, quote } from '../kinds/message.ts'
import { isRestart, restartSentence } from '../kinds/node-restarted.ts'
import { inWords } from '../kinds/durations.ts'
import { seesNodes } from '../../sharing/visible.ts'
import { type AlertOwner, maySee } from '../rights.ts'
import type { World, WorldNode } from '../world.ts'
import { findGaps, firesIn, gapsOfAll } from './gaps.ts'
import { readHeard, readMeasured, readNodes, readPast, readPlaces, readTexts, readWorldNow } from './history.ts'

const DAYS = 7
const MOST_SHOWN = 200

const fireSchema = z.object({
  at: timeField,
  resolvedAt: timeField.nullable().describe('null: it would still fire, or it is a single event'),
  nodeNum: nodeNumField.nullable(),
  nodeId: nodeIdField.nullable(),
  what: z.string(),
})

export const previewSchema = z
  .object({
    from: timeField,
    to: timeField,
    fires: z.array(fireSchema).max(MOST_SHOWN).describe('Newest first'),
    total: z.int().describe('How often it would have fired'),
    messages: z.int().describe('Number of messages, not counting those that report the end'),
    note: z.string().nullable().describe('Limits of the stored history'),
  })
  .meta({ id: 'AlertPreview', description: 'What a rule would have done' })

export type Fire = {
  readonly at: number
  readonly resolvedAt: number | null
  readonly nodeNum: number | null
  readonly what: string
}
type Found = { readonly fires: readonly Fire[]; readonly note: string | null }

/** Runs a rule over stored history, with the permissions of the viewer. Throws `forbidden`, `admin_required`. */
export async function preview(ctx: SignedInCtx, rule: AlertRule): Promise<z.infer<typeof previewSchema>> {
  demandSight(ctx, rule.kind)
  const to = ctx.now()
  const from = to - DAYS * DAY_MS
  const { fires, note } = await look(ctx, rule, { from, to })
  const sorted = fires.toSorted((a, b) => b.at - a.at)
  return {
    from,
    to,
    fires: sorted.slice(0, MOST_SHOWN).map(({ at, resolvedAt, nodeNum, what }) => {
      return { at, resolvedAt, nodeNum, nodeId: nodeNum === null ? null : formatNodeId(nodeNum), what }
    }),
    total: fires.length,
    messages: countTogether(sorted.map(({ at }) => at)),
    note,
  }
}

/** Times within a minute of the first of them count once. Newest first. */
function countTogether(times: readonly number[]): number {
  let count = 0
  let first = Number.NEGATIVE_INFINITY
  for (const at of times.toReversed()) {
    if (at - first < TOGETHER_MS) continue
    count++
    first = at
  }
  return count
}

type Range = { readonly from: number; readonly to: number }

async function look(ctx: SignedInCtx, rule: AlertRule, range: Range): Promise<Found> {
  switch (rule.kind) {
    case 'node_silent':
      return lookAtSilence(ctx, rule, range)
    case 'metric':
      return each(ctx, rule, async (node) =>
        metricFires(rule, node, await readMeasured(ctx, node.id, rule.metric, range.from)),
      )
    case 'node_restarted':
      return each(ctx, rule, async (node) =>
        restartFires(node, await readMeasured(ctx, node.id, 'deviceMetrics.uptimeSeconds', range.from)),
      )
    case 'area':
      return each(ctx, rule, async (node) => areaFires(rule, node, await readPlaces(ctx, node.id, range.from)))
    case 'node_new':
      return {
        fires: (await readNodes(ctx)).flatMap(({ firstHeard, nodeNum, name }) =>
          firstHeard < range.from
            ? []
            : [{ at: firstHeard, resolvedAt: null, nodeNum, what: `${name} was heard for the first time` }],
        ),
        note: null,
      }
    case 'message':
      return lookAtTexts(ctx, rule, range)
    case 'key':
      return now(
        ctx,
        rule,
        range,
        (watching, world) => findKeys(watching, world, new Map()),
        'Only the present state is stored, not the history.',
      )
    case 'backup':
      return now(
        ctx,
        rule,
        range,
        (watching, world) => findBackups(watching, world, new Map()),
        'Only the present state is shown.',
      )
    case 'link':
      return { fires: [], note: 'Interruptions of radios and brokers are not stored.' }
    case 'sign_in':
      return { fires: [], note: 'The audit log shows what happened to your account.' }
    default:
      return rule satisfies never
  }
}

type NodeRule = AlertRuleOf<'node_silent' | 'metric' | 'node_restarted' | 'area'>

async function each(ctx: SignedInCtx, rule: NodeRule, find: (node: WorldNode) => Promise<Fire[]>): Promise<Found> {
  const isWatched = watcher(rule.nodes)
  const fires: Fire[] = []
  for (const node of (await readNodes(ctx)).filter(isWatched)) {
    fires.push(...(await find(node)))
    await nextTurn()
  }
  return { fires, note: null }
}

async function lookAtSilence(ctx: SignedInCtx, rule: AlertRuleOf<'node_silent'>, range: Range): Promise<Found> {
  const isWatched = watcher(rule.nodes)
  const known = new Map((await readNodes(ctx)).filter(isWatched).map((node) => [node.nodeNum, node]))
  const heard = await readHeard(ctx.store, range.from)
  const afterMs = rule.afterMinutes * 60_000
  const deaf = gapsOfAll(heard, range)
  const fires = findGaps(heard, new Set(known.keys()), { ...range, leastMs: afterMs }).flatMap(({ nodeNum, gap }) => {
    const at = firesIn(gap, deaf, afterMs)
    const name = known.get(nodeNum)?.name ?? formatNodeId(nodeNum)
    const resolvedAt = gap.to === range.to ? null : gap.to
    return at === null
      ? []
      : [{ at, resolvedAt, nodeNum, what: `${name} was not heard for ${inWords(gap.to - gap.from)}` }]
  })
  const first = heard[0]?.t ?? range.to
  const hours = Math.floor((range.to - first) / 3_600_000)
  return {
    fires,
    note: first > range.from + DAY_MS ? `Only packets of the last ${hours} h are stored.` : null,
  }
}

/** Pure: the times at which values would have fired, oldest first. */
export function metricFires(
  rule: AlertRuleOf<'metric'>,
  { nodeNum, name }: Pick<WorldNode, 'nodeNum' | 'name'>,
  values: readonly { t: number; v: number }[],
): Fire[] {
  const fires: Fire[] = []
  const forMs = rule.forMinutes * 60_000
  let since: number | null = null
  let fired: Fire | null = null
  for (const { t, v } of values) {
    if (isBeyond(rule, v, since !== null)) {
      since ??= t
      if (fired === null && t - since >= forMs)
        fired = { at: since + forMs, resolvedAt: null, nodeNum, what: sentence(rule, name, v) }
    } else {
      if (fired !== null) fires.push({ ...fired, resolvedAt: t })
      since = null
      fired = null
    }
  }
  return fired === null ? fires : [...fires, fired]
}

function restartFires({ nodeNum, name }: WorldNode, values: readonly { t: number; v: number }[]): Fire[] {
  return values.flatMap(({ t, v: seconds }, index) => {
    const before = values[index - 1]
    if (before === undefined) return []
    const was = { seconds: before.v, t: before.t }
    return isRestart(was, { seconds, t })
      ? [{ at: t, resolvedAt: null, nodeNum, what: restartSentence(name, was) }]
      : []
  })
}

function areaFires(
  rule: AlertRuleOf<'area'>,
  { nodeNum, name, precisionBits }: WorldNode,
  places: readonly { t: number; latitude: number; longitude: number }[],
): Fire[] {
  const fires: Fire[] = []
  const rough = roughness(precisionBits)
  const anchor = places.find(
    (place) =>
      rule.when === 'moves' || (rule.shape !== null && isInside(rule.shape, place) !== (rule.when === 'enters')),
  )
  if (anchor === undefined) return []
  let fired: Fire | null = null
  for (const place of places.slice(places.indexOf(anchor))) {
    const is = isSo(rule, place, anchor, rough)
    if (is) fired ??= { at: place.t, resolvedAt: null, nodeNum, what: `${name} ${rule.when}` }
    else if (fired !== null) {
      fires.push({ ...fired, resolvedAt: place.t })
      fired = null
    }
  }
  return fired === null ? fires : [...fires, fired]
}

async function lookAtTexts(ctx: SignedInCtx, rule: AlertRuleOf<'message'>, { from }: Range): Promise<Found> {
  const { store, viewer } = ctx
  const owner = { isAdmin: viewer.user.isAdmin, permissions: viewer.permissions, view: viewer.view }
  const names = new Map((await readNodes(ctx)).map(({ nodeNum, name }) => [nodeNum, name]))
  const texts = await readTexts(store, from)
  const fires = texts
    .filter((text) => maySee(owner, 'message', { ...text, nodeNum: text.from }) && isWanted(rule, text))
    .map((text) => {
      const { from: nodeNum, t: at } = text
      return { at, resolvedAt: null, nodeNum, what: quote(names.get(nodeNum) ?? formatNodeId(nodeNum), text) }
    })
  return { fires, note: null }
}

/** What a rule finds at this moment. */
async function now<R extends AlertRule>(
  ctx: SignedInCtx,
  rule: R,
  { from, to }: Range,
  find: (
    watching: {
      id: number
      ownerId: number
      anchorAt: number
      rule: R
      owner: AlertOwner
    },
    world: World,
  ) => readonly { since: number; nodeNum: number | null; what: string }[],
  note: string,
): Promise<Found> {
  const { user, permissions, view } = ctx.viewer
  const owner = { isAdmin: user.isAdmin, permissions, view }
  const all = await readWorldNow(ctx, to)
  const world = { ...all, nodes: all.nodes.filter(({ nodeNum }) => seesNodes(view, [nodeNum])) }
  const found = find(
    { id: 0, ownerId: user.id, anchorAt: rule.kind === 'backup' ? await readPast(ctx.store, from) : from, rule, owner },
    world,
  )
  return {
    fires: found.map(({ since, nodeNum, what }) => ({ at: Math.max(since, from), resolvedAt: null, nodeNum, what })),
    note,
  }
}
