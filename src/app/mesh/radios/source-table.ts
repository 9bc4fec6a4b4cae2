import type { KnownChannel } from './known-channel.ts'
import { and, eq, inArray, sql, type SQL } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../db/json-rows.ts'
import { insertSelect } from '../../../db/insert-select.ts'
import { channels, nodes, ownRadioDecisions, sources } from '../../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { MAX_HEARD_CHANNELS, RADIO_CHANNELS } from '../../../meshtastic/channel-identity.ts'
import { OWN_KINDS, type SourceKind } from '../../../shared/mesh/link-kinds.ts'
import { DAY_MS } from '../../../shared/time.ts'

/** Where events come from; the name is unique. */
export type Source = { readonly kind: SourceKind; readonly name: string }

/** A source's description of itself; null or absent fields change nothing. */
export type SourceRow = Source & {
  readonly createdAt: number
  readonly localNodeNum?: number
  readonly firmwareVersion?: string | null
}

/** A source that is in the database. */
export type KnownSource = Source & { readonly localNodeNum: number | null }

/**
 * A node that our own radio has not heard for this long is out of its range, so reports of others about it count again.
 */
export const EARSHOT_MS = DAY_MS
/** The maximum for one token: a site has a few radios and one or two brokers. */
const MAX_TOKEN_SOURCES = 20
/** The maximum number of nodes that the sources of one token call their own radio. */
const MAX_TOKEN_RADIOS = 8
/** The maximum for all tokens. */
const MAX_CLAIMED_SOURCES = 200

/** The claims of a collector's source end with its token, and are suspended while the token is held. */
export const IS_CLAIMED = sql.raw(
  `(sources.kind <> 'ingest'
    or exists (select 1 from api_tokens t where t.id = sources.token_id and t.held_at is null))`,
)

const SOURCE_VALUES = {
  id: sql`null`,
  kind: field('kind'),
  name: field('name'),
  localNodeNum: field('localNodeNum'),
  disputedNodeNum: sql`null`,
  firmwareVersion: field('firmwareVersion'),
  createdAt: field('createdAt'),
  tokenId: sql`null`,
} satisfies Record<keyof typeof sources.$inferSelect, SQL>

const CHANNEL_VALUES = {
  sourceId: sql`(select id from sources where name = ${field('source')})`,
  index: field('index'),
  name: field('name'),
  role: field('role'),
  identity: field('identity'),
  firstHeard: field('lastHeard'),
  lastHeard: field('lastHeard'),
} satisfies Record<keyof typeof channels.$inferSelect, SQL>

/** Whether a node number belongs to one of our radios. */
export function isLocalNode(nodeNum: SQL): SQL {
  return sql`(${nodeNum} in (select local_node_num from sources where local_node_num is not null and ${IS_CLAIMED}))`
}

function isClaimOf(nodeNum: SQL): SQL {
  return sql`(kind = 'ingest' and local_node_num = ${nodeNum})`
}

/** Whether somebody said that a node is ours, and this source's token belongs to the user whose claim that was. */
function isConfirmed(nodeNum: SQL, tokenId: SQL): SQL {
  return sql`exists (select 1 from own_radio_decisions d cross join api_tokens t on t.user_id = d.owner_id
    where d.node_num = ${nodeNum} and d.is_own and t.id = ${tokenId})`
}

const TOKEN = sql.raw('sources.token_id')

/** A claim that nobody confirmed. */
function isDoubtfulClaim(nodeNum: SQL): SQL {
  return sql`(${isClaimOf(nodeNum)} and not ${isConfirmed(nodeNum, TOKEN)})`
}

/** Most of the room is for the channels in use for the longest time, so that made-up ones only displace each other. */
const LATEST_CHANNELS = MAX_HEARD_CHANNELS / 4
const KEPT_CHANNELS = MAX_HEARD_CHANNELS - LATEST_CHANNELS
const DAY = sql.raw(String(DAY_MS))

const { placeholder: value } = sql
const KNOWN = {
  name: sources.name,
  kind: sources.kind,
  localNodeNum: sources.localNodeNum,
}

const queries = prepareOnce((db) => ({
  sources: prepareJsonInsert(db, sources, {
    values: SOURCE_VALUES,
    // A connection of this service takes over what a collector delivered under its name, once that one's token is gone.
    onConflict: sql`on conflict (name) do update set
      kind = iif(token_id is null and kind = 'ingest', excluded.kind, kind),
      local_node_num = iif(token_id is null, coalesce(excluded.local_node_num, local_node_num), local_node_num),
      firmware_version = coalesce(excluded.firmware_version, firmware_version)`,
  }),
  channels: prepareJsonInsert(db, channels, {
    values: CHANNEL_VALUES,
    onConflict: sql`on conflict (source_id, channel_index) do update set
      name = excluded.name, role = excluded.role, identity = excluded.identity,
      first_heard = iif(excluded.last_heard is null, null, coalesce(first_heard, excluded.first_heard)),
      last_heard = iif(excluded.last_heard is null, null, max(coalesce(last_heard, 0), excluded.last_heard))`,
  }),
  trimChannels: db
    .delete(channels)
    .where(
      sql`(source_id, channel_index) in (select source_id, channel_index from (select *,
        row_number() over (partition by source_id order by last_heard desc, channel_index) as latest from (
        select c.last_heard, c.source_id, c.channel_index,
          row_number() over (partition by c.source_id
            order by (c.last_heard - c.first_heard) / ${DAY} desc, c.last_heard desc, c.channel_index) as place
        from json_each(${sql.placeholder('names')}) k cross join sources s on s.name = k.value
          cross join channels c on c.source_id = s.id and c.channel_index >= ${sql.raw(String(RADIO_CHANNELS))})
        where place > ${sql.raw(String(KEPT_CHANNELS))}) where latest > ${sql.raw(String(LATEST_CHANNELS))})`,
    )
    .prepare(),
  markLocal: db
    .update(nodes)
    .set({ isLocal: isLocalNode(sql`node_num`) })
    // Selects both the marked nodes and those to mark: `is_local <> …` alone would read every node.
    .where(
      sql`id in (select id from nodes where is_local union all select id from nodes where ${isLocalNode(sql`node_num`)})
        and is_local <> ${isLocalNode(sql`node_num`)}`,
    )
    .prepare(),
  byName: db
    .select({ ...KNOWN, tokenId: sources.tokenId })
    .from(sources)
    .where(eq(sources.name, sql.placeholder('name')))
    .prepare(),
  // A token takes over a source without a token, one that belongs to another token of its owner, or one with an expired
  // token.
  claim: insertSelect(
    db,
    sources,
    { kind: 'ingest', name: value('name'), createdAt: value('now'), tokenId: value('tokenId') },
    sql`where (select count(*) from sources where token_id = ${value('tokenId')}) < ${sql.raw(String(MAX_TOKEN_SOURCES))}
          and (select count(*) from sources where token_id is not null) < ${sql.raw(String(MAX_CLAIMED_SOURCES))}
        on conflict (name) do update set token_id = excluded.token_id,
          local_node_num = iif(token_id in (select t.id from api_tokens t
            where t.user_id = (select user_id from api_tokens where id = excluded.token_id)), local_node_num, null),
          disputed_node_num = iif(token_id in (select t.id from api_tokens t
            where t.user_id = (select user_id from api_tokens where id = excluded.token_id)), disputed_node_num, null)
          where kind = 'ingest' and (token_id is null or token_id in (select t.id from api_tokens t
            where t.expires_at <= ${value('now')}
              or t.user_id = (select user_id from api_tokens where id = excluded.token_id)))`,
  )
    .returning(KNOWN)
    .prepare(),
  // Ends claims of tokens that can no longer deliver, to make room for those that can.
  endClaims: db
    .update(sources)
    .set({ localNodeNum: null })
    .where(
      sql`kind = 'ingest' and local_node_num = ${value('nodeNum')} and token_id is not ${value('tokenId')}
        and not exists (select 1 from api_tokens t where t.id = sources.token_id and t.held_at is null
          and (t.expires_at is null or t.expires_at > ${value('now')}))`,
    )
    .prepare(),
  claimNode: db
    .update(sources)
    .set({ localNodeNum: sql`${value('nodeNum')}`, disputedNodeNum: null })
    .where(
      sql`name = ${value('name')} and kind = 'ingest' and local_node_num is null
        and token_id in (select t.id from api_tokens t
          where t.user_id = (select user_id from api_tokens where id = ${value('tokenId')}))
        and not exists (select 1 from sources s where s.local_node_num = ${value('nodeNum')} and iif(s.kind = 'ingest',
          s.token_id <> ${value('tokenId')}, s.name in (select value from json_each(${value('radios')}))))
        and (select count(distinct s.local_node_num) from sources s where s.token_id = ${value('tokenId')}
          and s.local_node_num <> ${value('nodeNum')}) < ${sql.raw(String(MAX_TOKEN_RADIOS))}
        and not exists (select 1 from own_radio_decisions d where d.node_num = ${value('nodeNum')} and not d.is_own)
        and (${isConfirmed(sql`${value('nodeNum')}`, sql`${value('tokenId')}`)}
          or not exists (select 1 from json_each(${value('radios')}) cross join nodes n
            where n.node_num = ${value('nodeNum')} and n.last_heard_by_radio > ${value('heardSince')}))`,
    )
    .prepare(),
  dispute: db
    .update(sources)
    .set({ disputedNodeNum: sql`local_node_num`, localNodeNum: null })
    .where(isDoubtfulClaim(sql`${value('nodeNum')}`))
    .prepare(),
  claims: db
    .select({ source: sources.name, believed: sql<number>`local_node_num is not null` })
    .from(sources)
    .where(
      sql`kind = 'ingest' and token_id is not null
        and (local_node_num = ${value('nodeNum')} or disputed_node_num = ${value('nodeNum')})`,
    )
    .orderBy(sources.id)
    .limit(MAX_TOKEN_SOURCES)
    .prepare(),
  isConnected: db
    .select({ name: sources.name })
    .from(sources)
    .where(and(eq(sources.localNodeNum, value('nodeNum')), inArray(sources.kind, OWN_KINDS)))
    .limit(1)
    .prepare(),
  confirmed: db
    .select({ nodeNum: sources.localNodeNum })
    .from(sources)
    .where(
      sql`kind = 'ingest' and local_node_num in (select value from json_each(${value('nums')}))
        and ${isConfirmed(sql.raw('sources.local_node_num'), TOKEN)}`,
    )
    .prepare(),
  decisions: db
    .select()
    .from(ownRadioDecisions)
    .where(sql`node_num in (select value from json_each(${value('nums')}))`)
    .prepare(),
  endExpired: db
    .update(sources)
    .set({ localNodeNum: null })
    .where(
      sql`kind = 'ingest' and local_node_num is not null
        and exists (select 1 from api_tokens t where t.id = sources.token_id and t.expires_at <= ${value('now')})`,
    )
    .prepare(),
  local: db
    .select(KNOWN)
    .from(sources)
    .where(sql`${sources.localNodeNum} is not null and ${IS_CLAIMED}`)
    .prepare(),
  retire: db
    .update(sources)
    .set({ localNodeNum: null })
    .where(
      sql`${sources.localNodeNum} is not null and ${inArray(sources.kind, OWN_KINDS)}
        and ${sources.name} not in (select value from json_each(${sql.placeholder('radios')}))`,
    )
    .prepare(),
}))

/** Statements that insert sources and update their descriptions. */
export function writeSources(store: Store, rows: readonly SourceRow[]): Statement[] {
  return rows.length === 0 ? [] : [queries(store).sources(rows)]
}

/** Statements that store channels: all channel indexes of each source, and the latest channels that it heard. */
export function writeChannels(store: Store, rows: readonly KnownChannel[]): Statement[] {
  const { channels: write, trimChannels } = queries(store)
  const heard = [...new Set(rows.filter(({ lastHeard }) => lastHeard !== null).map(({ source }) => source))]
  return [
    ...(rows.length > 0 ? [write(rows)] : []),
    ...(heard.length > 0 ? [bind(trimChannels, { names: JSON.stringify(heard) })] : []),
  ]
}

/** Marks the nodes that are our own radios, and no others. Runs after the sources and nodes are written. */
export function markLocalNodes(store: Store): Statement {
  return bind(queries(store).markLocal, {})
}

/** Null if there is no source with this name. `tokenId`: the token that delivers a collector's source. */
export async function readSource(
  store: Store,
  name: string,
): Promise<(KnownSource & { readonly tokenId: number | null }) | null> {
  return (await queries(store).byName.get({ name })) ?? null
}

/**
 * Assigns a source of a collector to the token that delivers it. Null if another owner's token has it, or this one has
 * the maximum number.
 */
export async function claimSource(
  store: Store,
  claim: { readonly name: string; readonly tokenId: number; readonly now: number },
): Promise<KnownSource | null> {
  const [claimed = null] = await queries(store).claim.all(claim)
  if (claimed !== null) await store.atomic([markLocalNodes(store)])
  return claimed
}

/**
 * Returns whether a collector's source may claim a node as its own radio, and stores the claim if so. The first claim
 * stays. False for a different number than before, for a node that is a radio of `radios` or of another token's source,
 * for one that our own radio heard within a day (unless a user decided that it is ours), for one that a user decided is
 * not ours, and beyond the maximum for one token. `radios`: the names of our own radios, or null; `now` in milliseconds.
 */
export async function claimLocalNode(
  store: Store,
  claim: {
    readonly name: string
    readonly tokenId: number
    readonly nodeNum: number
    readonly radios: readonly string[] | null
    readonly now: number
  },
): Promise<boolean> {
  const { name, tokenId, nodeNum, now } = claim
  const before = await readSource(store, name)
  if (before === null) return false
  if (before.localNodeNum !== null) return before.localNodeNum === nodeNum
  const { endClaims, claimNode } = queries(store)
  const radios = JSON.stringify(claim.radios ?? [])
  await store.atomic([
    bind(endClaims, { nodeNum, tokenId, now }),
    bind(claimNode, { name, tokenId, nodeNum, radios, heardSince: now - EARSHOT_MS }),
    markLocalNodes(store),
  ])
  const after = await readSource(store, name)
  // Another token of the same owner may have taken over the source meanwhile.
  return after?.localNodeNum === nodeNum
}

/**
 * Statements that end the claims of collectors about nodes that one of our own radios heard as other nodes, unless
 * somebody decided about them, and record it in the audit log. `heardBy`: the names of these radios, by node number;
 * `now` in milliseconds.
 */
export function disputeClaims(store: Store, heardBy: ReadonlyMap<number, string | null>, now: number): Statement[] {
  if (heardBy.size === 0) return []
  const ctx = { store, ip: null, requestId: null, viewer: null, now: () => now }
  const ended = [...heardBy].flatMap(([nodeNum, radio]) => {
    const isDoubtful = isDoubtfulClaim(sql`${nodeNum}`)
    const isEnding = sql`exists (select 1 from sources where ${isDoubtful})`
    const claimedBy = sql`(select name from sources where ${isDoubtful} order by id limit 1)`
    const details = { nodeNum, nodeId: formatNodeId(nodeNum), heardBy: radio, claimedBy }
    return [audit(ctx, 'radio_claim_ended', details, { onlyIf: isEnding }), bind(queries(store).dispute, { nodeNum })]
  })
  return [...ended, markLocalNodes(store)]
}

/**
 * The sources of collectors that call a node their radio, and whether somebody said that it is one of our own; null:
 * nobody did. `believed` false: one of our own radios heard it, or somebody decided so.
 */
export async function readClaims(store: Store, nodeNum: number) {
  const rows = await queries(store).claims.all({ nodeNum })
  const declaredOwn = (await readOwnRadioDecisions(store, [nodeNum])).get(nodeNum) ?? null
  return { claims: rows.map(({ source, believed }) => ({ source, believed: believed === 1 })), declaredOwn }
}

/** Which of these nodes a collector claims as its radio, after somebody confirmed that. */
export async function listConfirmedRadios(store: Store, nums: readonly number[]): Promise<ReadonlySet<number>> {
  if (nums.length === 0) return new Set()
  const rows = await queries(store).confirmed.all({ nums: JSON.stringify(nums) })
  return new Set(rows.flatMap(({ nodeNum }) => nodeNum ?? []))
}

/** Nodes about which somebody decided whether they are our own radios. */
async function readOwnRadioDecisions(store: Store, nums: readonly number[]): Promise<ReadonlyMap<number, boolean>> {
  if (nums.length === 0) return new Map()
  const rows = await queries(store).decisions.all({ nums: JSON.stringify(nums) })
  return new Map(rows.map(({ nodeNum, isOwn }) => [nodeNum, isOwn]))
}

/**
 * Decides whether a node that a collector calls its radio is one of our own: true brings a claim back that ended, false
 * ends it for good, null leaves it to what the radios hear. Throws `invalid_request` for a radio on a connection of this
 * service, and for a node that no collector claims.
 */
export async function decideOwnRadio(ctx: Ctx, nodeNum: number, own: boolean | null): Promise<void> {
  const { store } = ctx
  const { isConnected } = queries(store)
  const { claims, declaredOwn: before } = await readClaims(store, nodeNum)
  const connected = await isConnected.get({ nodeNum })
  const isNothing = own === null ? before === null : claims.length === 0 && before === null
  if (connected !== undefined || isNothing) {
    const message = connected === undefined ? 'no collector calls it its radio' : 'it is connected to this service'
    throw new AppError('invalid_request', `own: ${message}`, { issues: [{ path: 'own', message }] })
  }
  const decision =
    own === null
      ? store.db.delete(ownRadioDecisions).where(eq(ownRadioDecisions.nodeNum, nodeNum))
      : store.db
          .insert(ownRadioDecisions)
          .values({ nodeNum, isOwn: own, decidedAt: ctx.now(), ownerId: own ? ownerOfClaim(nodeNum) : null })
          .onConflictDoUpdate({
            target: ownRadioDecisions.nodeNum,
            set: { isOwn: own, decidedAt: ctx.now(), ownerId: sql`excluded.owner_id` },
            setWhere: sql`is_own <> excluded.is_own or owner_id is not excluded.owner_id`,
          })
  const claimedBy = claims.map(({ source }) => source)
  const details = { nodeNum, nodeId: formatNodeId(nodeNum), claimedBy, before: { own: before }, after: { own } }
  await store.atomic([
    decision,
    audit(ctx, 'node_updated', details, { onlyIfChanged: true }),
    ...(own === null ? [] : [own ? believeClaim(store, nodeNum) : endClaim(store, nodeNum)]),
    markLocalNodes(store),
  ])
}

/** The user whose claim counts, else the first one whose claim ended. */
function ownerOfClaim(nodeNum: number): SQL {
  return sql`(select t.user_id from sources s cross join api_tokens t on t.id = s.token_id where s.kind = 'ingest'
    and (s.local_node_num = ${nodeNum} or s.disputed_node_num = ${nodeNum})
    order by s.local_node_num is null, s.id limit 1)`
}

/** The first one of the confirmed owner, if no claim counts already. */
function believeClaim({ db }: Store, nodeNum: number): Statement {
  return db
    .update(sources)
    .set({ localNodeNum: nodeNum, disputedNodeNum: null })
    .where(
      sql`id = (select min(s.id) from sources s where s.disputed_node_num = ${nodeNum} and s.local_node_num is null
          and s.kind = 'ingest' and ${isConfirmed(sql`${nodeNum}`, sql.raw('s.token_id'))})
        and not exists (select 1 from sources o where o.local_node_num = ${nodeNum})`,
    )
}

function endClaim({ db }: Store, nodeNum: number): Statement {
  return db
    .update(sources)
    .set({ disputedNodeNum: nodeNum, localNodeNum: null })
    .where(isClaimOf(sql`${nodeNum}`))
}

/** Ends the claims of expired tokens, and marks the nodes that are our own radios now. `now` in milliseconds. */
export async function endExpiredClaims(store: Store, now: number): Promise<void> {
  await store.atomic([bind(queries(store).endExpired, { now }), markLocalNodes(store)])
}

/** The sources whose node number is known. */
export async function listLocalSources(store: Store): Promise<KnownSource[]> {
  return queries(store).local.all()
}

/** A radio that is no longer configured is an ordinary node: `radios` are the names of the configured ones. */
export async function retireRadios(store: Store, radios: readonly string[]): Promise<void> {
  const { retire } = queries(store)
  await store.atomic([bind(retire, { radios: JSON.stringify(radios) }), markLocalNodes(store)])
}
