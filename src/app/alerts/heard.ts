import { desc, eq, sql } from 'drizzle-orm'
import { channelMetrics, nodes } from '../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../db/store.ts'
import { BROADCAST, formatNodeId } from '../../meshtastic/node-id.ts'
import { type Plan, readText } from '../mesh/ingest/plan.ts'
import { canReadChannel } from '../../shared/access/scope.ts'
import { UNKNOWN_CHANNEL } from '../../shared/mesh/channels.ts'
import { seesAllContents } from '../sharing/visible.ts'
import { foldText } from '../automation/kinds/matcher.ts'
import { isWanted, quote, type Text } from './kinds/message.ts'
import { isNewsworthy } from './kinds/node-new.ts'
import { isRestart, restartSentence, type Uptime } from './kinds/node-restarted.ts'
import { nodeSubject } from './kinds/finding.ts'
import { cleanText } from './names.ts'
import { HELD_WORDS, newStep, noteOccurrences, type Occurrence, readHolds, sendOut, TOGETHER_MS } from './occur.ts'
import { maySee } from './rights.ts'
import { type AlertRule, isSilenced } from './rules/rule.ts'
import { watcher } from './rules/watched.ts'
import { listWatching, ofKind, type WatchingRule } from './rules/watch-list.ts'

/** A batch that is about to be stored. `newNodes`: nodes that are not in the database. */
type Batch = { readonly plan: Plan; readonly newNodes: ReadonlySet<number>; readonly now: number }

/** The effect of a batch on rules: statements that run after its own, and the owners of the alerts. */
export type HeardAlerts = { readonly statements: readonly Statement[]; readonly owners: readonly number[] }

const NOTHING: HeardAlerts = { statements: [], owners: [] }

const known = prepareOnce((db) => ({
  nodes: db
    .select({
      nodeNum: nodes.nodeNum,
      longName: nodes.longName,
      role: nodes.role,
      isFavorite: nodes.isFavorite,
      isLocal: nodes.isLocal,
      isIgnored: nodes.isIgnored,
      uptime: nodes.uptimeSeconds,
      t: nodes.deviceMetricsTime,
      channel: nodes.metricsChannel,
    })
    .from(nodes)
    .where(sql`node_num in (select value from json_each(${sql.placeholder('nums')}))`)
    .prepare(),
  // Of nodes whose latest came on another channel, the latest first.
  earlierUptimes: db
    .select({
      nodeNum: nodes.nodeNum,
      uptime: channelMetrics.uptimeSeconds,
      t: channelMetrics.t,
      channel: channelMetrics.channel,
    })
    .from(nodes)
    .innerJoin(channelMetrics, eq(channelMetrics.nodeId, nodes.id))
    .where(sql`node_num in (select value from json_each(${sql.placeholder('nums')}))`)
    .orderBy(desc(channelMetrics.t))
    .prepare(),
  first: db
    .select({ at: sql<number | null>`min(first_heard)` })
    .from(nodes)
    .prepare(),
}))

/** The events of a batch that match rules. Reads only if a rule may match one of them. */
export async function alertsOfBatch(store: Store, batch: Batch): Promise<HeardAlerts> {
  const rules = await listWatching(store)
  if (rules.length === 0) return NOTHING
  const found = [
    ...(await findMessages(store, ofKind(rules, 'message'), batch)),
    ...(await findNew(store, ofKind(rules, 'node_new'), batch)),
    ...(await findRestarts(store, ofKind(rules, 'node_restarted'), batch)),
  ]
  if (found.length === 0) return NOTHING
  const { now } = batch
  const hold = await readHolds(store, [...new Set(found.map(({ watching }) => watching.id))], now)
  const step = newStep()
  const rows = found.flatMap(({ watching: { id, rule }, ...event }): Occurrence[] => {
    const { isHeld, isQuiet } = hold(id, event.subject)
    if (isQuiet) return []
    const what = isHeld ? event.what + HELD_WORDS : event.what
    const isSilent = isSilenced(rule, event.nodeNum, now)
    return [{ ...event, ruleId: id, state: 'resolved', startedAt: now, what, isHeld, isQuiet: isSilent }]
  })
  if (rows.length === 0) return NOTHING
  return {
    statements: [
      ...noteOccurrences(store, rows, { now, step }),
      ...sendOut(store, { step, told: 'fired', now, waitMs: TOGETHER_MS }),
    ],
    owners: [...new Set(found.map(({ watching }) => watching.ownerId))],
  }
}

type Found = Pick<Occurrence, 'subject' | 'key' | 'channel' | 'direct' | 'what'> & {
  readonly watching: { readonly id: number; readonly ownerId: number; readonly rule: AlertRule }
  readonly nodeNum: number
}

/** Sent by other nodes, live, and received for the first time. */
async function findMessages(
  store: Store,
  rules: readonly WatchingRule<'message'>[],
  { plan }: Batch,
): Promise<Found[]> {
  if (rules.length === 0) return []
  const own = new Set(plan.localNodes.values())
  const wanted = plan.news.flatMap(({ packet }) => {
    const said = readText(packet)
    if (said === null || said.isReplay || packet.isEmoji || own.has(packet.from)) return []
    const direct = said.to !== BROADCAST
    const text: Text = {
      from: packet.from,
      channel: packet.channel,
      direct,
      text: said.text,
      folded: foldText(said.text),
    }
    return rules
      .filter(({ rule, owner }) => isWanted(rule, text) && maySee(owner, 'message', { ...text, nodeNum: text.from }))
      .map((watching) => ({ watching, text, packetId: said.packetId }))
  })
  if (wanted.length === 0) return []
  const nameOf = await readNames(
    store,
    plan,
    wanted.map(({ text }) => text.from),
  )
  return wanted.map(({ watching, text, packetId }) => ({
    watching,
    subject: nodeSubject(text.from),
    key: `${text.from}#${packetId}`,
    nodeNum: text.from,
    channel: text.direct ? null : text.channel,
    direct: text.direct,
    what: quote(nameOf(text.from), text),
  }))
}

/** Unknown nodes that were heard just now; none while all nodes are new. */
async function findNew(store: Store, rules: readonly WatchingRule<'node_new'>[], batch: Batch): Promise<Found[]> {
  const { plan, newNodes, now } = batch
  if (rules.length === 0 || newNodes.size === 0) return []
  const heard = new Set(plan.news.map(({ packet }) => packet.from).filter((nodeNum) => newNodes.has(nodeNum)))
  if (heard.size === 0 || !isNewsworthy((await known(store).first.get())?.at ?? null, now)) return []
  const nameOf = await readNames(store, plan, [...heard])
  return [...heard].flatMap((nodeNum) =>
    rules.map((watching) => ({
      watching,
      subject: nodeSubject(nodeNum),
      key: `${nodeNum}@${now}`,
      nodeNum,
      channel: null,
      direct: false,
      what: `${nameOf(nodeNum)} was heard for the first time`,
    })),
  )
}

async function findRestarts(
  store: Store,
  rules: readonly WatchingRule<'node_restarted'>[],
  { plan }: Batch,
): Promise<Found[]> {
  if (rules.length === 0) return []
  const told = new Map<number, UptimeOn>()
  for (const { nodeNum, uptimeSeconds, deviceMetricsTime, metricsChannel = UNKNOWN_CHANNEL } of plan.heard) {
    if (uptimeSeconds === undefined || deviceMetricsTime === undefined || deviceMetricsTime === null) continue
    const before = told.get(nodeNum)
    if (before === undefined || before.t < deviceMetricsTime)
      told.set(nodeNum, { seconds: uptimeSeconds, t: deviceMetricsTime, channel: metricsChannel })
  }
  if (told.size === 0) return []
  const nums = JSON.stringify([...told.keys()])
  const rows = await known(store).nodes.all({ nums })
  const isNarrow = rules.some(({ owner }) => !seesAllContents(owner.view))
  const earlier = isNarrow ? await known(store).earlierUptimes.all({ nums }) : []
  return rows.flatMap((row) => {
    const { nodeNum, longName } = row
    const after = told.get(nodeNum)
    if (after === undefined) return []
    // The latest first.
    const uptimes = [row, ...earlier.filter((each) => each.nodeNum === nodeNum)].flatMap(({ uptime, t, channel }) =>
      uptime === null || t === null ? [] : [{ seconds: uptime, t, channel }],
    )
    const about = { channel: after.channel, direct: false, nodeNum }
    return rules.flatMap((watching): Found[] => {
      const { rule, owner } = watching
      if (!watcher(rule.nodes)(row) || !maySee(owner, 'node_restarted', about)) return []
      const before = uptimes.find(({ channel }) => canReadChannel(owner.view, channel))
      if (before === undefined || !isRestart(before, after)) return []
      const what = restartSentence(shownName(nodeNum, longName), before)
      const { channel } = after
      const key = `${nodeNum}@${after.t}`
      return [{ watching, subject: nodeSubject(nodeNum), key, nodeNum, channel, direct: false, what }]
    })
  })
}

type UptimeOn = Uptime & { readonly channel: number | null }

/** Names of nodes after the batch. */
async function readNames(store: Store, plan: Plan, nums: readonly number[]): Promise<(nodeNum: number) => string> {
  const rows = await known(store).nodes.all({ nums: JSON.stringify([...new Set(nums)]) })
  const names = new Map(rows.map(({ nodeNum, longName }) => [nodeNum, longName]))
  for (const { nodeNum, longName } of plan.heard) {
    if (longName !== undefined && longName !== null && !names.has(nodeNum)) names.set(nodeNum, longName)
  }
  return (nodeNum) => shownName(nodeNum, names.get(nodeNum) ?? null)
}

/** The displayed name of a node. */
export function shownName(nodeNum: number, longName: string | null): string {
  const name = longName === null ? '' : cleanText(longName, 60)
  return name === '' ? formatNodeId(nodeNum) : name
}
