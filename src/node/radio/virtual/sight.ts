import { eq, sql } from 'drizzle-orm'
import type { PortViewer } from '../../../app/accounts/access/port-viewer.ts'
import {
  canReadMessage,
  canReadPacket,
  canWriteMessage,
  seesEverything,
  seesNodes,
} from '../../../app/accounts/access/visible.ts'
import { readChannelTable } from '../../../app/mesh/radios/channel-table.ts'
import { channels, nodes, sources } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import type { Packet } from '../../../meshtastic/packet.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import { UNKNOWN_CHANNEL, WITHHELD } from '../../../shared/mesh/channels.ts'

/** What the viewer of a port may see and do through its radio now. */
export type Sight = {
  readonly viewer: PortViewer
  /** The service's number for a slot of the radio. */
  numberOf(slot: number): number
  /** Whether a slot holds a channel that the viewer may read. */
  canReadSlot(slot: number): boolean
  /** Whether the viewer may send to this node, or to all, on this slot. */
  canWrite(slot: number, to: number): boolean
  seesNode(nodeNum: number): boolean
  /** Whether a node of the radio's list may be in the viewer's: an anonymous caller sees only those that are stored. */
  isListed(nodeNum: number): boolean
  seesEverything(): boolean
  /** Whether the content of a packet may be read. `isOwn`: the radio reported it about itself. */
  canReadContent(
    packet: Pick<Packet, 'from' | 'to' | 'channel' | 'pkiEncrypted' | 'isWithheld'>,
    kind: ContentKind,
  ): boolean
}

export type ContentKind = {
  readonly isOwn: boolean
  /** It is a text, which belongs to its channel or to its recipient, whoever sent it. */
  readonly isText: boolean
  /** See `belongsToChannel`. */
  readonly isOfChannel: boolean
}

const queries = prepareOnce((db) => ({
  slots: db
    .select({ index: channels.index, identity: channels.identity })
    .from(channels)
    .innerJoin(sources, eq(sources.id, channels.sourceId))
    .where(eq(sources.name, sql.placeholder('source')))
    .prepare(),
  nodes: db.select({ nodeNum: nodes.nodeNum }).from(nodes).prepare(),
}))

/** How long an anonymous view is used: it depends on all nodes. Caches in front of the service keep it for longer. */
const SHARED_MS = 2000

export type SightOptions = {
  readonly store: Store
  /** Name of the radio's source. */
  readonly source: string
  /** Names of the configured radios, in their order. */
  readonly radios: readonly string[] | null
  /** The viewer with current rights; null: nobody. */
  readonly findViewer: () => Promise<PortViewer | null>
  /** In milliseconds. */
  readonly now: () => number
  /** What the radio says about its slots: see `identifyChannel`. */
  readonly identities: () => ReadonlyMap<number, string | null>
}

/** Reads what the viewer sees now; null: nothing. Costs no query while the database has not changed. */
export function createSightReader(options: SightOptions): () => Promise<Sight | null> {
  const { store, source, radios } = options
  let shared: { readonly at: number; readonly viewer: PortViewer } | null = null
  const findViewer = async () => {
    const now = options.now()
    if (shared !== null && now >= shared.at && now - shared.at < SHARED_MS) return shared.viewer
    const viewer = await options.findViewer()
    shared = viewer?.user === null ? { at: now, viewer } : null
    return viewer
  }
  let kept: { readonly version: number; readonly sight: Sight | null; readonly until: number } | null = null
  const read = async (): Promise<Sight | null> => {
    const viewer = await findViewer()
    if (viewer === null || !viewer.permissions.nodes.read || !viewer.permissions.messages.read) return null
    const table = await readChannelTable(store, radios)
    const rows = await queries(store).slots.all({ source })
    const stored = new Map(rows.map(({ index, identity }) => [index, identity]))
    const isShared = viewer.user === null
    const listed = isShared ? new Set((await queries(store).nodes.all()).map(({ nodeNum }) => nodeNum)) : null
    return sightOf(viewer, listed, {
      numberOf: (slot) => table.numberOf(source, slot),
      // A slot whose new channel is not stored yet still has the number of the old one.
      isSettled: (slot) => stored.has(slot) && options.identities().get(slot) === stored.get(slot),
    })
  }
  return async () => {
    const version = store.version()
    if (kept !== null && kept.version === version && options.now() < kept.until) return kept.sight
    const sight = await read()
    const until = shared === null ? Number.POSITIVE_INFINITY : shared.at + SHARED_MS
    kept = version === null ? null : { version, sight, until }
    return sight
  }
}

type Slots = { numberOf(slot: number): number; isSettled(slot: number): boolean }

function sightOf(viewer: PortViewer, listed: ReadonlySet<number> | null, { numberOf, isSettled }: Slots): Sight {
  const { view } = viewer
  const canReadSlot = (slot: number) => isSettled(slot) && canReadChannel(view, numberOf(slot))
  return {
    viewer,
    numberOf,
    canReadSlot,
    canWrite(slot, to) {
      const place = { channel: numberOf(slot), isDirect: to !== BROADCAST }
      return (place.isDirect || canReadSlot(slot)) && canWriteMessage(view, place)
    },
    seesNode: (nodeNum) => seesNodes(view, [nodeNum]),
    isListed: (nodeNum) => listed?.has(nodeNum) ?? true,
    seesEverything: () => seesEverything(view),
    canReadContent(packet, { isOwn, isText, isOfChannel }) {
      const { from, to, pkiEncrypted } = packet
      const isOnSlot = !pkiEncrypted && (to === BROADCAST || isOfChannel)
      if (isOnSlot && !isOwn && !isSettled(packet.channel)) return false
      const number = pkiEncrypted ? UNKNOWN_CHANNEL : numberOf(packet.channel)
      const channel = packet.isWithheld && isOnSlot ? number + WITHHELD : number
      if (isText) return canReadMessage(view, { channel, isDirect: to !== BROADCAST })
      return canReadPacket(view, { from, to, channel, pkiEncrypted, isOfChannel }, isOwn)
    },
  }
}
