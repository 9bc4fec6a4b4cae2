import { ownedBy } from '../../base/owned.ts'
import { desc, eq, gt, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { hasPages, LAST_PACKET, packedWithin } from '../../../db/packet-log.ts'
import { hasRuns, measurementOf, pathOf, RUNS, timeOf } from '../../../db/runs.ts'
import {
  alertAnchors,
  alertMarks,
  auditLog,
  metrics,
  nodes,
  packetPages,
  packets,
  sources,
} from '../../../db/schema.ts'
import { prepareOnce, rawRows, type Statement, type Store } from '../../../db/store.ts'
import { DAY_MS, isFuture, MINUTE_MS } from '../../../shared/time.ts'
import { isOwnKind } from '../../../shared/mesh/link-kinds.ts'
import type { Radio } from '../../mesh/radios/radio.ts'
import { findWeakKeys } from '../../mesh/nodes/key-health.ts'
import { listSources } from '../../mesh/radios/sources.ts'
import { eachTurn, type Pause } from '../../base/pacing/slices.ts'
import { problemsOf, readRetentionState } from '../../retention/state.ts'
import { IS_IMPORTED } from './imported.ts'
import { readMeshFindings } from './mesh-findings.ts'
import { readFailingCopies } from './failing-copies.ts'
import { shownName } from './node-names.ts'
import { type Watched, watchedColumns, watcher } from './watched.ts'
import type { Measured, World, WorldLink, WorldNeeds, WorldNode } from './world.ts'

/** A collector that sent nothing for this long counts as down. */
const QUIET_MS = 30 * MINUTE_MS
const NODES_AT_ONCE = 500
/** Per node. That is enough to know by which links it is heard. */
const LATEST_PACKETS = 30
const LATEST_PACKETS_SQL = sql.raw(String(LATEST_PACKETS))
/** Ids of a packed log that are searched for them. */
const REACH = sql.raw('100000')
/** Pages, and nodes, of one search: it takes a few milliseconds. */
const PAGES_AT_ONCE = 25
const SILENT_AT_ONCE = 500

const value = sql.placeholder

const nodeColumns = {
  ...watchedColumns,
  id: nodes.id,
  longName: nodes.longName,
  nameAltered: nodes.nameAltered,
  firstHeard: nodes.firstHeard,
  lastHeard: nodes.lastHeard,
  lastHeardByRadio: nodes.lastHeardByRadio,
  latitude: nodes.latitude,
  longitude: nodes.longitude,
  precisionBits: nodes.precisionBits,
  positionChannel: nodes.positionChannel,
  publicKey: nodes.publicKey,
  previousPublicKey: nodes.previousPublicKey,
  refusedPublicKey: nodes.refusedPublicKey,
  keyMismatch: nodes.keyMismatch,
  spoofSuspected: nodes.spoofSuspected,
  spoofClaim: nodes.spoofClaim,
}

const anchorColumns = {
  ruleId: alertAnchors.ruleId,
  nodeNum: alertAnchors.nodeNum,
  latitude: alertAnchors.latitude,
  longitude: alertAnchors.longitude,
}
type RawAnchor = readonly [ruleId: number, nodeNum: number, latitude: number, longitude: number]

/** Packed hours that are looked at for each node, whether it has the metric or not. */
const RECENT_MS = 2 * DAY_MS

/** Whether page `g` has a packet of one of the nodes. */
const HAS_ONE_OF = sql`exists (select 1 from json_each(g.keys) k where substr(k.value, 1, 8) in
  (select printf('%08x', value) from json_each(${value('nums')})))`

const namesSchema = z.array(z.string())
const latestSchema = z.object({ t: z.number(), v: z.number(), channel: z.number().nullable() })

/** The latest packed measurement of node `n` and metric `m` as JSON, in rows `r`. It reads them from the newest on. */
function latestPacked(condition: SQL): SQL {
  const { v, channel } = measurementOf()
  return sql`(select json_object('t', ${timeOf(RUNS)}, 'v', ${v}, 'channel', ${channel}) from telemetry_runs r
    cross join json_each(r.body, ${pathOf(sql`m.id`)}) e where r.node_id = n.id and ${condition}
    order by r.t desc, e.key + 0 desc limit 1)`
}

/** The latest measurement of each node. Packed hours before the recent ones are read only where the metric is known. */
function prepareLatest(db: Store['db'], isPacked: boolean) {
  const packed = sql<string | null>`coalesce(${latestPacked(sql`r.t >= ${value('recent')}`)},
    iif(exists (select 1 from telemetry_daily_runs d where d.node_id = n.id
      and json_type(d.body, ${pathOf(sql`m.id`)}) is not null), ${latestPacked(sql`true`)}, null))`
  const isMeasured = sql`exists (select 1 from telemetry where node_id = n.id and metric = m.id)`
  const either = sql`(${isMeasured} or exists (select 1 from telemetry_runs where node_id = n.id))`
  return db
    .select({
      nodeId: sql<number>`n.id`,
      t: sql<number | null>`(select max(t) from telemetry where node_id = n.id and metric = m.id)`,
      v: sql<number>`(select v from telemetry where node_id = n.id and metric = m.id order by t desc limit 1)`,
      channel: sql<
        number | null
      >`(select channel from telemetry where node_id = n.id and metric = m.id order by t desc limit 1)`,
      packed: isPacked ? packed : sql<string | null>`null`,
    })
    .from(sql`nodes n join ${metrics} m on m.name = ${value('metric')}`)
    .where(sql`n.id > ${value('after')} and n.id <= ${value('until')} and ${isPacked ? either : isMeasured}`)
    .prepare()
}

/** The later one of the measurement that has its own row and the packed one. */
function latestOfForms({ t, v, channel, packed }: LatestRow): Measured | null {
  const inRun = packed === null ? null : latestSchema.parse(JSON.parse(packed))
  if (inRun !== null && inRun.t > (t ?? 0)) return inRun
  return t === null ? null : { t, v, channel }
}

type LatestRow = {
  readonly t: number | null
  readonly v: number
  readonly channel: number | null
  readonly packed: string | null
}

const queries = prepareOnce((db) => ({
  nodes: db
    .select(nodeColumns)
    .from(nodes)
    .where(sql`${gt(nodes.id, value('after'))} and not ${IS_IMPORTED}`)
    .orderBy(nodes.id)
    .limit(NODES_AT_ONCE)
    .prepare(),
  some: db
    .select(nodeColumns)
    .from(nodes)
    .where(sql`node_num in (select value from json_each(${value('nums')}))`)
    .prepare(),
  // Nodes with the same key affect each other.
  sharing: db
    .select(nodeColumns)
    .from(nodes)
    .where(
      sql`node_num in (select value from json_each(${value('nums')})) or public_key in
        (select public_key from nodes where node_num in (select value from json_each(${value('nums')})))`,
    )
    .prepare(),
  ways: db
    .select({
      nodeNum: sql<number>`k.value`,
      names: sql<string>`(select json_group_array(distinct s.name) from (select source_id from ${packets}
        where from_node_num = k.value and not replayed order by id desc limit ${LATEST_PACKETS_SQL}) x
        cross join ${sources} s on s.id = x.source_id)`,
    })
    .from(sql`json_each(${value('nums')}) k`)
    .prepare(),
  // The columns before its packets are read without them.
  pages: db
    .select({ firstId: packetPages.firstId, lastId: packetPages.lastId, from: packetPages.tFirst })
    .from(packetPages)
    .where(sql`first_id > ${LAST_PACKET} - ${REACH} and t_first <= ${value('latest')}`)
    .orderBy(desc(packetPages.firstId))
    .prepare(),
  packedWays: db
    .select({ nodeNum: sql<number>`x.from_node_num`, name: sql<string>`s.name` })
    .from(
      sql`(select from_node_num, source_id, row_number() over (partition by from_node_num order by id desc) as nth
        from ${packedWithin(value('first'), value('before'), HAS_ONE_OF)}
        where not replayed and from_node_num in (select value from json_each(${value('nums')}))) x
        cross join ${sources} s on s.id = x.source_id`,
    )
    .where(sql`x.nth <= ${LATEST_PACKETS_SQL}`)
    .orderBy(sql`x.nth`)
    .prepare(),
  latest: prepareLatest(db, false),
  latestOfBoth: prepareLatest(db, true),
  anchors: db.select(anchorColumns).from(alertAnchors).prepare(),
  someAnchors: db
    .select(anchorColumns)
    .from(alertAnchors)
    .where(
      sql`rule_id in (select value from json_each(${value('ruleIds')}))
        and node_num in (select value from json_each(${value('nums')}))`,
    )
    .prepare(),
  marks: db.select().from(alertMarks).prepare(),
  audited: db
    .select({ id: auditLog.id, action: auditLog.action, at: auditLog.timestamp })
    .from(auditLog)
    .where(eq(auditLog.action, value('action')))
    .orderBy(desc(auditLog.id))
    .limit(1)
    .prepare(),
}))

type Needs = {
  readonly store: Store
  readonly radio: Radio | null
  readonly now: number
  readonly startedAt: number | null
}

/** Reads only what the rules need. `marks`: statements that record which collectors are up. Null: `pause` ended it. */
export async function readWorld(
  needs: Needs,
  wanted: readonly WorldNeeds[],
  pause: Pause,
): Promise<{ world: World; marks: Statement[] } | null> {
  const { store, now, startedAt } = needs
  const has = (part: keyof WorldNeeds) => wanted.some((each) => each[part] !== undefined)
  const known = has('nodes') ? await readKnownNodes(store, pause) : []
  if (known === null) return null
  const { links, marks } = await readLinks(needs)
  const latest = new Map<string, Map<number, Measured>>()
  const latestOf = (await hasRuns(store)) ? queries(store).latestOfBoth : queries(store).latest
  const lastId = known.at(-1)?.id ?? 0
  for (const metric of new Set(wanted.flatMap((each) => each.metric ?? []))) {
    const values = new Map<number, Measured>()
    for (let after = 0; after < lastId; after += NODES_AT_ONCE) {
      for (const { nodeId, t, v, channel, packed } of await latestOf.all({
        metric,
        after,
        until: after + NODES_AT_ONCE,
        recent: now - RECENT_MS,
      })) {
        const measured = latestOfForms({ t, v, channel, packed })
        if (measured !== null) values.set(nodeId, measured)
      }
      if (!(await pause())) return null
    }
    latest.set(metric, values)
  }
  const silentSince = now - Math.min(...wanted.flatMap((each) => each.waysAfterMs ?? []))
  const isAsked = has('waysAfterMs') && links.length > 1
  return {
    marks,
    world: {
      now,
      startedAt,
      nodes: known,
      links,
      heardBy: isAsked ? await readWays(store, known, silentSince) : new Map(),
      latest,
      anchors: has('anchors') ? await readAnchors(store, null) : new Map(),
      weakKeys: has('weakKeys') ? await findWeakKeys(known) : new Set(),
      backups: has('backups') ? await readBackups(store) : { succeededAt: null, failure: null, copies: [] },
      retention: has('retention') ? problemsOf(await readRetentionState(store, now)) : [],
      ...(has('meshFindings') ? { meshFindings: await readMeshFindings(store) } : {}),
    },
  }
}

/** All nodes; null: `pause` ended it. */
export async function readKnownNodes(store: Store, pause: Pause): Promise<WorldNode[] | null> {
  const all: WorldNode[] = []
  for (let after = 0; ;) {
    const rows = await queries(store).nodes.all({ after })
    all.push(...rows.map(asWorldNode))
    after = rows.at(-1)?.id ?? after
    if (rows.length < NODES_AT_ONCE) return all
    if (!(await pause())) return null
  }
}

/** Connections of this service, and collectors, which are up while they deliver. */
async function readLinks({ store, radio, now, startedAt }: Needs): Promise<{ links: WorldLink[]; marks: Statement[] }> {
  // A clock that was ahead does not show when a link came up.
  const known = (since: number) => (isFuture(since, now, MINUTE_MS) ? (startedAt ?? now) : since)
  const links: WorldLink[] = (radio?.links() ?? []).map(({ name, kind, state, since }) => ({
    name,
    isRadio: isOwnKind(kind),
    isUp: state === 'connected',
    since: known(since),
  }))
  const delivering = (await listSources(store, { withTokens: false })).filter(({ kind }) => kind === 'ingest')
  if (delivering.length === 0) return { links, marks: [] }
  const noted = new Map((await queries(store).marks.all()).map((mark) => [mark.name, mark.value]))
  const marks: Statement[] = []
  for (const { name, lastReceivedAt } of delivering) {
    const mark = `up:${name}`
    const upSince = noted.get(mark)
    const isUp = lastReceivedAt !== null && lastReceivedAt > now - QUIET_MS
    if (isUp && upSince === undefined)
      marks.push(store.db.insert(alertMarks).values({ name: mark, value: now }).onConflictDoNothing())
    if (!isUp && upSince !== undefined) marks.push(store.db.delete(alertMarks).where(eq(alertMarks.name, mark)))
    const since = isUp ? Math.max(known(upSince ?? now), startedAt ?? 0) : (lastReceivedAt ?? startedAt ?? now)
    links.push({ name, isRadio: false, isUp, since })
  }
  return { links, marks }
}

/** The links by which silent nodes were heard, by node. */
const linksOfSilent = ownedBy((_db: Store['db']) => new Map<number, { lastHeard: number; names: readonly string[] }>())

type Silent = { readonly nodeNum: number; readonly lastHeard: number }

/**
 * The links by which each node was heard, for nodes silent since `silentSince`. They are read once for each silence, to the
 * end: the next run would begin again.
 */
async function readWays(
  store: Store,
  known: readonly WorldNode[],
  silentSince: number,
): Promise<Map<number, readonly string[]>> {
  const kept = linksOfSilent(store.db)
  const found = new Map<number, readonly string[]>()
  const asked: Silent[] = []
  for (const { nodeNum, lastHeard } of known) {
    const before = kept.get(nodeNum)
    if (lastHeard === null || lastHeard > silentSince) kept.delete(nodeNum)
    else if (before?.lastHeard === lastHeard) found.set(nodeNum, before.names)
    else asked.push({ nodeNum, lastHeard })
  }
  const packed = asked.length > 0 && (await hasPages(store)) ? await readPackedWays(store, asked) : new Map()
  for (let from = 0; from < asked.length; from += SILENT_AT_ONCE) {
    const some = asked.slice(from, from + SILENT_AT_ONCE)
    const inRows = some.filter(({ nodeNum }) => !packed.has(nodeNum)).map(({ nodeNum }) => nodeNum)
    const rows = inRows.length === 0 ? [] : await queries(store).ways.all({ nums: JSON.stringify(inRows) })
    const names = new Map(rows.map((row) => [row.nodeNum, namesSchema.parse(JSON.parse(row.names))]))
    for (const { nodeNum, lastHeard } of some) {
      const all = packed.get(nodeNum) ?? names.get(nodeNum) ?? []
      kept.set(nodeNum, { lastHeard, names: all })
      found.set(nodeNum, all)
    }
    await eachTurn()
  }
  return found
}

/**
 * The links by the latest packets of these nodes in pages. It goes back from the latest page that can have one, and asks
 * in each only for nodes that were heard since it began.
 */
async function readPackedWays(store: Store, asked: readonly Silent[]): Promise<Map<number, readonly string[]>> {
  const { pages, packedWays } = queries(store)
  const latest = asked.reduce((time, { lastHeard }) => Math.max(time, lastHeard), 0)
  const all = await pages.all({ latest })
  const heard = new Map<number, string[]>()
  for (let from = 0; from < all.length; from += PAGES_AT_ONCE) {
    const some = all.slice(from, from + PAGES_AT_ONCE)
    const first = Math.min(...some.map((page) => page.firstId))
    const before = Math.max(...some.map((page) => page.lastId)) + 1
    const began = Math.min(...some.map((page) => page.from))
    const nums = asked
      .filter(({ nodeNum, lastHeard }) => lastHeard >= began && (heard.get(nodeNum)?.length ?? 0) < LATEST_PACKETS)
      .map(({ nodeNum }) => nodeNum)
    if (nums.length === 0) continue
    for (const { nodeNum, name } of await packedWays.all({ first, before, nums: JSON.stringify(nums) })) {
      const names = heard.get(nodeNum) ?? []
      if (names.length < LATEST_PACKETS) names.push(name)
      heard.set(nodeNum, names)
    }
    await eachTurn()
  }
  return new Map([...heard].map(([nodeNum, names]) => [nodeNum, [...new Set(names)]]))
}

/** The current state of these nodes for rules about positions. */
export async function readWorldOfPlaces(
  store: Store,
  rules: readonly { readonly id: number; readonly rule: { readonly nodes: Watched } }[],
  { nums, now }: { readonly nums: readonly number[]; readonly now: number },
): Promise<World> {
  const known = (await queries(store).some.all({ nums: JSON.stringify(nums) })).map(asWorldNode)
  const watching = rules.filter(({ rule }) => known.some(watcher(rule.nodes)))
  const only = { ruleIds: JSON.stringify(watching.map(({ id }) => id)), nums: JSON.stringify(nums) }
  return { ...emptyWorld(now), nodes: known, anchors: await readAnchors(store, only) }
}

/** The current state of these nodes, and of those that share a key with one of them, for rules about keys. */
export async function readWorldOfKeys(
  store: Store,
  { nums, now }: { readonly nums: readonly number[]; readonly now: number },
): Promise<World> {
  const known = (await queries(store).sharing.all({ nums: JSON.stringify(nums) })).map(asWorldNode)
  return { ...emptyWorld(now), nodes: known, weakKeys: await findWeakKeys(known) }
}

function emptyWorld(now: number): World {
  return {
    now,
    startedAt: null,
    nodes: [],
    links: [],
    heardBy: new Map(),
    latest: new Map(),
    anchors: new Map(),
    weakKeys: new Set(),
    backups: { succeededAt: null, failure: null, copies: [] },
    retention: [],
  }
}

function asWorldNode<T extends Parameters<typeof shownName>[0]>({ longName, nameAltered, ...row }: T) {
  return { ...row, name: shownName({ nodeNum: row.nodeNum, longName, nameAltered }) }
}

/** `only`: limits the result to these rules and nodes, as JSON. */
async function readAnchors(store: Store, only: { ruleIds: string; nums: string } | null): Promise<World['anchors']> {
  const byRule = new Map<number, Map<number, { latitude: number; longitude: number }>>()
  const { anchors, someAnchors } = queries(store)
  const rows = await (only === null ? rawRows<RawAnchor>(anchors) : rawRows<RawAnchor>(someAnchors, only))
  for (const [ruleId, nodeNum, latitude, longitude] of rows) {
    const ofRule = byRule.get(ruleId) ?? new Map<number, { latitude: number; longitude: number }>()
    byRule.set(ruleId, ofRule.set(nodeNum, { latitude, longitude }))
  }
  return byRule
}

async function readBackups(store: Store): Promise<World['backups']> {
  const made = await queries(store).audited.get({ action: 'backup_created' })
  const failed = await queries(store).audited.get({ action: 'backup_failed' })
  const isFailed = failed !== undefined && failed.id > (made?.id ?? 0)
  const failure = isFailed ? { id: failed.id, at: failed.at } : null
  return { succeededAt: made?.at ?? null, failure, copies: await readFailingCopies(store) }
}
