import type { KnownChannel } from './known-channel.ts'
import { eq, inArray, sql, type SQL } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../db/json-rows.ts'
import { channels, nodes, sources } from '../../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../db/store.ts'
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
    onConflict: sql`on conflict (name) do update set
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
  claim: db
    .insert(sources)
    .select(
      sql`select null, 'ingest', ${value('name')}, null, null, ${value('now')}, ${value('tokenId')}
        where (select count(*) from sources where token_id = ${value('tokenId')}) < ${sql.raw(String(MAX_TOKEN_SOURCES))}
          and (select count(*) from sources where token_id is not null) < ${sql.raw(String(MAX_CLAIMED_SOURCES))}
        on conflict (name) do update set token_id = excluded.token_id,
          local_node_num = iif(token_id in (select t.id from api_tokens t
            where t.user_id = (select user_id from api_tokens where id = excluded.token_id)), local_node_num, null)
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
    .set({ localNodeNum: sql`${value('nodeNum')}` })
    .where(
      sql`name = ${value('name')} and kind = 'ingest' and local_node_num is null
        and token_id in (select t.id from api_tokens t
          where t.user_id = (select user_id from api_tokens where id = ${value('tokenId')}))
        and not exists (select 1 from sources s where s.local_node_num = ${value('nodeNum')} and iif(s.kind = 'ingest',
          s.token_id <> ${value('tokenId')}, s.name in (select value from json_each(${value('radios')}))))
        and (select count(distinct s.local_node_num) from sources s where s.token_id = ${value('tokenId')}
          and s.local_node_num <> ${value('nodeNum')}) < ${sql.raw(String(MAX_TOKEN_RADIOS))}
        and not exists (select 1 from json_each(${value('radios')}) cross join nodes n
          where n.node_num = ${value('nodeNum')} and n.last_heard_by_radio > ${value('heardSince')})`,
    )
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
 * for one that our own radio heard within a day, and beyond the maximum for one token. `radios`: the names of our own
 * radios, or null; `now` in milliseconds.
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
