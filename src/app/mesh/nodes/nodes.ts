import { and, eq, or, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { differs } from '../../../db/differs.ts'
import { insertSelect } from '../../../db/insert-select.ts'
import { deletedNodes, neighbors, nodes, renumberings, suspicions } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { enumName } from '../../../meshtastic/enum-name.ts'
import { Config_DeviceConfig_RoleSchema } from '../../../meshtastic/gen/config_pb.ts'
import { HardwareModelSchema } from '../../../meshtastic/gen/hardware_pb.ts'
import { BROADCAST, formatNodeId, parseNodeId } from '../../../meshtastic/node-id.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { listRefused } from './identity/refused-identities.ts'
import { SUSPICIONS } from '../../../shared/mesh/packets.ts'
import { isNameOf, namesOf as namesOfFields } from '../../../shared/names.ts'
import { MAX_NOTES, MAX_REFUSED_IDENTITIES, MAX_SUSPICIONS } from '../../../shared/limits.ts'
import { columnsAmong, type NodeColumn, type NodeRow, pickColumns } from './columns.ts'

/** Keys with which a packet is decrypted: each costs an agreement. */
const MAX_KEYS = 8
/** Characters of a key or name. */
const MAX_REFUSED = 100

export const nodeSchema = z
  .object({
    nodeNum: nodeNumField.describe('Unsigned 32 bits'),
    nodeId: nodeIdField.describe('The same as text, e.g. !a0cb0001'),
    longName: z
      .string()
      .nullable()
      .meta({ description: 'What the node calls itself', examples: ['Hilltop relay'] }),
    shortName: z
      .string()
      .nullable()
      .meta({ description: 'Up to 4 bytes', examples: ['HILL'] }),
    nameAltered: z
      .boolean()
      .describe(
        'Control characters, marks of direction or invisible characters were removed from a name: another node may be called exactly as this one. nodeId tells them apart',
      ),
    hwModel: z.string().nullable().describe('Name as in the protocol, e.g. HELTEC_V3; UNKNOWN_131 for a newer one'),
    firmwareVersion: z
      .string()
      .nullable()
      .describe('e.g. 2.7.15.567b8ea. Known only for radios of this service and nodes that report to the map'),
    role: z.string().nullable().describe('Name as in the protocol, e.g. CLIENT'),
    isLicensed: z.boolean(),
    publicKey: z.string().nullable().describe('Base64'),
    position: z
      .object({
        latitude: z.number().describe('Degrees, north is positive'),
        longitude: z.number().describe('Degrees, east is positive'),
        altitude: z.number().nullable().describe('Metres'),
        precisionBits: z.int().nullable().describe('10 to 31: somewhere in a cell of that many bits; 32: exact'),
        time: timeField.nullable(),
      })
      .nullable(),
    deviceMetrics: z
      .object({
        batteryLevel: z.number().nullable().describe('Percent; 101: external power'),
        voltage: z.number().nullable().describe('Volts'),
        channelUtilization: z
          .number()
          .nullable()
          .describe('Percent of the time in which the node hears the channel busy'),
        airUtilTx: z.number().nullable().describe('Percent of the last hour in which the node transmitted'),
        uptimeSeconds: z.number().nullable(),
        time: timeField.nullable(),
      })
      .nullable(),
    status: z
      .object({ text: z.string(), time: timeField.nullable().describe('When it was heard') })
      .nullable()
      .describe('What its owner wants others to know: one line, sent by the node itself'),
    snr: z.number().nullable().describe('dB, of the last packet heard directly from the node'),
    rssi: z.int().nullable().describe('dBm, of the last packet heard directly from the node'),
    hopsAway: z.int().nullable().describe('0: heard directly'),
    lastHeard: timeField
      .nullable()
      .describe(
        'By whatever way: the later of lastHeardByRadio and lastHeardByBroker. Whoever can publish at a broker can move it',
      ),
    lastHeardByRadio: timeField
      .nullable()
      .describe(
        'Off the air, by a radio of this service; where it has none, by a radio of its collectors. No broker can move it',
      ),
    lastHeardByBroker: timeField.nullable().describe('By any other way: a broker, or a collector beside own radios'),
    firstHeard: timeField,
    viaMqtt: z.boolean().describe('Last heard through a broker, and not by one of our radios for a day'),
    channel: z.int().nullable().describe('The channel it was last heard on, numbered as in GET /api/channels'),
    isFavorite: z.boolean(),
    isIgnored: z.boolean(),
    isMuted: z.boolean().describe('Apps and radios announce no messages from it'),
    isLocal: z.boolean().describe('A radio of this service'),
    hidden: z.boolean().describe('Only users who may change nodes see the node and what it sends'),
    keyMismatch: z
      .boolean()
      .describe(
        'Another public key was announced in the name of the node: see previousPublicKey and refusedPublicKey of the node. The first key stays, unless the other one is signed, or a radio of this service heard it and a broker the first',
      ),
    signed: z
      .boolean()
      .describe(
        'A broadcast of the node was signed by publicKey (XEdDSA, firmware 2.8), the signature was verified, and the CRC-32 of publicKey is the node number. Nothing else proves anything',
      ),
    spoofSuspected: z
      .boolean()
      .describe(
        'Another node seems to send in its name: a packet in the name of a radio of this service did not come from its own connection, a signature does not match the key, a packet of a signing node is not signed, an announced key, name or position contradicts a signed one or one that our own radio heard, or a direct message was encrypted with another key than the known one. None of it is believed. Ends three days after the last such packet; see suspicions of the node',
      ),
    notes: z.string(),
  })
  .meta({ id: 'Node', description: 'A device of the mesh' })
export type Node = z.infer<typeof nodeSchema>

const claimFields = {
  claims: z
    .array(
      z.object({
        source: z.string(),
        believed: z.boolean().describe('False: a radio of this service heard the node, or a user decided so'),
      }),
    )
    .describe('Sources of collectors that call the node their radio'),
  declaredOwn: z
    .boolean()
    .nullable()
    .describe('Whether a user said that the node is a radio of this service; null: nobody did'),
}

/** One node; the list leaves out the fields that need another query. */
export const nodeDetailSchema = nodeSchema
  .extend({
    formerNodeNums: z
      .array(z.int())
      .describe(
        'Earlier numbers of the node, oldest first: they had the same public key and have been silent since. Their data is in this node',
      ),
    previousPublicKey: z
      .string()
      .nullable()
      .describe('Base64: an earlier public key of the node, which another one replaced'),
    refusedPublicKey: z
      .string()
      .nullable()
      .describe('Base64: the latest key that was announced in the name of the node and not accepted'),
    refusedLongName: z.string().nullable().describe('The latest names announced in its name and not accepted'),
    refusedShortName: z.string().nullable(),
    refused: z
      .array(
        z.object({
          publicKey: z.string().nullable().describe('Base64; null: only the names were refused'),
          longName: z.string().nullable(),
          shortName: z.string().nullable(),
          heard: z.boolean().describe('A radio of this service heard it off the air'),
          source: z
            .string()
            .nullable()
            .describe('The radio, broker or collector that delivered it; null: not recorded'),
          gateway: nodeNumField.nullable().describe('Gateway that published it; null: a radio heard it itself'),
          gatewayId: nodeIdField.nullable(),
          lastAt: timeField.nullable(),
        }),
      )
      .max(MAX_REFUSED_IDENTITIES + 1)
      .describe(
        'All that was announced in its name and not accepted, the latest of each source: first what radios of this service heard, which is also in refusedPublicKey, refusedLongName and refusedShortName',
      ),
    ...claimFields,
    keyConfirmed: z.boolean().describe('A user confirmed publicKey. Nothing that is heard replaces it'),
    suspicions: z
      .array(
        z.object({
          reason: z.enum(SUSPICIONS),
          source: z.string().describe('The radio, broker or collector that delivered the packets'),
          gateway: nodeNumField.nullable().describe('Gateway that published them; null: a radio heard them itself'),
          gatewayId: nodeIdField.nullable(),
          count: z.int(),
          firstAt: timeField,
          lastAt: timeField,
        }),
      )
      .max(MAX_SUSPICIONS)
      .describe('Why spoofSuspected, by who delivered the packets, latest first'),
    weakKey: z
      .boolean()
      .describe(
        'publicKey is known to be weak: the firmware made it with too little entropy, so others have its private key too',
      ),
    signedAt: timeField.nullable().describe('Time of the latest packet whose signature was verified'),
    nameSigned: z.boolean().describe('The names were signed: only signed names replace them'),
    positionSigned: z.boolean().describe('The position was signed: only a signed position replaces it'),
    statusSigned: z.boolean().describe('The status was signed: only a signed status replaces it'),
  })
  .meta({ id: 'NodeDetail', description: 'A node, with fields that lists leave out' })
export type NodeDetail = z.infer<typeof nodeDetailSchema>

export const nodeChangesSchema = z.strictObject({
  isFavorite: z.boolean().optional(),
  isIgnored: z.boolean().optional(),
  isMuted: z.boolean().optional(),
  hidden: z.boolean().optional(),
  notes: z
    .string()
    .max(MAX_NOTES)
    // Line breaks and tabs, but no other control characters and no lone surrogates.
    .regex(/^(?:[\n\r\t]|[^\p{Cc}\p{Cs}])*$/u)
    .optional(),
})

/** A node in a path: its number in decimal digits, or `!` and eight hexadecimal digits. */
export const nodeNumSchema = z
  .string()
  .regex(/^(?:[1-9]\d{0,9}|![0-9a-fA-F]{8})$/, 'a node number or !hex')
  .transform((text) => parseNodeId(text) ?? Number(text))
  .refine((nodeNum) => nodeNum > 0 && nodeNum < BROADCAST, 'a node number or !hex')
  .meta({ description: 'Node number or !hex', examples: ['!a0db0001'] })

const MAX_IDS = 100
/** Characters of an ID and its comma. */
const ID_LENGTH = 11

/** Up to 100 of them in a query, separated by commas. */
export const nodeNumsQuery = z
  .string()
  .max(MAX_IDS * ID_LENGTH)
  .transform((text) => text.split(','))
  .pipe(z.array(nodeNumSchema).max(MAX_IDS))

const whenDecided = 'as it was when somebody decided. If another one was announced since, nothing changes'
const refusedFields = {
  refusedPublicKey: z.string().max(MAX_REFUSED).nullish().describe(`The refused key of the node ${whenDecided}`),
  refusedLongName: z.string().max(MAX_REFUSED).nullish().describe(`The refused long name ${whenDecided}`),
  refusedShortName: z.string().max(MAX_REFUSED).nullish().describe(`The refused short name ${whenDecided}`),
}

/** Which of two announced identities is the node's own. */
export const nodeIdentitySchema = z.strictObject({
  use: z
    .enum(['known', 'refused'])
    .describe('`known`: what is shown stays. `refused`: the refused key and names of the node replace it'),
  ...refusedFields,
})

/** One of the announced keys, chosen as the node's own. */
export const nodeKeySchema = z.strictObject({
  publicKey: z
    .base64()
    .length(44)
    .describe('Base64: publicKey, previousPublicKey, or one of the refused keys of the node'),
})

export const nodeClaimsSchema = z.object(claimFields).meta({ id: 'NodeClaims', description: 'Whose radio a node is' })

/** Whether a node that a collector calls its radio is one of our own. */
export const nodeOwnSchema = z.strictObject({
  own: z
    .boolean()
    .nullable()
    .describe('true: the collector is believed. false: never. null: unless a radio of this service hears the node'),
})

type Refused = Pick<NodeRow, 'publicKey' | 'longName' | 'shortName'>

/**
 * What was refused of a node, the best founded first. What an earlier version refused has no source. Empty: nothing.
 * `hasListed` false: it is known that no source is listed.
 */
export async function listAllRefused(store: Store, node: NodeRow, hasListed = true) {
  const { refusedPublicKey: publicKey, refusedLongName: longName, refusedShortName: shortName } = node
  const listed = hasListed ? await listRefused(store, node.nodeNum) : []
  const first = { publicKey, longName, shortName }
  const isListed = isNothing(first) || listed.some((each) => isSame(each, first))
  const heard = node.refusedHeard
  return isListed ? listed : [{ ...first, heard, source: null, gateway: null, lastAt: null }, ...listed]
}

const NOTHING: Refused = { publicKey: null, longName: null, shortName: null }

function isSame(a: Refused, b: Refused): boolean {
  return a.publicKey === b.publicKey && a.longName === b.longName && a.shortName === b.shortName
}

function isNothing(refused: Refused): boolean {
  return isSame(refused, NOTHING)
}

/**
 * The refused identity that somebody saw; without any field, the best founded one. Anybody can announce yet another one
 * while somebody looks at one: throws `node_changed` if it is not there.
 */
async function findRefused(store: Store, node: NodeRow, seen: z.infer<typeof nodeIdentitySchema>): Promise<Refused> {
  const all: readonly Refused[] = await listAllRefused(store, node)
  const isSeen = ({ publicKey, longName, shortName }: Refused) =>
    (seen.refusedPublicKey === undefined || seen.refusedPublicKey === publicKey) &&
    (seen.refusedLongName === undefined || seen.refusedLongName === longName) &&
    (seen.refusedShortName === undefined || seen.refusedShortName === shortName)
  const found = (all.length === 0 ? [NOTHING] : all).find(isSeen)
  if (found === undefined) throw new AppError('node_changed')
  return found
}

function isStillRefused(nodeNum: number, { publicKey, longName, shortName }: Refused): SQL {
  return sql`exists (select 1 from refused_identities x where x.node_num = ${nodeNum} and x.public_key is ${publicKey}
    and x.long_name is ${longName} and x.short_name is ${shortName})`
}

const byNum = prepareOnce((db) => ({
  get: db
    .select()
    .from(nodes)
    .where(eq(nodes.nodeNum, sql.placeholder('nodeNum')))
    .prepare(),
}))

type Listed = Extract<keyof Node, NodeColumn>
/** The columns that the API returns in a list, under their names. */
const LISTED: readonly Listed[] = columnsAmong(namesOfFields(nodeSchema.shape))

type Detailed = Exclude<Extract<keyof NodeDetail, NodeColumn>, Listed>
/** The columns that it returns for a single node alone. */
export const DETAILED: readonly Detailed[] = columnsAmong(namesOfFields(nodeDetailSchema.shape)).filter(
  (name): name is Detailed => !isNameOf(nodeSchema.shape, name),
)

/** The row as the API returns it. */
export function publicNode(row: NodeRow): Node {
  return {
    nodeId: formatNodeId(row.nodeNum),
    ...pickColumns(row, LISTED),
    hwModel: row.hwModel === null ? null : enumName(HardwareModelSchema, row.hwModel),
    role: row.role === null ? null : enumName(Config_DeviceConfig_RoleSchema, row.role),
    position: publicPosition(row),
    deviceMetrics: publicMetrics(row),
    status: publicStatus(row),
    hidden: row.isHidden,
    signed: row.signedAt !== null,
  }
}

function publicPosition(row: NodeRow): Node['position'] {
  const { latitude, longitude, altitude, precisionBits, positionTime: time } = row
  return latitude === null || longitude === null ? null : { latitude, longitude, altitude, precisionBits, time }
}

/** Empty: its owner took the last one back. */
function publicStatus({ status: text, statusTime: time }: NodeRow): Node['status'] {
  return text === null || text === '' ? null : { text, time }
}

/** Null if it has reported none. */
export function publicMetrics(row: NodeRow): Node['deviceMetrics'] {
  const { batteryLevel, voltage, channelUtilization, airUtilTx, uptimeSeconds, deviceMetricsTime: time } = row
  const metrics = { batteryLevel, voltage, channelUtilization, airUtilTx, uptimeSeconds }
  return Object.values(metrics).every((value) => value === null) ? null : { ...metrics, time }
}

/** Null for an unknown number. */
export async function readNodeRow(store: Store, nodeNum: number): Promise<NodeRow | null> {
  return (await byNum(store).get.get({ nodeNum })) ?? null
}

async function findNode(store: Store, nodeNum: number): Promise<NodeRow> {
  const row = await readNodeRow(store, nodeNum)
  if (row === null) throw new AppError('node_not_found')
  return row
}

/** For readers: also finds a node by an earlier number. */
export async function updateNode(ctx: Ctx, nodeNum: number, changes: z.infer<typeof nodeChangesSchema>): Promise<void> {
  const before = await findNode(ctx.store, nodeNum)
  const { isFavorite, isIgnored, isMuted, hidden, notes } = { ...before, hidden: before.isHidden, ...changes }
  const after = { isFavorite, isIgnored, isMuted, isHidden: hidden, notes }
  const fields = (['isFavorite', 'isIgnored', 'isMuted', 'isHidden', 'notes'] as const).filter(
    (key) => after[key] !== before[key],
  )
  if (fields.length === 0) return
  const pick = (from: typeof after) => Object.fromEntries(fields.map((key) => [key, from[key]]))
  const details = { nodeNum, nodeId: formatNodeId(nodeNum), before: pick(before), after: pick(after) }
  await ctx.store.atomic([
    ctx.store.db
      .update(nodes)
      .set(pick(after))
      .where(and(eq(nodes.id, before.id), differs(nodes, fields, after))),
    audit(ctx, 'node_updated', details, { onlyIfChanged: true }),
  ])
  ctx.radio?.markNode?.(nodeNum)
}

/** Hides a node. An unknown node is hidden as soon as it is heard. */
export async function hideNode(ctx: Ctx, nodeNum: number): Promise<void> {
  if ((await readNodeRow(ctx.store, nodeNum)) !== null) return updateNode(ctx, nodeNum, { hidden: true })
  const details = { nodeNum, nodeId: formatNodeId(nodeNum), before: { isHidden: false }, after: { isHidden: true } }
  await ctx.store.atomic([
    ctx.store.db
      .insert(deletedNodes)
      .values({ nodeNum, deletedAt: 0, isHidden: true })
      .onConflictDoUpdate({
        target: deletedNodes.nodeNum,
        set: { isHidden: true },
        setWhere: sql`not ${deletedNodes.isHidden}`,
      }),
    audit(ctx, 'node_updated', details, { onlyIfChanged: true }),
  ])
}

/**
 * Confirms one of the announced keys as the node's own, and drops the others together with their warnings. Names come
 * with the refused key. Names and positions signed with another key lose their mark. Throws `node_not_found`, and
 * `invalid_request` for a key that was not announced.
 */
export async function acceptKey(ctx: Ctx, nodeNum: number, publicKey: string): Promise<void> {
  const before = await findNode(ctx.store, nodeNum)
  // The key of one of our radios comes from its own connection only.
  const refused = before.isLocal ? [] : await listAllRefused(ctx.store, before)
  const others = before.isLocal ? [] : [before.previousPublicKey, ...refused.map((each) => each.publicKey)]
  if (![before.publicKey, ...others].includes(publicKey)) {
    const message = 'none of the keys that the node announced'
    throw new AppError('invalid_request', `publicKey: ${message}`, { issues: [{ path: 'publicKey', message }] })
  }
  const chosen = publicKey === before.publicKey ? undefined : refused.find((each) => each.publicKey === publicKey)
  await settleIdentity(ctx, before, { publicKey, ...namesOf(chosen ?? NOTHING, before) }, chosen)
}

/**
 * Settles a conflict about a node's identity: the known key and names stay, or the refused ones replace them. Either
 * way the warnings end, and nothing heard later replaces the key. Throws `node_not_found`; `invalid_request` if nothing
 * was refused, or if the node is one of our radios; `node_changed` if something else was refused since.
 */
export async function settleNode(ctx: Ctx, nodeNum: number, seen: z.infer<typeof nodeIdentitySchema>): Promise<void> {
  const before = await findNode(ctx.store, nodeNum)
  const chosen = await findRefused(ctx.store, before, seen)
  const { publicKey, isLocal } = before
  if (seen.use === 'known') return settleIdentity(ctx, before, { publicKey, ...namesOf(NOTHING, before) })
  if (isLocal || isNothing(chosen)) {
    const message = isLocal ? 'a radio of this service tells its own identity' : 'nothing was refused'
    throw new AppError('invalid_request', `use: ${message}`, { issues: [{ path: 'use', message }] })
  }
  await settleIdentity(ctx, before, { publicKey: chosen.publicKey ?? publicKey, ...namesOf(chosen, before) }, chosen)
}

type Identity = Pick<NodeRow, 'publicKey' | 'longName' | 'shortName'>

function namesOf({ longName, shortName }: Refused, known: NodeRow) {
  return { longName: longName ?? known.longName, shortName: shortName ?? known.shortName }
}

/** `chosen`: the refused identity that is taken. */
async function settleIdentity(ctx: Ctx, before: NodeRow, identity: Identity, chosen?: Refused): Promise<void> {
  const { nodeNum, previousPublicKey, refusedPublicKey, keyMismatch, spoofSuspected } = before
  const { refusedLongName, refusedShortName } = before
  const isOtherKey = identity.publicKey !== before.publicKey
  const isRenamed = identity.longName !== before.longName || identity.shortName !== before.shortName
  const { signedAt, keySigned, positionSigned, positionHeard, nameSigned, nameHeard, nameAltered } = before
  const after = {
    ...identity,
    previousPublicKey: null,
    refusedPublicKey: null,
    refusedLongName: null,
    refusedShortName: null,
    refusedHeard: false,
    keyMismatch: false,
    spoofSuspected: false,
    spoofClaim: null,
    keyConfirmed: before.keyConfirmed || (identity.publicKey !== null && (isOtherKey || keyMismatch)),
    signedAt: isOtherKey ? null : signedAt,
    keySigned: keySigned && !isOtherKey,
    positionSigned: positionSigned && !isOtherKey,
    positionHeard: positionHeard && !isOtherKey,
    statusSigned: before.statusSigned && !isOtherKey,
    statusHeard: before.statusHeard && !isOtherKey,
    // The next report of the node says whether the other names were altered.
    nameAltered: nameAltered && !isRenamed,
    nameSigned: nameSigned && !isOtherKey && !isRenamed,
    // Names that somebody chose are as certain as those that a radio heard.
    nameHeard: isRenamed || (nameHeard && !isOtherKey),
  }
  const fields = namesOfFields(after)
  const shown = { publicKey: before.publicKey, ...namesOf(NOTHING, before), keyMismatch, spoofSuspected }
  const refused = { previousPublicKey, refusedPublicKey, refusedLongName, refusedShortName }
  const details = {
    nodeNum,
    nodeId: formatNodeId(nodeNum),
    before: { ...shown, ...refused },
    after: { ...identity, keyMismatch: false, spoofSuspected: false },
  }
  // Anything announced meanwhile needs a new decision.
  const isAsSeen = (['publicKey', 'refusedPublicKey', 'refusedLongName', 'refusedShortName'] as const).map(
    (key) => sql`${nodes[key]} is ${before[key]}`,
  )
  const isFirst =
    chosen === undefined ||
    (chosen.publicKey === before.refusedPublicKey &&
      chosen.longName === before.refusedLongName &&
      chosen.shortName === before.refusedShortName)
  const isThere = isFirst ? [] : [isStillRefused(nodeNum, chosen)]
  await ctx.store.atomic([
    ctx.store.db
      .update(nodes)
      .set(after)
      .where(and(eq(nodes.id, before.id), ...isAsSeen, ...isThere, differs(nodes, fields, after))),
    audit(ctx, 'node_updated', details, { onlyIfChanged: true }),
    ctx.store.db.delete(suspicions).where(eq(suspicions.nodeNum, nodeNum)),
  ])
}

/**
 * Deletes a node, its track and its telemetry, also from the memory of our radios. If it is heard again, it starts
 * without them; if it was hidden, it stays hidden. Its remaining rows are unreachable, and `sweepForgotten` deletes
 * them. Throws `node_not_found`.
 */
export async function deleteNode(ctx: Ctx, nodeNum: number): Promise<void> {
  const { id, longName } = await findNode(ctx.store, nodeNum)
  const { db } = ctx.store
  const deletedAt = ctx.now()
  // Before the node is deleted, because these statements read whether it is hidden, and its earlier numbers.
  const numbers = sql`from (
      select node_num as n, is_hidden from nodes where id = ${id}
      union all select r.from_node_num, 1 from nodes h cross join renumberings r on r.to_node_num = h.node_num
        and r.undone_at is null where h.id = ${id} and h.is_hidden)
    group by n`
  await ctx.store.atomic([
    insertSelect(
      db,
      deletedNodes,
      { nodeNum: sql`n`, deletedAt, isHidden: sql`max(is_hidden)` },
      numbers,
    ).onConflictDoUpdate({
      target: deletedNodes.nodeNum,
      set: { deletedAt, isHidden: sql`max(excluded.is_hidden, ${deletedNodes.isHidden})` },
    }),
    db.delete(nodes).where(eq(nodes.id, id)),
    audit(ctx, 'node_deleted', { nodeNum, nodeId: formatNodeId(nodeNum), longName }, { onlyIfChanged: true }),
    db.delete(neighbors).where(eq(neighbors.nodeNum, nodeNum)),
    db.delete(renumberings).where(or(eq(renumberings.toNodeNum, nodeNum), eq(renumberings.fromNodeNum, nodeNum))),
  ])
  ctx.radio?.forgetNode?.(nodeNum)
}

/**
 * The public keys that a node may have, in base64: the current one, then replaced ones, then refused ones. Decryption
 * shows which of them was used.
 */
export async function readPublicKeys(store: Store, nodeNum: number): Promise<readonly string[]> {
  const row = await readNodeRow(store, nodeNum)
  if (row === null) return []
  const isRefusing = row.keyMismatch || row.refusedPublicKey !== null
  const refused = isRefusing ? (await listAllRefused(store, row)).map(({ publicKey }) => publicKey) : []
  const keys = [...new Set([row.publicKey, row.previousPublicKey, ...refused])]
  return keys.filter((key) => key !== null).slice(0, MAX_KEYS)
}
