import { type Column, type Placeholder, sql, type SQL } from 'drizzle-orm'
import { messages } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { BROADCAST } from '../../meshtastic/node-id.ts'
import { canReadChannel, canWriteChannel, type Scope, WHOLE_SCOPE } from '../../shared/access/scope.ts'
import { UNKNOWN_CHANNEL } from '../../shared/mesh/channels.ts'
import { NO_PERMISSIONS, type Permissions } from '../../shared/access/resources.ts'

// Which parts of a row a viewer sees: decided only here, for SQL and for live events.

/** What of the contents of the mesh a viewer sees. */
export type View = Scope & {
  /** Numbers of the nodes that are hidden from this viewer, with those that they had before. */
  readonly hidden: ReadonlySet<number>
}

const NOTHING_HIDDEN: ReadonlySet<number> = new Set()

/** Everything: that of the service itself. */
export const WHOLE_VIEW: View = { ...WHOLE_SCOPE, hidden: NOTHING_HIDDEN }

/** Numbers of the nodes that fulfil a condition of `n`, with those that they had before. */
const numsOf = (condition: SQL) => sql`select n.node_num as num from nodes n where ${condition}
  union select r.from_node_num from nodes n cross join renumberings r on r.to_node_num = n.node_num and r.undone_at is null
  where ${condition}`

/** Sub-select in a query of viewers: a JSON array of all hidden nodes, deleted ones too, for `viewOf`. */
export const hiddenNodes = sql<string>`(select json_group_array(num) from (${numsOf(sql`n.is_hidden`)}
  union select node_num from deleted_nodes where is_hidden))`

/** `hidden`: as `hiddenNodes` answers. Hidden nodes are there for those who may change nodes. */
export function viewOf(scope: Scope, { nodes }: Permissions, hidden: string): View {
  if (nodes.write || hidden === '[]') return { ...scope, hidden: NOTHING_HIDDEN }
  const nums: unknown = JSON.parse(hidden)
  return { ...scope, hidden: new Set(Array.isArray(nums) ? nums.map(Number) : []) }
}

/** Nodes that nobody sees who is not signed in. `heardAfter`: null for any time, even never. */
const nodesNotShared = sql<string>`(select json_group_array(num) from (
  ${numsOf(sql`n.is_hidden or n.is_ignored
    or (${sql.placeholder('heardAfter')} is not null and coalesce(n.last_heard, 0) <= ${sql.placeholder('heardAfter')})`)}
  union select node_num from deleted_nodes where is_hidden))`

const queries = prepareOnce((db) => ({
  hidden: db
    .select({ hidden: hiddenNodes })
    .from(sql`(select 1)`)
    .prepare(),
  notShared: db
    .select({ hidden: nodesNotShared })
    .from(sql`(select 1)`)
    .prepare(),
}))

/** What somebody with this scope and these permissions sees. */
export async function readView(store: Store, scope: Scope, permissions: Permissions): Promise<View> {
  return viewOf(scope, permissions, (await queries(store).hidden.get())?.hidden ?? '[]')
}

/**
 * What anonymous callers see with this scope. Ignored nodes, and those not heard after `heardAfter` (ms; null: at any
 * time, even never), are as if they were hidden.
 */
export async function readSharedView(store: Store, scope: Scope, heardAfter: number | null): Promise<View> {
  const found = await queries(store).notShared.get({ heardAfter })
  return viewOf(scope, NO_PERMISSIONS, found?.hidden ?? '[]')
}

/** Whether the view leaves out no message. */
export function seesAllMessages(view: View): boolean {
  return view.direct.read && seesAllContents(view)
}

/** Whether the view leaves out no position, measurement or node. */
export function seesAllContents({ channels, hidden }: View): boolean {
  return channels === 'all' && hidden.size === 0
}

/** Names all that a view lets read, for what one process keeps: never to be told. */
export function viewKey(view: View): string {
  return `${viewTag(view)} ${[...view.hidden].join()}`
}

/** The same in few letters, and without telling which nodes are hidden: with a revision, which changes with those. */
export function viewTag({ channels, direct, hidden }: View): string {
  const read = channels === 'all' ? 'all' : channels.read.join('.')
  return `${read}${direct.read ? '-d' : ''}${hidden.size === 0 ? '' : '-h'}`
}

/** Where a message was said: on a channel, or between two nodes. */
export type Place = { readonly channel: number; readonly isDirect: boolean }

/** On which channels came what is known of a node; null: there is nothing, or a radio of ours told it of itself. */
export type NodeChannels = {
  readonly position: number | null
  readonly deviceMetrics: number | null
  /** The channel that the node was last heard on. */
  readonly channel: number | null
}

export function placeOfMessage({ channel, to }: { readonly channel: number; readonly to: number }): Place {
  return { channel, isDirect: to !== BROADCAST }
}

export function canReadMessage(scope: Scope, { channel, isDirect }: Place): boolean {
  return isDirect ? scope.direct.read : canReadChannel(scope, channel)
}

export function canWriteMessage(scope: Scope, { channel, isDirect }: Place): boolean {
  return isDirect ? scope.direct.write : canWriteChannel(scope, channel)
}

/** Whether the scope includes all messages. */
export type PacketPlace = {
  readonly channel: number
  readonly to: number
  readonly pkiEncrypted: boolean
  readonly isOwn: boolean
}

/** Whether what a decoded packet says may be read. `isText`: it is, or may be, what somebody says. */
export function canReadPacket(
  scope: Scope,
  { channel, to, pkiEncrypted, isOwn }: PacketPlace,
  isText: boolean,
): boolean {
  if (isText) return canReadMessage(scope, { channel, isDirect: pkiEncrypted || to !== BROADCAST })
  return isOwn || canReadChannel(scope, pkiEncrypted ? UNKNOWN_CHANNEL : channel)
}

/** Whether none of the nodes is hidden. */
export function seesNodes({ hidden }: View, nums: readonly (number | null)[]): boolean {
  return hidden.size === 0 || nums.every((nodeNum) => nodeNum === null || !hidden.has(nodeNum))
}

/** The values that a condition compares with: of a view, or placeholders of a prepared select. */
type Values = Readonly<Record<keyof ReturnType<typeof visibleValues>, Placeholder | string | number>>

/** The values of a view for the conditions of a prepared select. */
export function visibleValues({ channels, direct, hidden }: View) {
  return {
    seesDirect: direct.read ? 1 : 0,
    seesAll: channels === 'all' ? 1 : 0,
    seenChannels: JSON.stringify(channels === 'all' ? [] : channels.read),
    hiddenNodes: JSON.stringify([...hidden]),
  }
}

const LATER: Values = {
  seesDirect: sql.placeholder('seesDirect'),
  seesAll: sql.placeholder('seesAll'),
  seenChannels: sql.placeholder('seenChannels'),
  hiddenNodes: sql.placeholder('hiddenNodes'),
}

/** The condition of `messages` for a prepared select that is run with `visibleValues`. */
export const visibleMessages: SQL = messagesWith(LATER)

/** The same with its values. */
export function messagesSeenBy(view: View): SQL {
  return messagesWith(visibleValues(view))
}

function messagesWith(values: Values): SQL {
  return sql`case when ${messages.toNodeNum} <> ${sql.raw(String(BROADCAST))} then ${values.seesDirect}
    when ${values.seesAll} then 1
    else ${messages.channel} in (select value from json_each(${values.seenChannels})) end
    and ${areShown([messages.fromNodeNum, messages.toNodeNum], values)}`
}

/**
 * The condition of a row that came on the channel in this column, for a prepared select that is run with `visibleValues`.
 * `null`: on none, a radio of ours told it of itself.
 */
export function onVisibleChannel(channel: Column | SQL): SQL {
  return onChannelWith(channel, LATER)
}

/** The same with its values. */
export function onChannelSeenBy(channel: Column | SQL, scope: Scope): SQL {
  return onChannelWith(channel, visibleValues({ ...scope, hidden: NOTHING_HIDDEN }))
}

function onChannelWith(channel: Column | SQL, { seesAll, seenChannels }: Values): SQL {
  return sql`(${channel} is null or ${seesAll} or ${channel} in (select value from json_each(${seenChannels})))`
}

/** The condition that none of the nodes in these columns is hidden, for a prepared select that is run with `visibleValues`. */
export function ofVisibleNodes(...columns: readonly (Column | SQL)[]): SQL {
  return areShown(columns, LATER)
}

/** The condition that the node in this column is hidden, for the same. */
export function ofHiddenNode(column: Column | SQL): SQL {
  return sql`${column} in (select value from json_each(${LATER.hiddenNodes}))`
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
