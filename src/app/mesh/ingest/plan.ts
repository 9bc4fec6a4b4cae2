import { HardwareModelSchema } from '../../../meshtastic/gen/hardware_pb.ts'
import type { MapReport } from '../../../meshtastic/map-report.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import type { Packet } from '../../../meshtastic/packet.ts'
import type { NodeFacts, RadioEvent } from '../../../meshtastic/radio-event.ts'
import { type ChannelTable, type KnownChannel, toKnownChannel } from '../radios/channel-table.ts'
import { dayOf } from '../nodes/evidence.ts'
import { enumNumber } from './enum-number.ts'
import type { Measurements, PositionRow } from './history.ts'
import type { MessageRow } from './messages.ts'
import { deviceMetricsFields, type NodeRow, placeFields, userFields } from './nodes.ts'
import type { Source, SourceRow } from './sources.ts'
import type { Traffic } from './traffic.ts'
import type { Sightings } from './packet-window.ts'
import { addReception, addTraffic, emptyTraffic, type TrafficArrival } from './plan-traffic.ts'

/** How far the clocks of two radios may be apart before the order of arrival is not that of hearing. */
const CLOCK_SLACK_MS = 60_000

/** An event and where it came from. */
export type Heard = {
  readonly source: Source
  readonly event: RadioEvent
  /** Delivered long after it was heard: newer things may be known by now. */
  readonly isLate?: boolean
  /** The bytes of its FromRadio to pass on; null when there may be secrets in them. */
  readonly raw?: Uint8Array | null
}

/** A packet heard for the first time, and live: neither a copy nor out of a radio's memory. */
export type News = { readonly source: Source; readonly packet: Packet; readonly receivedAt: number }

/** What a batch of events changes. */
export type Plan = {
  readonly sources: Map<string, SourceRow>
  /** Node numbers of the sources themselves, as they are after this batch. */
  readonly localNodes: Map<string, number>
  /** As it is after this batch. */
  readonly table: ChannelTable
  readonly channels: KnownChannel[]
  /** Of nodes that are in a radio's memory, or were heard while their packet waited in one. */
  readonly remembered: NodeRow[]
  /** Of nodes that were heard. */
  readonly heard: NodeRow[]
  /** Of nodes that were heard, or remembered, some time ago. */
  readonly late: NodeRow[]
  readonly positions: PositionRow[]
  readonly telemetry: Measurements[]
  readonly messages: MessageRow[]
  readonly traffic: Traffic
  readonly news: News[]
  /** Packets that were known already. */
  readonly duplicates: Packet[]
}

/** The event of a packet, with what is known around it. */
type Arrival = TrafficArrival & { readonly source: Source; readonly isOwn: boolean; readonly isLate: boolean }

/**
 * What the events mean; `localNodes` is what earlier batches told, `sources` who is in the database already. `table` is
 * told what the events say of channels.
 */
export function planBatch(
  batch: readonly Heard[],
  known: {
    readonly localNodes: ReadonlyMap<string, number>
    readonly sources: ReadonlySet<string>
    readonly table: ChannelTable
  },
  sightings: Sightings,
): Plan {
  const plan: Plan = {
    sources: new Map(),
    localNodes: new Map(known.localNodes),
    table: known.table,
    channels: [],
    remembered: [],
    heard: [],
    late: [],
    positions: [],
    telemetry: [],
    messages: [],
    traffic: emptyTraffic(),
    news: [],
    duplicates: [],
  }
  for (const heard of batch) {
    const { source, event } = heard
    if (!known.sources.has(source.name)) noteSource(plan, source, event.receivedAt, {})
    addEvent(plan, heard, sightings)
  }
  return plan
}

function addEvent(plan: Plan, { source, event, isLate = false }: Heard, sightings: Sightings): void {
  const { receivedAt } = event
  switch (event.type) {
    case 'my-info':
      if (!isNode(event.nodeNum)) return
      noteSource(plan, source, receivedAt, { localNodeNum: event.nodeNum })
      plan.localNodes.set(source.name, event.nodeNum)
      return
    case 'metadata':
      noteSource(plan, source, receivedAt, { firmwareVersion: event.metadata.firmwareVersion })
      return
    case 'channel': {
      const channel = toKnownChannel(source, event.channel)
      plan.table.tell(channel)
      plan.channels.push(channel)
      return
    }
    case 'node-info':
      const channel = plan.table.numberOf(source.name, event.node.channel)
      addNode(
        plan,
        { ...event.node, channel },
        {
          source,
          seenAt: receivedAt,
          isOwn: event.node.nodeNum === plan.localNodes.get(source.name),
          rows: isLate ? plan.late : plan.remembered,
        },
      )
      return
    case 'packet': {
      const { replayed: isReplayed } = event
      const packet = underNumber(plan.table, source.name, event.packet)
      const isOwn = packet.from === plan.localNodes.get(source.name)
      const gateway = event.gateway ?? null
      const heardAt = whenHeard(packet, receivedAt)
      addPacket(plan, { source, packet, receivedAt, heardAt, isReplayed, isOwn, isLate, gateway }, sightings)
      return
    }
    default:
  }
}

/** What waited for us in a radio was heard before it arrived; clocks that are nearly right are no reason to say so. */
function whenHeard({ rxTime }: Packet, receivedAt: number): number {
  return rxTime !== null && receivedAt - rxTime > CLOCK_SLACK_MS ? rxTime : receivedAt
}

/** The hash of what nobody here can read says nothing, and direct messages of two nodes are in no channel. */
function underNumber(table: ChannelTable, source: string, packet: Packet): Packet {
  if (packet.port === null || packet.pkiEncrypted) return packet
  const channel = table.numberOf(source, packet.channel)
  return channel === packet.channel ? packet : { ...packet, channel }
}

/** 0 is no sender, and the number of everybody is nobody's. */
function isNode(nodeNum: number): boolean {
  return nodeNum !== 0 && nodeNum !== BROADCAST
}

/** A connection of ours, not somebody's word. */
function isRadio({ kind }: Source): boolean {
  return kind === 'tcp' || kind === 'demo'
}

function noteSource(plan: Plan, source: Source, createdAt: number, told: Partial<SourceRow>): void {
  plan.sources.set(source.name, { ...source, createdAt, ...plan.sources.get(source.name), ...told })
}

function addNode(
  plan: Plan,
  node: NodeFacts,
  { source, seenAt, isOwn, rows }: { source: Source; seenAt: number; isOwn: boolean; rows: NodeRow[] },
): void {
  const { nodeNum, user, fix, metrics, viaMqtt, channel, isFavorite, isIgnored } = node
  if (!isNode(nodeNum)) return
  // A radio's clock may run ahead of ours by some minutes; nothing is heard after it arrived.
  const lastHeard = node.lastHeard === null ? null : Math.min(node.lastHeard, seenAt)
  const arrival = isOwn ? {} : { hopsAway: node.hopsAway, snr: viaMqtt ? null : node.snr }
  rows.push({
    nodeNum,
    source: source.name,
    seenAt,
    lastHeard,
    lastHeardDay: lastHeard === null ? null : dayOf(lastHeard),
    heardByRadio: isRadio(source) && !viaMqtt,
    viaMqtt,
    channel,
    isFavorite,
    isIgnored,
    ...arrival,
    ...(user === null ? {} : userFields(user)),
    ...(fix === null ? {} : placeFields(fix, fix.time)),
    // When they were measured is not told: not after the node was last heard.
    ...deviceMetricsFields(metrics, lastHeard),
  })
  if (fix !== null && fix.time !== null) addPosition(plan, nodeNum, fix, fix.time)
}

function addPosition(plan: Plan, nodeNum: number, fix: NonNullable<NodeFacts['fix']>, t: number): void {
  const { latitude, longitude, altitude, precisionBits } = fix
  plan.positions.push({ nodeNum, t, latitude, longitude, altitude, precisionBits })
}

function addPacket(plan: Plan, arrival: Arrival, sightings: Sightings): void {
  const { source, packet, receivedAt, heardAt, isReplayed, isOwn, isLate } = arrival
  const { from: nodeNum, id, payload } = packet
  // The air of simulated radios, as packets around packets.
  if (!isNode(nodeNum) || packet.portName === 'SIMULATOR_APP') return
  // Our own radio does not hear itself: somebody else sends in its name.
  const isSpoofed = isOwn && packet.rssi !== null && !packet.viaMqtt
  const isReadable = payload.kind !== 'encrypted' && payload.kind !== 'malformed'
  const sighting = sightings.see({ from: nodeNum, id, at: receivedAt, hopsAway: packet.hopsAway, isReadable })
  if (isSpoofed) plan.heard.push({ nodeNum, source: source.name, seenAt: receivedAt, spoofSuspected: true })
  addReception(plan.traffic, arrival)
  if (sighting !== 'first') plan.duplicates.push(packet)
  if (sighting === 'copy') return
  if (sighting === 'first') addTraffic(plan.traffic, arrival)
  addMessage(plan, arrival, isOwn && !isSpoofed ? 'out' : 'in')
  if (isSpoofed) return
  const content = sighting === 'first' ? addContent(plan, arrival) : {}
  const isOld = isReplayed || heardAt < receivedAt
  const rows = isLate ? plan.late : isOld ? plan.remembered : plan.heard
  rows.push({ nodeNum, source: source.name, seenAt: receivedAt, ...describeArrival(arrival), ...content })
  if (sighting === 'first' && !isReplayed) plan.news.push({ source, packet, receivedAt })
}

function describeArrival({ source, packet, receivedAt, isReplayed, isOwn, gateway }: Arrival): Partial<NodeRow> {
  const { rxTime, hopsAway, viaMqtt, snr, rssi } = packet
  const lastHeard = rxTime === null ? (isReplayed ? null : receivedAt) : Math.min(rxTime, receivedAt)
  // A publisher writes into a packet what it likes, and a broker may keep it: it proves the day of its receipt at most.
  const remembered = lastHeard === null || gateway !== null ? null : dayOf(lastHeard)
  const evidence = {
    lastHeardDay: isReplayed ? remembered : dayOf(receivedAt),
    heardByRadio: isRadio(source) && !viaMqtt,
  }
  if (isOwn) return { lastHeard, ...evidence }
  // Of a relayed packet the signal is the relay's, and the channel of what nobody here can read is a mere hash.
  const signal = hopsAway === 0 && !viaMqtt ? { snr, rssi } : {}
  const channel = packet.port === null || packet.pkiEncrypted ? null : packet.channel
  return { lastHeard, hopsAway, viaMqtt, channel, ...signal, ...evidence }
}

/** What the packet says of its node; its history goes into the plan. */
function addContent(plan: Plan, { source, packet, receivedAt, isReplayed }: Arrival): Partial<NodeRow> {
  const { from: nodeNum, payload, rxTime } = packet
  // Something remembered without a time has no place in a history.
  const receiptTime = rxTime ?? (isReplayed ? null : receivedAt)
  switch (payload.kind) {
    case 'nodeinfo':
      return userFields(payload.user)
    case 'position': {
      if (payload.fix === null) return {}
      const t = payload.fix.time ?? receiptTime
      if (t !== null) addPosition(plan, nodeNum, payload.fix, t)
      return placeFields(payload.fix, t)
    }
    case 'mapreport':
      return addMapReport(plan, nodeNum, payload.report, { source, seenAt: receivedAt })
    case 'telemetry': {
      const t = payload.time ?? receiptTime
      if (t !== null) plan.telemetry.push({ nodeNum, t, values: Object.fromEntries(payload.metrics) })
      return deviceMetricsFields(payload.metrics, t)
    }
    default:
      return {}
  }
}

/** What a gateway tells the maps. Its place is only roughly known: it never replaces one that the node told itself. */
function addMapReport(
  plan: Plan,
  nodeNum: number,
  report: MapReport,
  { source, seenAt }: { readonly source: Source; readonly seenAt: number },
): Partial<NodeRow> {
  const { longName, shortName, latitude, longitude, altitude, precisionBits } = report
  if (latitude !== null && longitude !== null) {
    const place = { latitude, longitude, altitude, precisionBits, positionTime: null }
    plan.remembered.push({ nodeNum, source: source.name, seenAt, ...place })
  }
  const hwModel = report.hwModel === null ? null : enumNumber(HardwareModelSchema, report.hwModel)
  return { longName, shortName, hwModel }
}

function addMessage(plan: Plan, { source, packet, receivedAt }: Arrival, direction: 'in' | 'out'): void {
  const said = readText(packet)
  if (said === null) return
  const { from: fromNodeNum, channel, replyId, viaMqtt, pkiEncrypted } = packet
  plan.messages.push({
    source: source.name,
    // Without an id it can't be known again, nor taken for another one.
    packetId: said.packetId === 0 ? -receivedAt : said.packetId,
    fromNodeNum,
    toNodeNum: said.to,
    channel,
    text: said.text,
    replyId,
    emoji: packet.isEmoji,
    // When a stored message was first said is not known.
    timestamp: said.isReplay ? receivedAt : Math.min(packet.rxTime ?? receivedAt, receivedAt),
    rxSnr: packet.snr,
    rxRssi: packet.rssi,
    hopsAway: direction === 'out' ? null : packet.hopsAway,
    viaMqtt,
    pkiEncrypted,
    direction,
  })
}

type Said = { readonly packetId: number; readonly to: number; readonly text: string; readonly isReplay: boolean }

/** The words of a packet; a store & forward server says again what another node said before. */
export function readText({ id, to, payload }: Packet): Said | null {
  if (payload.kind === 'text') return { packetId: id, to, text: payload.text, isReplay: false }
  const replay = payload.kind === 'storeforward' ? payload.storeForward.replay : null
  if (replay === null) return null
  const { originalId, isDirect, text } = replay
  return { packetId: originalId ?? id, to: isDirect ? to : BROADCAST, text, isReplay: true }
}
