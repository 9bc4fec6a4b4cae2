import type * as z from 'zod'
import { DEFAULT_PRESET, modulationOf, presetModulation } from '../../../meshtastic/airtime.ts'
import { SECTION_SCHEMAS } from '../../../meshtastic/config/sections.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { airtimeOfChange, airtimeOfReading, airtimeOfReboot } from '../../../meshtastic/remote/airtime.ts'
import { REMOTE_SECTIONS } from '../../../meshtastic/remote/asks.ts'
import { lossOf } from '../../../shared/mesh/losses.ts'
import { seesNodes } from '../../accounts/access/visible.ts'
import { audit } from '../../audit/audit.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { ableSenders, chooseRadio } from '../../mesh/radios/choose-radio.ts'
import { getNode } from '../../mesh/nodes/seen.ts'
import { wordsFor } from '../../words/reader.ts'
import { readDescribed } from '../described.ts'
import { remoteEvent } from './event.ts'
import type { RemoteAdmin, RemoteTarget } from './port.ts'
import {
  deleteRemoteNode,
  nestValues,
  readRemoteActions,
  readRemoteNodes,
  readRemoteSections,
  type RemoteRow,
  writeRemoteAction,
  writeRemoteNode,
} from './records.ts'
import type {
  RemoteAction,
  remoteChangeSchema,
  remoteListSchema,
  remoteOverviewSchema,
  remoteSectionSchema,
} from './schemas.ts'

/** For a radio that does not know how far away the node is. */
const ASSUMED_HOPS = 3

/** The nodes that are administered over the mesh, as far as the viewer may see them. */
export async function listRemote(ctx: SignedInCtx): Promise<z.infer<typeof remoteListSchema>> {
  const rows = (await readRemoteNodes(ctx.store)).filter(({ nodeNum }) => seesNodes(ctx.viewer.view, [nodeNum]))
  const actions = await readRemoteActions(
    ctx.store,
    rows.map(({ nodeNum }) => nodeNum),
  )
  return { nodes: rows.map((row) => publicRow(ctx, row, actions.get(row.nodeNum) ?? [])) }
}

function publicRow({ viewer }: SignedInCtx, row: RemoteRow, actions: readonly RemoteAction[]) {
  const { nodeNum, publicKey, presentKey, longName, shortName, firmwareVersion, namedAt, namedBy } = row
  const isNamed = viewer.permissions.nodes.read
  const keyState = publicKey === null ? 'none' : presentKey === publicKey ? 'trusted' : 'changed'
  return {
    nodeNum,
    nodeId: formatNodeId(nodeNum),
    longName: isNamed ? longName : null,
    shortName: isNamed ? shortName : null,
    keyState,
    firmwareVersion,
    namedAt,
    namedBy,
    lastAction: actions[0] ?? null,
  } as const
}

/** Throws `node_not_found` for a node that was not named as own, or that the viewer may not see. */
async function demandRow(ctx: SignedInCtx, nodeNum: number): Promise<RemoteRow> {
  const [row] = seesNodes(ctx.viewer.view, [nodeNum]) ? await readRemoteNodes(ctx.store, nodeNum) : []
  if (row === undefined) throw new AppError('node_not_found', 'No node with this number was named as own')
  return row
}

function demandRemote({ radio }: SignedInCtx): RemoteAdmin {
  if (radio === null) throw new AppError('unsupported_on_this_runtime')
  if (radio.remote === undefined) throw new AppError('radio_unavailable', 'No radio is configured')
  return radio.remote
}

/**
 * Names a node as own, and trusts its present public key; or ends that, and forgets what was read. Throws
 * `node_not_found`, `invalid_request` for a radio of this service, `radio_unavailable` if there is no way to it.
 */
export async function nameRemote(ctx: SignedInCtx, asked: number, own: boolean): Promise<void> {
  const remote = demandRemote(ctx)
  if (own && ctx.radio?.links().some(({ radio }) => radio?.nodeNum === asked) === true) {
    const message = 'it is connected to this service, which changes its settings directly'
    throw new AppError('invalid_request', `own: ${message}`, { issues: [{ path: 'own', message }] })
  }
  const { nodeNum, publicKey } = await getNode(ctx.store, ctx.viewer.view, asked)
  const [before] = await readRemoteNodes(ctx.store, nodeNum)
  const details = {
    nodeNum,
    nodeId: formatNodeId(nodeNum),
    before: tell(before),
    after: own ? { remoteKey: publicKey } : null,
  }
  if (!own) {
    if (before === undefined) return
    await ctx.store.atomic([audit(ctx, 'node_updated', details), deleteRemoteNode(ctx.store, nodeNum)])
    remote.forget(nodeNum)
    return tellNamed(ctx, nodeNum)
  }
  if (publicKey === null) remote.demandWay((await findSource(ctx, nodeNum)) ?? '', null)
  const row = { nodeNum, publicKey, namedAt: ctx.now(), namedBy: ctx.viewer.user.username }
  await ctx.store.atomic([audit(ctx, 'node_updated', details), writeRemoteNode(ctx.store, row)])
  remote.forget(nodeNum)
  tellNamed(ctx, nodeNum)
}

function tellNamed({ events }: SignedInCtx, nodeNum: number): void {
  events?.publish([{ kind: 'configuration', data: { nodeNum }, nodes: [nodeNum] }])
}

function tell(row: RemoteRow | undefined) {
  return row === undefined ? null : { remoteKey: row.publicKey }
}

function findSource({ store, radio }: SignedInCtx, nodeNum: number): Promise<string | null> {
  return chooseRadio({ store, radio }, { to: nodeNum, channel: 0, replyId: null })
}

/** How far the node is from the radio that would reach it. */
function hopsTo({ radio }: SignedInCtx, source: string | null, { nodeNum, hopsAway }: RemoteRow) {
  const heard = radio?.hearings(nodeNum).find((each) => each.source === source)?.hopsAway ?? hopsAway
  return { count: heard ?? ASSUMED_HOPS, isAssumed: heard === null }
}

function modemOf({ radio }: SignedInCtx) {
  const lora = radio?.lora() ?? null
  const known = lora === null ? null : modulationOf(lora)
  const modulation = known?.modulation ?? presetModulation(DEFAULT_PRESET)
  return { preset: known?.preset ?? DEFAULT_PRESET, isAssumed: known === null, modulation }
}

/** What is known of a node, and what each section costs. Throws `node_not_found`. */
export async function readRemote(ctx: SignedInCtx, nodeNum: number): Promise<z.infer<typeof remoteOverviewSchema>> {
  const remote = demandRemote(ctx)
  const row = await demandRow(ctx, nodeNum)
  const actions = (await readRemoteActions(ctx.store, [nodeNum])).get(nodeNum) ?? []
  const stored = await readRemoteSections(ctx.store, nodeNum)
  const source = await findSource(ctx, nodeNum)
  const hops = hopsTo(ctx, source, row)
  const { modulation, ...modem } = modemOf(ctx)
  const path = { hops: hops.count, modulation }
  return {
    ...publicRow(ctx, row, actions),
    source,
    problem: await problemOf(ctx, remote, source, row),
    ownKey: source === null ? null : remote.ownKey(source),
    hops,
    modem,
    rebootAirtime: airtimeOfReboot(path),
    sections: REMOTE_SECTIONS.flatMap((section) => {
      const kind = SECTION_SCHEMAS.get(section)?.kind
      if (kind === undefined) return []
      const readAt = stored.find((each) => each.section === section)?.readAt ?? null
      const readAirtime = airtimeOfReading(remote.sizes(nodeNum, section), path)
      return [{ section, kind, readAt, readAirtime, lastAction: latestOf(actions, section) }]
    }),
  }
}

function latestOf(actions: readonly RemoteAction[], section: string): RemoteAction | null {
  return actions.find((action) => action.section === section) ?? null
}

/** Why the node cannot be reached now; null: it can. */
async function problemOf(
  ctx: SignedInCtx,
  remote: RemoteAdmin,
  source: string | null,
  row: RemoteRow,
): Promise<string | null> {
  try {
    demandReach(ctx, remote, source, row)
    return null
  } catch (error) {
    if (error instanceof AppError) return (await wordsFor(ctx)).translate(error.message)
    throw error
  }
}

/** Throws `radio_unavailable`, `configuration_changed` for another key. */
function demandReach({ radio }: SignedInCtx, remote: RemoteAdmin, source: string | null, row: RemoteRow): string {
  const { publicKey, presentKey } = row
  if (publicKey !== null && publicKey !== presentKey) {
    throw new AppError(
      'configuration_changed',
      'This node has another public key than when it was named as own. Name it again if the new key is right',
    )
  }
  const sender = ableSenders(radio).find((each) => each.source === source)
  if (source === null || sender === undefined) throw new AppError('radio_unavailable', 'No radio is configured')
  if (!sender.isConnected) throw new AppError('radio_unavailable', 'This radio is not connected')
  if (!sender.isTxEnabled) throw new AppError('radio_unavailable', 'Transmitting is switched off in the radio')
  remote.demandWay(source, publicKey)
  return source
}

/** A section as it was last read, without its secrets. Throws `node_not_found`, `section_not_found`. */
export async function readRemoteSection(
  ctx: SignedInCtx,
  nodeNum: number,
  section: string,
): Promise<z.infer<typeof remoteSectionSchema>> {
  const remote = demandRemote(ctx)
  const row = await demandRow(ctx, nodeNum)
  const described = (await readDescribed(ctx)).get(section)
  const live = remote.sections(nodeNum).find((each) => each.section === section)
  const found = live ?? (await readRemoteSections(ctx.store, nodeNum)).find((each) => each.section === section)
  if (described === undefined || found === undefined) throw new AppError('section_not_found')
  const actions = ((await readRemoteActions(ctx.store, [nodeNum])).get(nodeNum) ?? []).filter(
    (action) => action.section === section,
  )
  const source = await findSource(ctx, nodeNum)
  const path = { hops: hopsTo(ctx, source, row).count, modulation: modemOf(ctx).modulation }
  return {
    source: source ?? '',
    nodeNum,
    section,
    readAt: found.readAt,
    lastAction: actions[0] ?? null,
    lastChange: actions.find(({ kind }) => kind === 'change') ?? null,
    // After a restart of the service the secrets that a change keeps are not known.
    editable: live !== undefined,
    revision: live?.revision ?? null,
    values: found.values,
    secrets: found.secrets,
    ...described,
    changeAirtime: airtimeOfChange(sizesOfChange(remote.sizes(nodeNum, section), section), path),
    losses: Object.fromEntries(
      described.fields.flatMap(({ path: field }) => {
        const loss = lossOf(section, field.replace('channels.*', 'channels.0'), undefined)
        return loss === null ? [] : [[field, loss] as const]
      }),
    ),
  }
}

/** Of channels, one is usually changed. */
function sizesOfChange(sizes: readonly number[], section: string): readonly number[] {
  return section === 'channels' ? sizes.slice(0, 1) : sizes
}

async function target(ctx: SignedInCtx, remote: RemoteAdmin, nodeNum: number): Promise<RemoteTarget> {
  const row = await demandRow(ctx, nodeNum)
  const source = demandReach(ctx, remote, await findSource(ctx, nodeNum), row)
  return { nodeNum, publicKey: row.publicKey, source, hops: hopsTo(ctx, source, row).count }
}

/**
 * Begins to read a section of a node. Throws `node_not_found`, `section_not_found`, `radio_unavailable`,
 * `configuration_changed`, `configuration_change_in_progress`; nothing is sent then.
 */
export async function readFromRemote(ctx: SignedInCtx, nodeNum: number, section: string): Promise<RemoteAction> {
  const remote = demandRemote(ctx)
  const reached = await target(ctx, remote, nodeNum)
  if (!REMOTE_SECTIONS.includes(section)) throw new AppError('section_not_found')
  const prepared = remote.prepareRead(reached, section)
  const action = newAction(ctx, 'read', section)
  const details = { kind: 'remote_read', to: nodeNum, section, source: reached.source }
  return begin(ctx, nodeNum, action, prepared, audit(ctx, 'message_sent', details))
}

/** As above, for a restart. */
export async function rebootRemote(ctx: SignedInCtx, nodeNum: number): Promise<RemoteAction> {
  const remote = demandRemote(ctx)
  const reached = await target(ctx, remote, nodeNum)
  const prepared = remote.prepareReboot(reached)
  const details = { nodeNum, nodeId: formatNodeId(nodeNum), source: reached.source, restart: true }
  return begin(ctx, nodeNum, newAction(ctx, 'reboot', null), prepared, audit(ctx, 'configuration_updated', details))
}

/**
 * Begins to change a section; null if there is nothing to change. Throws as above, and `invalid_request`,
 * `secret_required`, `confirmation_required`.
 */
export async function changeRemote(
  ctx: SignedInCtx,
  nodeNum: number,
  section: string,
  asked: z.infer<typeof remoteChangeSchema>,
): Promise<RemoteAction | null> {
  const remote = demandRemote(ctx)
  const reached = await target(ctx, remote, nodeNum)
  if (!REMOTE_SECTIONS.includes(section)) throw new AppError('section_not_found')
  const prepared = remote.prepareChange(reached, section, asked)
  const { fields, secretsChanged, before, after } = prepared
  if (fields.length === 0) {
    prepared.release()
    return null
  }
  const action = { ...newAction(ctx, 'change', section), fields: [...fields], before: nestValues(before) }
  const about = { nodeNum, nodeId: formatNodeId(nodeNum), source: reached.source, section }
  const entry = audit(ctx, 'configuration_updated', { ...about, before, after, secretsChanged })
  return begin(ctx, nodeNum, action, prepared, entry)
}

function newAction(ctx: SignedInCtx, kind: RemoteAction['kind'], section: string | null): RemoteAction {
  const nothing = { reason: null, detail: null, fields: [], differing: [], before: {}, settledAt: null }
  return { id: ctx.requestId, kind, section, state: 'queued', at: ctx.now(), by: ctx.viewer.user.username, ...nothing }
}

async function begin(
  ctx: SignedInCtx,
  nodeNum: number,
  action: RemoteAction,
  prepared: { start(id: string): void; release(): void },
  entry: ReturnType<typeof audit>,
): Promise<RemoteAction> {
  try {
    await ctx.store.atomic([entry, ...writeRemoteAction(ctx.store, nodeNum, action)])
    ctx.events?.publish([remoteEvent({ nodeNum, id: action.id, section: action.section }, action)])
    prepared.start(action.id)
    return action
  } finally {
    prepared.release()
  }
}
