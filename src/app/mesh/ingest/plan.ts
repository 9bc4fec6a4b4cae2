import type { Metadata, NodeFacts } from '../../../meshtastic/radio-fact.ts'
import type { NodeRow } from './rows/node-row.ts'
import type { KnownChannel } from '../radios/known-channel.ts'
import type { Heard } from '../heard/heard.ts'
import type { News } from '../heard/heard.ts'
import { HardwareModelSchema } from '../../../meshtastic/gen/hardware_pb.ts'
import type { MapReport } from '../../../meshtastic/payload/map-report.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import type { Packet } from '../../../meshtastic/packet.ts'
import { type ChannelTable, toKnownChannel } from '../radios/channel-table.ts'
import { dayOf } from '../nodes/deletion/evidence.ts'
import { enumNumber } from './rows/enum-number.ts'
import type { PositionRow } from './rows/history.ts'
import type { Measurements } from './rows/runs.ts'
import { type Judgement, TAKEN } from './trust/judge.ts'
import type { Filing, MessageRow } from './rows/messages.ts'
import type { NodeUser } from '../../../meshtastic/payload/user.ts'
import type { LiftedSuspicion, SuspicionRow } from '../nodes/identity/suspicions.ts'
import type { RefusedRow } from '../nodes/identity/refused-identities.ts'
import { type Hearing, hearingFields } from './rows/hearings.ts'
import { deviceMetricsFields, hasDeviceMetrics, placeFields, userFields } from './rows/nodes.ts'
import type { Source, SourceRow } from '../radios/source-table.ts'
import type { Traffic } from './rows/traffic.ts'
import type { Sightings } from './duplicates/packet-window.ts'
import { channelOnAir, readText } from '../heard/contents.ts'
import {
  addProven,
  addReception,
  addReports,
  addTraffic,
  emptyTraffic,
  isReception,
  type TrafficArrival,
} from './plan-traffic.ts'
import { FIRST_DIRECT, UNKNOWN_CHANNEL, WITHHELD } from '../../../shared/mesh/channels.ts'
import { isOwnKind } from '../../../shared/mesh/link-kinds.ts'

/** If the clocks of two radios differ by more than this, the order of arrival is not the order of reception. */
const CLOCK_SLACK_MS = 60_000

/** The maximum length of a claim, which contains names that others made up. */
const MAX_CLAIM = 400

/** The changes that a batch of events makes. */
export type Plan = {
  readonly sources: Map<string, SourceRow>
  /** The node numbers of the sources, after this batch. */
  readonly localNodes: Map<string, number>
  /** The state after this batch. */
  readonly table: ChannelTable
  readonly channels: KnownChannel[]
  /** Nodes in a radio's memory, or heard while their packet waited in a radio. */
  readonly remembered: NodeRow[]
  /** Nodes that were heard. */
  readonly heard: NodeRow[]
  /** Nodes heard or remembered at an unknown earlier time. */
  readonly late: NodeRow[]
  readonly hearings: Hearing[]
  readonly positions: PositionRow[]
  readonly telemetry: Measurements[]
  readonly messages: MessageRow[]
  readonly filings: Filing[]
  readonly traffic: Traffic
  readonly news: News[]
  /** Messages that are shown although somebody else may have sent them. Nothing else acts upon them. */
  readonly doubted: News[]
  /** Packets that were known already. */
  readonly duplicates: Packet[]
  /** Suspicions lifted by our radios, which reported the suspicious data themselves. */
  readonly lifted: LiftedSuspicion[]
  readonly suspicions: SuspicionRow[]
  readonly refused: RefusedRow[]
  /** Nodes that are no longer the radios of collectors, each with the radio of ours that heard it; null: earlier. */
  readonly disputed: Map<number, string | null>
}

/** The event of a packet, with its context. `isOwn`: its sender is the radio that it came from. */
type Arrival = TrafficArrival & {
  readonly source: Source
  readonly isOwn: boolean
  readonly isLate: boolean
  readonly judgement: Judgement
}

/**
 * Plans the changes that events make, each according to `judgements`. `localNodes` comes from earlier batches;
 * `sources` are those in the database. Channels in the events are added to `table`.
 */
export function planBatch(
  batch: readonly Heard[],
  judgements: readonly Judgement[],
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
    hearings: [],
    positions: [],
    telemetry: [],
    messages: [],
    filings: [],
    traffic: emptyTraffic(),
    news: [],
    doubted: [],
    duplicates: [],
    lifted: [],
    suspicions: [],
    refused: [],
    disputed: new Map(),
  }
  for (const [index, heard] of batch.entries()) noteDisputed(plan, heard, judgements[index] ?? TAKEN)
  for (const [index, heard] of batch.entries()) {
    const { source, event } = heard
    if (!known.sources.has(source.name)) noteSource(plan, source, event.receivedAt, {})
    addEvent(plan, heard, judgements[index] ?? TAKEN, sightings)
  }
  return plan
}

/** Before anything else of the batch: the collector's own packets are those of a stranger. */
function noteDisputed(plan: Plan, { source, event }: Heard, { endsClaim, isHeard }: Judgement): void {
  if (!endsClaim || (event.type !== 'packet' && event.type !== 'node-info')) return
  const nodeNum = event.type === 'packet' ? event.packet.from : event.node.nodeNum
  plan.disputed.set(nodeNum, isHeard ? source.name : (plan.disputed.get(nodeNum) ?? null))
  for (const [name, local] of plan.localNodes) if (local === nodeNum) plan.localNodes.delete(name)
}

function addEvent(
  plan: Plan,
  { source, event, isLate = false }: Heard,
  judgement: Judgement,
  sightings: Sightings,
): void {
  const { receivedAt } = event
  switch (event.type) {
    case 'my-info':
      if (!isNode(event.nodeNum)) return
      noteSource(plan, source, receivedAt, { localNodeNum: event.nodeNum })
      if (plan.disputed.has(event.nodeNum) && !isOwnKind(source.kind)) return
      plan.localNodes.set(source.name, event.nodeNum)
      return
    case 'metadata':
      addMetadata(plan, source, event.metadata, receivedAt)
      return
    case 'channel': {
      const channel = toKnownChannel(source, event.channel, receivedAt)
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
          judgement,
        },
      )
      return
    case 'packet': {
      const { replayed: isReplayed } = event
      const packet = underNumber(plan.table, source.name, event.packet)
      const isOwn = packet.from === plan.localNodes.get(source.name)
      const gateway = event.gateway ?? null
      const heardAt = whenHeard(packet, receivedAt)
      const arrival = { source, packet, receivedAt, heardAt, isReplayed, isOwn, isLate, gateway, judgement }
      addPacket(plan, arrival, sightings)
      return
    }
    default:
  }
}

/** A packet that waited in a radio was heard before it arrived; small clock differences do not count as waiting. */
function whenHeard({ rxTime }: Packet, receivedAt: number): number {
  return rxTime !== null && receivedAt - rxTime > CLOCK_SLACK_MS ? rxTime : receivedAt
}

/**
 * The hash on a packet that nobody here can decrypt does not identify a channel, and direct messages between two nodes
 * are in no channel.
 */
function underNumber(table: ChannelTable, source: string, packet: Packet): Packet {
  if (packet.port === null || packet.pkiEncrypted) return packet
  const channel = table.numberOf(source, packet.channel)
  return channel === packet.channel ? packet : { ...packet, channel }
}

/** Neither 0 nor the broadcast number can be a sender. */
export function isNode(nodeNum: number): boolean {
  return nodeNum !== 0 && nodeNum !== BROADCAST
}

function noteSource(plan: Plan, source: Source, createdAt: number, reported: Partial<SourceRow>): void {
  plan.sources.set(source.name, { ...source, createdAt, ...plan.sources.get(source.name), ...reported })
}

/** What a connected radio reports about itself. */
function addMetadata(plan: Plan, source: Source, { firmwareVersion }: Metadata, seenAt: number): void {
  noteSource(plan, source, seenAt, { firmwareVersion })
  const nodeNum = plan.localNodes.get(source.name)
  if (nodeNum === undefined || firmwareVersion === null || !isOwnKind(source.kind)) return
  plan.remembered.push({ nodeNum, source: source.name, seenAt, firmwareVersion })
}

function addNode(
  plan: Plan,
  node: NodeFacts,
  {
    source,
    seenAt,
    isOwn,
    rows,
    judgement,
  }: { source: Source; seenAt: number; isOwn: boolean; rows: NodeRow[]; judgement: Judgement },
): void {
  const { nodeNum, viaMqtt, channel, isFavorite, isIgnored, isMuted } = node
  // A radio's memory of another of our radios may be older than that radio's own report.
  if (!isNode(nodeNum) || judgement.verdict !== 'taken') return
  const user = judgement.keepsUser ? null : node.user
  const fix = judgement.keepsPosition ? null : node.fix
  const metrics = judgement.keepsMetrics ? [] : node.metrics
  // A radio's clock may run some minutes ahead of ours, but nothing is heard after it arrived.
  const lastHeard = node.lastHeard === null ? null : Math.min(node.lastHeard, seenAt)
  // A radio's memory does not include the channels.
  const ofRadio = isOwn ? null : UNKNOWN_CHANNEL
  const arrival = isOwn ? {} : { hopsAway: node.hopsAway, snr: viaMqtt ? null : node.snr }
  rows.push({
    nodeNum,
    source: source.name,
    seenAt,
    lastHeard,
    lastHeardDay: lastHeard === null ? null : dayOf(lastHeard),
    heardByRadio: isOwnKind(source.kind) && !viaMqtt,
    ...(judgement.keepsArrival ? {} : { viaMqtt, channel, ...arrival }),
    // Only favourites of a connected radio count. Otherwise a delivery could make any node a favourite.
    ...(isOwnKind(source.kind) ? { isFavorite, isIgnored, isMuted } : {}),
    ...(user === null ? {} : userFields(user)),
    ...(fix === null ? {} : placeFields(fix, { time: fix.time, channel: ofRadio })),
    // The time of measurement is unknown, but it is not after the node was last heard.
    ...deviceMetricsFields(metrics, { time: lastHeard, channel: ofRadio }),
    ...(judgement.isHeard ? { lastHeardByRadio: lastHeard } : { lastHeardByBroker: lastHeard }),
    ...foundation(judgement, lastHeard ?? seenAt, {
      user,
      isPlaced: fix !== null,
      hasMetrics: hasDeviceMetrics(metrics),
    }),
  })
  noteRefused(plan, judgement, { nodeNum, source: source.name, gateway: 0, at: seenAt })
  noteLifted(plan, nodeNum, judgement)
  if (fix !== null && fix.time !== null) addPosition(plan, nodeNum, fix, { t: fix.time, channel: ofRadio })
}

function addPosition(
  plan: Plan,
  nodeNum: number,
  fix: NonNullable<NodeFacts['fix']>,
  { t, channel }: { readonly t: number; readonly channel: number | null },
): void {
  const { latitude, longitude, altitude, precisionBits } = fix
  plan.positions.push({ nodeNum, t, latitude, longitude, altitude, precisionBits, channel })
}

function addPacket(plan: Plan, arrival: Arrival, sightings: Sightings): void {
  const { source, packet, receivedAt, heardAt, isReplayed, isLate, isOwn, judgement } = arrival
  const { from: nodeNum, id, payload } = packet
  // Simulated radios wrap the packets of their mesh in other packets.
  if (!isNode(nodeNum) || packet.portName === 'SIMULATOR_APP') return
  const { verdict, trust, suspicion } = judgement
  const receiver = arrival.gateway ?? plan.localNodes.get(source.name) ?? null
  noteRefused(plan, judgement, { nodeNum, source: source.name, gateway: arrival.gateway ?? 0, at: receivedAt })
  if (suspicion !== null) noteSuspicion(plan, arrival, suspicion)
  if (verdict === 'spoofed') {
    addTraffic(plan.traffic, arrival, 'spoofed')
    // The message is shown with its doubt, because the node may really have a new key. Nothing else acts upon it.
    if (judgement.keyDoubt !== null) {
      addMessage(plan, arrival)
      addReception(plan.traffic, arrival)
      if (!isReplayed) {
        plan.doubted.push({ source, packet, receivedAt, receiver, isSigned: false, isOwn: false, isDoubted: true })
      }
    }
    return
  }
  const isReadable = payload.kind !== 'encrypted' && payload.kind !== 'malformed'
  const { isHeard, isStale } = judgement
  // The sender's key decrypted it, which is as certain as a signature.
  const isSealed = packet.pkiEncrypted && isReadable && judgement.keyDoubt === null
  const trustLevel = isSealed && trust === 'plain' ? 'signed' : trust
  const seen = { from: nodeNum, id, at: receivedAt, hopsAway: packet.hopsAway, isReadable, trustLevel, isHeard }
  const sighting = sightings.see(seen)
  if (sighting === 'repeated') return void plan.duplicates.push(packet)
  addReception(plan.traffic, arrival)
  addFiling(plan, arrival)
  if (sighting !== 'first') plan.duplicates.push(packet)
  noteLifted(plan, nodeNum, judgement)
  const isNew = sighting === 'first' || sighting === 'surer'
  // The first copy may have had no signature.
  if (!isNew && judgement.signature !== null) addProven(plan.traffic, arrival)
  if (sighting === 'copy') return
  if (isNew) addTraffic(plan.traffic, arrival, trust)
  else if (sighting === 'heard') addReports(plan.traffic, arrival)
  // Other nodes' reports about a stored text of ours change nothing.
  if (verdict === 'taken' || !judgement.isOwn) addMessage(plan, arrival)
  const proven = foundation(judgement, receivedAt, { user: null })
  const isTaken = verdict === 'taken' && (isNew || sighting === 'heard')
  const content = isTaken ? addContent(plan, arrival, isNew) : isNew ? proven : {}
  if (isStale) return
  const isElsewhere = judgement.isOwn && trust !== 'own' && (packet.viaMqtt || !isOwnKind(source.kind))
  const isOld = isReplayed || heardAt < receivedAt
  const isUntimed = isReplayed && packet.rxTime === null
  const rows = isLate || isUntimed ? plan.late : isOld ? plan.remembered : plan.heard
  const from = { nodeNum, source: source.name, seenAt: receivedAt }
  const hearing = !isElsewhere && verdict === 'taken' ? publicHearing(arrival) : null
  if (hearing !== null) plan.hearings.push(hearing)
  rows.push({ ...from, ...(isElsewhere ? {} : describeArrival(arrival)), ...hearingFields(hearing), ...content })
  if (sighting === 'first' && !isReplayed && !(isElsewhere && verdict === 'set-aside')) {
    plan.news.push({ source, packet, receivedAt, receiver, isSigned: trust === 'signed', isOwn })
  }
}

function noteSuspicion(
  plan: Plan,
  { source, packet: { from: nodeNum }, receivedAt, gateway, judgement }: Arrival,
  { claim, reason }: NonNullable<Judgement['suspicion']>,
): void {
  const spoofClaim = claim.slice(0, MAX_CLAIM)
  const said = { spoofSuspected: true, spoofClaim, ...refusedFields(judgement) }
  plan.heard.push({ nodeNum, source: source.name, seenAt: receivedAt, ...said })
  const at = { source: source.name, gateway: gateway ?? 0, t: receivedAt }
  plan.suspicions.push({ nodeNum, ...at, claim: spoofClaim, reason })
}

function noteLifted(plan: Plan, nodeNum: number, { lifts }: Judgement): void {
  if (lifts !== null) plan.lifted.push({ nodeNum, claim: lifts })
}

/** Announced values that are not accepted. */
function refusedFields({ refusedKey, refusedNames, isHeard }: Judgement): Partial<NodeRow> {
  if (refusedKey === null && refusedNames === null) return {}
  const { longName = null, shortName = null } = refusedNames ?? {}
  const refused = { refusedPublicKey: refusedKey, refusedLongName: longName, refusedShortName: shortName }
  return isHeard ? { ...refused, refusedHeard: true } : refused
}

/** Each source's latest is kept, whoever is louder. */
function noteRefused(
  plan: Plan,
  { refusedKey: publicKey, refusedNames, isHeard }: Judgement,
  { nodeNum, source, gateway, at }: Pick<RefusedRow, 'nodeNum' | 'source' | 'gateway'> & { readonly at: number },
): void {
  if (publicKey === null && refusedNames === null) return
  const { longName = null, shortName = null } = refusedNames ?? {}
  plan.refused.push({ nodeNum, source, gateway, heard: isHeard, publicKey, longName, shortName, lastAt: at })
}

/** Which fields of a row were signed or heard by our own radio, and which values are refused. */
function foundation(
  judgement: Judgement,
  signedAt: number,
  {
    user,
    isPlaced = false,
    hasMetrics = false,
    isStatus = false,
  }: {
    readonly user: Pick<NodeUser, 'publicKey' | 'longName' | 'shortName'> | null
    readonly isPlaced?: boolean
    readonly hasMetrics?: boolean
    readonly isStatus?: boolean
  },
): Partial<NodeRow> {
  const { trust, provenKey, isHeard } = judgement
  const isSigned = trust === 'signed'
  const isNamed = (user?.longName ?? user?.shortName ?? null) !== null
  const isKeySaid = (user?.publicKey ?? null) !== null || provenKey !== null
  return {
    ...refusedFields(judgement),
    ...(provenKey === null ? {} : { publicKey: provenKey, keySigned: true, signedAt }),
    ...(isHeard && isKeySaid ? { keyHeard: true } : {}),
    ...(!isNamed ? {} : { ...(isSigned ? { nameSigned: true } : {}), ...(isHeard ? { nameHeard: true } : {}) }),
    ...(!isPlaced
      ? {}
      : { ...(isSigned ? { positionSigned: true } : {}), ...(isHeard ? { positionHeard: true } : {}) }),
    ...(hasMetrics && isHeard ? { metricsHeard: true } : {}),
    ...(isStatus ? { statusSigned: isSigned, statusHeard: isHeard } : {}),
  }
}

/** Packets that were sent to one node, or that may not be passed on, tell the public nothing about their sender. */
function publicHearing({ packet, receivedAt, isReplayed, isOwn }: Arrival): Hearing | null {
  const channel = channelOnAir(packet)
  const heardAt = whenLastHeard(packet, { receivedAt, isReplayed })
  if (isOwn || heardAt === null || channel < 0 || channel >= WITHHELD) return null
  const { from: nodeNum, hopsAway, viaMqtt } = packet
  return { nodeNum, channel, heardAt, hopsAway, viaMqtt }
}

/** By the radio's clock, but not after receipt. Null: the radio remembers the packet but not its time. */
function whenLastHeard(
  { rxTime }: Packet,
  { receivedAt, isReplayed }: Pick<Arrival, 'receivedAt' | 'isReplayed'>,
): number | null {
  return rxTime === null ? (isReplayed ? null : receivedAt) : Math.min(rxTime, receivedAt)
}

function describeArrival({
  source,
  packet,
  receivedAt,
  isReplayed,
  isOwn,
  gateway,
  judgement,
}: Arrival): Partial<NodeRow> {
  const { hopsAway, viaMqtt, snr, rssi } = packet
  const lastHeard = whenLastHeard(packet, { receivedAt, isReplayed })
  // A publisher can write any time into a packet, and a broker may retain it, so it is evidence for at most the day of
  // receipt.
  const remembered = lastHeard === null || gateway !== null ? null : dayOf(lastHeard)
  const evidence = {
    lastHeardDay: isReplayed ? remembered : dayOf(receivedAt),
    heardByRadio: isOwnKind(source.kind) && !viaMqtt,
    ...(judgement.isHeard ? { lastHeardByRadio: lastHeard } : { lastHeardByBroker: lastHeard }),
  }
  if (isOwn) return { lastHeard, ...evidence }
  if (judgement.keepsArrival) return { lastHeard, ...evidence }
  // The signal of a relayed packet is the relay's, and the channel of an unreadable packet is only a hash.
  const signal = hopsAway === 0 && !viaMqtt ? { snr, rssi } : {}
  const channel = packet.port === null || packet.pkiEncrypted ? null : packet.channel
  return { lastHeard, hopsAway, viaMqtt, channel, ...signal, ...evidence }
}

/** The packet's data about its node; its history goes into the plan. */
function addContent(plan: Plan, arrival: Arrival, isNew: boolean): Partial<NodeRow> {
  const { judgement, receivedAt } = arrival
  const { payload } = arrival.packet
  const hasMetrics = payload.kind === 'telemetry' && !judgement.keepsMetrics && hasDeviceMetrics(payload.metrics)
  const isKept =
    (payload.kind === 'nodeinfo' && judgement.keepsUser) ||
    (payload.kind === 'position' && judgement.keepsPosition) ||
    (payload.kind === 'status' && judgement.keepsStatus)
  return {
    ...(isKept ? {} : readContent(plan, arrival, isNew)),
    ...foundation(judgement, receivedAt, {
      user: payload.kind === 'nodeinfo' && !isKept ? payload.user : null,
      isPlaced: payload.kind === 'position' && payload.fix !== null && !isKept,
      hasMetrics,
      isStatus: payload.kind === 'status' && payload.status !== null && !isKept,
    }),
  }
}

/** A radio's report about itself has no channel, unless it answers another node. */
function channelOfContent({ packet, isOwn }: Arrival): number | null {
  const channel = channelOnAir(packet)
  return isOwn && (channel < FIRST_DIRECT || packet.to === packet.from) ? null : channel
}

/**
 * Nothing was measured after a gateway published it, whatever its time says. Otherwise the next packet would look
 * older.
 */
function noLater(time: number | null, { receivedAt, gateway }: Arrival): number | null {
  return time === null || gateway === null ? time : Math.min(time, receivedAt)
}

function readContent(plan: Plan, arrival: Arrival, isNew: boolean): Partial<NodeRow> {
  const { source, packet, receivedAt, isReplayed, judgement } = arrival
  const channel = channelOfContent(arrival)
  const { from: nodeNum, payload, rxTime } = packet
  // Remembered data without a time cannot be placed in a history.
  const receiptTime = rxTime ?? (isReplayed ? null : receivedAt)
  switch (payload.kind) {
    case 'nodeinfo':
      return userFields(payload.user)
    case 'position': {
      if (payload.fix === null) return {}
      const t = payload.fix.time ?? receiptTime
      if (t !== null) addPosition(plan, nodeNum, payload.fix, { t, channel })
      return placeFields(payload.fix, { time: noLater(t, arrival), channel })
    }
    case 'status': {
      if (payload.status === null) return {}
      const statusTime = receiptTime === null ? null : Math.min(receiptTime, receivedAt)
      return { status: payload.status, statusTime, statusChannel: channel }
    }
    case 'mapreport':
      return addMapReport(plan, nodeNum, payload.report, { source, seenAt: receivedAt, channel, judgement })
    case 'telemetry': {
      const t = payload.time ?? receiptTime
      // Data from an earlier copy by a broker is already in the history, under another time if its sender has no clock.
      if (t !== null && (isNew || payload.time !== null))
        plan.telemetry.push({ nodeNum, t, values: Object.fromEntries(payload.metrics), channel })
      const reported = payload.time === null ? {} : { telemetryTime: noLater(payload.time, arrival) ?? payload.time }
      if (judgement.keepsMetrics) return reported
      return { ...deviceMetricsFields(payload.metrics, { time: noLater(t, arrival), channel }), ...reported }
    }
    case 'paxcounter': {
      const { wifi, ble, uptimeSeconds } = payload
      const values = { 'paxcounter.wifi': wifi, 'paxcounter.ble': ble, 'paxcounter.uptimeSeconds': uptimeSeconds }
      if (receiptTime !== null && isNew) plan.telemetry.push({ nodeNum, t: receiptTime, values, channel })
      return {}
    }
    default:
      return {}
  }
}

/** A gateway's map report. Its position is only approximate and never replaces one that the node sent itself. */
function addMapReport(
  plan: Plan,
  nodeNum: number,
  report: MapReport,
  {
    source,
    seenAt,
    channel,
    judgement: { keepsUser, keepsPosition },
  }: {
    readonly source: Source
    readonly seenAt: number
    readonly channel: number | null
    readonly judgement: Judgement
  },
): Partial<NodeRow> {
  const { longName, shortName, firmwareVersion, latitude, longitude, altitude, precisionBits } = report
  const { isNameAltered: nameAltered = false } = report
  if (latitude !== null && longitude !== null && !keepsPosition) {
    const place = { latitude, longitude, altitude, precisionBits, positionTime: null, positionChannel: channel }
    plan.remembered.push({ nodeNum, source: source.name, seenAt, ...place })
  }
  const hwModel = report.hwModel === null ? null : enumNumber(HardwareModelSchema, report.hwModel)
  return keepsUser ? {} : { longName, shortName, nameAltered, hwModel, firmwareVersion }
}

function addMessage(plan: Plan, { source, packet, receivedAt, gateway, judgement }: Arrival): void {
  const direction = judgement.isOwn ? 'out' : 'in'
  const said = readText(packet)
  if (said === null) return
  const { from: fromNodeNum, channel, replyId, viaMqtt, pkiEncrypted, isWithheld: withheld } = packet
  plan.messages.push({
    source: source.name,
    // Without an ID, copies cannot be recognised; the negative value cannot match another packet's ID.
    packetId: said.packetId === 0 ? -receivedAt : said.packetId,
    fromNodeNum,
    toNodeNum: said.to,
    channel,
    text: said.text,
    replyId,
    emoji: packet.isEmoji,
    // It is unknown when a stored message was first sent.
    timestamp: said.isReplay ? receivedAt : Math.min(packet.rxTime ?? receivedAt, receivedAt),
    rxSnr: packet.snr,
    rxRssi: packet.rssi,
    hopsAway: direction === 'out' ? null : packet.hopsAway,
    viaMqtt,
    pkiEncrypted,
    signed: judgement.trust === 'signed',
    withheld,
    keyDoubt: judgement.keyDoubt,
    heard: judgement.isHeard,
    direction,
    gateway: isReception(packet) ? (gateway ?? 0) : null,
    receivedAt,
    receivedHops: packet.hopsAway,
  })
}

/** Our own radios know the channel of a text better than a broker that delivered it first. */
function addFiling(plan: Plan, { source, packet, receivedAt, isReplayed, judgement }: Arrival): void {
  const { from, id, channel, payload, pkiEncrypted } = packet
  if (!isOwnKind(source.kind) || judgement.isOwn || isReplayed) return
  if (payload.kind !== 'text' || id === 0 || pkiEncrypted) return
  plan.filings.push({ fromNodeNum: from, packetId: id, channel, heardAt: receivedAt })
}
