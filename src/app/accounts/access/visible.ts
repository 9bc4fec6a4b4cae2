import { type Column, type Placeholder, sql, type SQL } from 'drizzle-orm'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import {
  canReadChannel,
  canWriteChannel,
  readableChannels,
  readsEverything,
  type Scope,
  type Sight,
  WHOLE_SCOPE,
} from '../../../shared/access/scope.ts'
import { FIRST_DIRECT, MIXED_WITH_DIRECT } from '../../../shared/mesh/channels.ts'
import { NO_PERMISSIONS, type Permissions } from '../../../shared/access/resources.ts'

// Decides which parts of a row a viewer sees, for SQL and for live events. Nothing else decides this.

/** The part of the mesh's contents that a viewer sees. */
export type View = Sight & {
  /** Numbers of the nodes that are hidden from this viewer, including their earlier numbers. */
  readonly hidden: ReadonlySet<number>
}

const NOTHING_HIDDEN: ReadonlySet<number> = new Set()

/** The view of the service itself: everything. */
export const WHOLE_VIEW: View = { ...WHOLE_SCOPE, hidden: NOTHING_HIDDEN }

/** Numbers of the nodes that fulfil a condition on `n`, including their earlier numbers. */
const numsOf = (condition: SQL) => sql`select n.node_num as num from nodes n where ${condition}
  union select r.from_node_num from nodes n cross join renumberings r on r.to_node_num = n.node_num and r.undone_at is null
  where ${condition}`

/** Sub-select for a query of viewers: a JSON array of all hidden nodes, including deleted ones, for `viewOf`. */
export const hiddenNodes = sql<string>`(select json_group_array(num) from (${numsOf(sql`n.is_hidden`)}
  union select node_num from deleted_nodes where is_hidden))`

/** `hidden`: the result of `hiddenNodes`. Viewers who may change nodes also see hidden ones. */
export function viewOf(scope: Sight, { nodes }: Permissions, hidden: string): View {
  if (nodes.write || hidden === '[]') return { ...scope, hidden: NOTHING_HIDDEN }
  const nums: unknown = JSON.parse(hidden)
  return { ...scope, hidden: new Set(Array.isArray(nums) ? nums.map(Number) : []) }
}

/**
 * When a packet that anonymous callers may know about was last received from the node of this table or alias on one of
 * these channels (a JSON array), in milliseconds; null: never. For our own radios, when they were last heard at all.
 * Decision: docs/decisions/ok-to-mqtt.md
 */
export function heardInPublic(node: 'n' | 'nodes', channels: Placeholder | string): SQL {
  const of = (column: string) => sql.raw(`${node}.${column}`)
  return sql`iif(${of('is_local')}, coalesce(${of('last_heard')}, 0), (select max(max(h.last_heard,
      iif(h.channel is ${of('public_channel')}, ${of('public_heard')}, 0))) from channel_hearings h
    where h.node_id = ${of('id')} and h.channel in (select value from json_each(${channels}))))`
}

/** Nodes that are not shown to anonymous callers. `heardAfter`: null for any time. */
const withdrawn = sql<string>`(select json_group_array(num) from (
  ${numsOf(sql`n.is_hidden or n.is_ignored or (${sql.placeholder('heardAfter')} is not null
    and ${heardInPublic('n', sql.placeholder('shown'))} <= ${sql.placeholder('heardAfter')})`)}
  union select node_num from deleted_nodes where is_hidden))`

/** Nodes that were never heard by a packet that is shown. */
const unheard = sql<string>`(select json_group_array(num) from (
  ${numsOf(sql`${heardInPublic('n', sql.placeholder('shown'))} is null`)}))`

const queries = prepareOnce((db) => ({
  hidden: db
    .select({ hidden: hiddenNodes })
    .from(sql`(select 1)`)
    .prepare(),
  notShared: db
    .select({ withdrawn, unheard })
    .from(sql`(select 1)`)
    .prepare(),
}))

/** What a user with this scope and these permissions sees. */
export async function readView(store: Store, scope: Sight, permissions: Permissions): Promise<View> {
  return viewOf(scope, permissions, (await queries(store).hidden.get())?.hidden ?? '[]')
}

/** `unheard`: the hidden nodes that were never heard by a packet that is shown. */
export type SharedView = View & { readonly unheard: ReadonlySet<number> }

/**
 * What anonymous callers see with this scope. These nodes count as hidden: ignored ones, those not heard after
 * `heardAfter` (ms; null: any time), and those heard only by packets that are not shown.
 */
export async function readSharedView(store: Store, scope: Scope, heardAfter: number | null): Promise<SharedView> {
  const sight: Sight = { ...scope, isPublic: true }
  const shown = JSON.stringify(readableChannels(sight))
  const found = await queries(store).notShared.get({ heardAfter, shown })
  const { hidden } = viewOf(sight, NO_PERMISSIONS, found?.withdrawn ?? '[]')
  const { hidden: never } = viewOf(sight, NO_PERMISSIONS, found?.unheard ?? '[]')
  return { ...sight, hidden: new Set([...hidden, ...never]), unheard: never }
}

/** Whether the view leaves out no message, position, measurement or node. */
export function seesEverything(view: View): boolean {
  return readsEverything(view)
}

/** Cache key with everything the view shows. Never send it to a client. */
export function viewKey(view: View): string {
  return `${viewTag(view)} ${[...view.hidden].join()}`
}

/**
 * A short form that does not reveal which nodes are hidden. Use it together with a revision, which changes with them.
 */
export function viewTag({ channels, direct, hidden, isPublic }: View): string {
  const read = channels === 'all' ? 'all' : channels.read.join('.')
  return `${read}${direct.read ? '-d' : ''}${isPublic === true ? '-p' : ''}${hidden.size === 0 ? '' : '-h'}`
}

/** Where a message was said: on a channel, or between two nodes. */
export type Place = { readonly channel: number; readonly isDirect: boolean }

/**
 * The channels on which the data of a node arrived; null: there is none, or one of our radios reported it about itself.
 */
export type NodeChannels = {
  readonly position: number | null
  readonly deviceMetrics: number | null
  readonly status: number | null
  /** The channel that the node was last heard on. */
  readonly channel: number | null
}

export function placeOfMessage({ channel, to }: { readonly channel: number; readonly to: number }): Place {
  return { channel, isDirect: to !== BROADCAST }
}

export function canReadMessage(scope: Sight, { channel, isDirect }: Place): boolean {
  return isDirect ? scope.direct.read : canReadChannel(scope, channel)
}

export function canWriteMessage(scope: Sight, { channel, isDirect }: Place): boolean {
  return isDirect ? scope.direct.write : canWriteChannel(scope, channel)
}

export type PacketPlace = {
  readonly channel: number
  readonly from: number
  readonly to: number
  readonly pkiEncrypted: boolean
  /** It belongs to its channel although it is addressed to one node: see `belongsToChannel`. */
  readonly isOfChannel: boolean
}

/**
 * Whether a payload belongs to its channel, even if it is addressed to one node: a traceroute, to which each node on its
 * way adds itself, and a text of the channel that a store & forward server repeats.
 */
export function belongsToChannel(kind: string, isReplayOfChannel: boolean): boolean {
  return kind === 'traceroute' || isReplayOfChannel
}

/**
 * Whether a packet was for one node alone: encrypted for it, or addressed to it.
 * Decision: docs/decisions/sent-to-one-node.md
 */
export function isForOneNode({ to, pkiEncrypted, isOfChannel }: Omit<PacketPlace, 'channel' | 'from'>): boolean {
  return pkiEncrypted || (to !== BROADCAST && !isOfChannel)
}

/** Whether the content of a decoded packet may be read. `isOwn`: one of our radios reported it about itself. */
export function canReadPacket(scope: Sight, { channel, ...packet }: PacketPlace, isOwn: boolean): boolean {
  if (isForOneNode(packet)) return scope.direct.read || (isOwn && packet.to === packet.from)
  return isOwn || canReadChannel(scope, channel)
}

/** Whether none of the nodes is hidden. */
export function seesNodes({ hidden }: View, nums: readonly (number | null)[]): boolean {
  return hidden.size === 0 || nums.every((nodeNum) => nodeNum === null || !hidden.has(nodeNum))
}

/** The values that a condition compares with: those of a view, or placeholders of a prepared select. */
type Values = Readonly<Record<keyof ReturnType<typeof visibleValues>, Placeholder | string | number>>

/** The values of a view for the conditions of a prepared select. */
export function visibleValues(view: View) {
  const { channels, direct, hidden } = view
  return {
    seesDirect: direct.read ? 1 : 0,
    seesAll: channels === 'all' ? 1 : 0,
    seesWithheld: view.isPublic === true ? 0 : 1,
    seenChannels: JSON.stringify(readableChannels(view)),
    hiddenNodes: JSON.stringify([...hidden]),
  }
}

const BOUND: Values = {
  seesDirect: sql.placeholder('seesDirect'),
  seesAll: sql.placeholder('seesAll'),
  seesWithheld: sql.placeholder('seesWithheld'),
  seenChannels: sql.placeholder('seenChannels'),
  hiddenNodes: sql.placeholder('hiddenNodes'),
}

/** The condition on `messages` for a prepared select that is run with `visibleValues`. */
export const visibleMessages: SQL = messagesWith(BOUND)

/** The same for the alias `r` of a reaction. */
export const visibleReactions: SQL = messagesWith(BOUND, sql.raw('r.'))

function messagesWith(values: Values, of = sql.raw('messages.')): SQL {
  return sql`case when ${of}to_node_num <> ${sql.raw(String(BROADCAST))} then ${values.seesDirect}
    when ${values.seesAll} then 1
    else ${of}channel in (select value from json_each(${values.seenChannels}))
      and (${values.seesWithheld} or not ${of}withheld) end
    and ${areShown([sql`${of}from_node_num`, sql`${of}to_node_num`], values)}`
}

/**
 * The condition on a row whose data arrived on the channel in this column, for a prepared select that is run with
 * `visibleValues`. `null`: no channel, because one of our radios reported it about itself.
 */
export function onVisibleChannel(channel: Column | SQL): SQL {
  return onChannelWith(channel, BOUND)
}

/** The same with its values. */
export function onChannelSeenBy(channel: Column | SQL, view: View): SQL {
  return onChannelWith(channel, visibleValues(view))
}

const DIRECT = sql.raw(String(FIRST_DIRECT))

/** The same rule as `canReadChannel`. */
function onChannelWith(channel: Column | SQL, { seesAll, seesDirect, seenChannels, hiddenNodes: nums }: Values): SQL {
  return sql`case when ${channel} is null then 1
    when ${channel} >= ${DIRECT} then ${seesDirect} and ${channel} - ${DIRECT} not in (select value from json_each(${nums}))
    when ${channel} = ${sql.raw(String(MIXED_WITH_DIRECT))} then ${seesAll} and ${seesDirect} and ${nums} = '[]'
    else ${seesAll} or ${channel} in (select value from json_each(${seenChannels})) end`
}

/** The condition that none of the nodes in these columns is hidden, for a prepared select that is run with `visibleValues`. */
export function ofVisibleNodes(...columns: readonly (Column | SQL)[]): SQL {
  return areShown(columns, BOUND)
}

/** The condition that the node in this column is hidden, for the same. */
export function ofHiddenNode(column: Column | SQL): SQL {
  return sql`${column} in (select value from json_each(${BOUND.hiddenNodes}))`
}

/** `ofVisibleNodes` with its values. */
export function ofNodesSeenBy(view: View, ...columns: readonly (Column | SQL)[]): SQL {
  return areShown(columns, visibleValues(view))
}

function areShown(columns: readonly (Column | SQL)[], { hiddenNodes: nums }: Values): SQL {
  return sql.join(
    columns.map((column) => sql`${column} not in (select value from json_each(${nums}))`),
    sql` and `,
  )
}
