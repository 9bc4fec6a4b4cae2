import { base64Encode } from '@bufbuild/protobuf/wire'
import { restOfWaypoint } from '../../../meshtastic/link/waypoint.ts'
import { PortNum } from '../../../meshtastic/gen/ports_pb.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import type { Packet } from '../../../meshtastic/packet.ts'
import type { Payload, Waypoint } from '../../../meshtastic/payload/payload.ts'
import type { Judgement } from './trust/judge.ts'
import type { PacketRow } from './rows/log.ts'
import type { NeighborRow, Traffic, WaypointRow } from './rows/traffic.ts'
import { UNREADABLE } from '../../../shared/mesh/packets.ts'
import { channelOnAir } from '../heard/contents.ts'

/** A packet as it arrived. `gateway`: the node that heard it, if that was not the radio of the source. */
export type TrafficArrival = {
  readonly source: { readonly name: string }
  readonly packet: Packet
  readonly receivedAt: number
  /** Before `receivedAt` if it was delayed. */
  readonly heardAt: number
  readonly isReplayed: boolean
  readonly gateway: number | null
  readonly judgement: Pick<
    Judgement,
    'verdict' | 'trust' | 'suspicion' | 'isOwn' | 'isHeard' | 'keyDoubt' | 'signature' | 'hasSigned'
  >
}

export function emptyTraffic(): Traffic {
  return { receptions: [], routes: [], neighbors: new Map(), waypoints: [], packets: [], proven: [] }
}

/** Without an ID, nobody knows of what message a copy is one. */
export function isReception({ id, payload }: Packet): boolean {
  return payload.kind === 'text' && id !== 0
}

/** Records how a text arrived: each copy counts. */
export function addReception(traffic: Traffic, { source, packet, receivedAt, gateway }: TrafficArrival): void {
  const { from: fromNodeNum, to, id: packetId, payload, snr, rssi, hopsAway, replyId, isEmoji: emoji } = packet
  if (payload.kind !== 'text' || !isReception(packet)) return
  const signal = { rxSnr: snr, rxRssi: rssi, hopsAway }
  const said = { text: payload.text, to, replyId, emoji }
  const row = { source: source.name, fromNodeNum, packetId, gateway: gateway ?? 0, t: receivedAt, ...signal, ...said }
  traffic.receptions.push(row)
}

/** Plans a packet that is not a copy, and what it reports about the mesh. */
export function addTraffic(traffic: Traffic, arrival: TrafficArrival, trustLevel: PacketRow['trustLevel']): void {
  const { source, packet, receivedAt, isReplayed, gateway } = arrival
  const { from, to, id, payload } = packet
  traffic.packets.push({
    source: source.name,
    t: receivedAt,
    packetId: id,
    fromNodeNum: from,
    toNodeNum: to,
    gateway,
    channel: packet.channel,
    port: packet.port,
    rxSnr: packet.snr,
    rxRssi: packet.rssi,
    hopsAway: packet.hopsAway,
    hopLimit: packet.hopLimit,
    viaMqtt: packet.viaMqtt,
    pkiEncrypted: packet.pkiEncrypted,
    replayed: isReplayed,
    trustLevel,
    payload: describePayload(packet),
    isReadable: !UNREADABLE.some((kind) => kind === payload.kind),
  })
  if (trustLevel !== 'spoofed') addProven(traffic, arrival)
  addReports(traffic, arrival)
}

/**
 * Remembers a packet that somebody could send again with a proof of its sender. Only broadcasts are signed, and a gateway
 * without encryption publishes those of a signer without the signature.
 */
export function addProven(traffic: Traffic, { packet, receivedAt, judgement }: TrafficArrival): void {
  const { from: fromNodeNum, to, id: packetId, port, pkiEncrypted } = packet
  const { trust, signature, hasSigned, keyDoubt } = judgement
  if (packetId === 0 || port === null) return
  const maySign = to === BROADCAST && (trust !== 'plain' || signature !== null || hasSigned)
  const proven = pkiEncrypted ? keyDoubt === null : trust !== 'plain'
  if (pkiEncrypted || maySign) traffic.proven.push({ fromNodeNum, packetId, t: receivedAt, proven })
}

/** Plans what a packet reports about the mesh. */
export function addReports(traffic: Traffic, arrival: TrafficArrival): void {
  const { source, packet, receivedAt, heardAt, isReplayed, judgement } = arrival
  const { from, to, payload, requestId } = packet
  const channel = channelOnAir(packet)
  const { verdict, suspicion } = judgement
  if (verdict === 'spoofed' || (verdict === 'set-aside' && (packet.viaMqtt || suspicion !== null))) return
  // A route that answers no request is an overheard request.
  if (payload.kind === 'traceroute' && requestId !== null && to !== BROADCAST && !isReplayed) {
    const route = JSON.stringify(payload.route)
    traffic.routes.push({
      source: source.name,
      requestId,
      fromNodeNum: to,
      toNodeNum: from,
      answeredAt: receivedAt,
      route,
      channel,
    })
  }
  // One of our radios reports these itself; others could send them in its name.
  if (judgement.isOwn && judgement.trust === 'plain') return
  const heard = judgement.isHeard || judgement.trust === 'signed'
  const reported = { t: heardAt, channel, heard }
  // A node reports its own neighbours; a report about another node's neighbours is made up.
  if (payload.kind === 'neighborinfo' && (payload.nodeNum === 0 || payload.nodeNum === from)) {
    const known = traffic.neighbors.get(from)
    if (known?.heard !== true || heard)
      traffic.neighbors.set(from, { t: heardAt, heard, rows: listNeighbors(from, payload, reported) })
  }
  if (payload.kind === 'waypoint') traffic.waypoints.push(...listWaypoint(payload.waypoint, packet, reported))
}

type Reported = { readonly t: number; readonly channel: number; readonly heard: boolean }

function listNeighbors(
  nodeNum: number,
  { neighbors }: Payload & { kind: 'neighborinfo' },
  reported: Reported,
): NeighborRow[] {
  return neighbors
    .filter(({ snr }) => Number.isFinite(snr))
    .map(({ nodeNum: neighborNum, snr }) => ({ nodeNum, neighborNum, snr, ...reported }))
}

/** An expired waypoint needs no position. */
function listWaypoint(waypoint: Waypoint, packet: Packet, { t, channel, heard }: Reported): WaypointRow[] {
  const { from: fromNodeNum, bytes } = packet
  const { id, name, description, icon, expiresAt, lockedTo } = waypoint
  const isOver = expiresAt !== null && expiresAt <= t
  const latitude = waypoint.latitude ?? (isOver ? 0 : null)
  const longitude = waypoint.longitude ?? (isOver ? 0 : null)
  if (id === 0 || latitude === null || longitude === null) return []
  // A node locks a waypoint for itself alone: nobody takes one over in the name of another node.
  if (lockedTo !== null && lockedTo !== fromNodeNum) return []
  const rest = restOfWaypoint(bytes)
  return [
    { id, fromNodeNum, t, name, description, icon, latitude, longitude, expiresAt, lockedTo, channel, heard, rest },
  ]
}

/**
 * A decoded packet as JSON, or the bytes of one that could not be decoded. Contains no ciphertext and no possible
 * secrets.
 */
function describePayload({ payload, bytes, port }: Packet): string {
  switch (payload.kind) {
    case 'unknown':
    case 'malformed':
      // An invitation contains the key that it offers.
      return JSON.stringify(port === PortNum.MESH_BEACON_APP ? payload : { ...payload, bytes: base64Encode(bytes) })
    case 'telemetry':
      return JSON.stringify({ ...payload, metrics: Object.fromEntries(payload.metrics) })
    default:
      return JSON.stringify(payload)
  }
}
