import { fromBinary } from '@bufbuild/protobuf'
import type { OutgoingKind } from '../../../app/mesh/radios/radio.ts'
import type { Data, MeshPacket } from '../../../meshtastic/gen/packet_pb.ts'
import { Routing_Error, WaypointSchema } from '../../../meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../meshtastic/gen/ports_pb.ts'
import { MAX_PAYLOAD_BYTES } from '../../../meshtastic/link/to-radio.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import { RADIO_CHANNELS } from '../../../meshtastic/channel-identity.ts'
import { MAX_TEXT_BYTES } from '../../../shared/limits.ts'
import type { Sight } from './sight.ts'

export type Refusal = {
  readonly kind: 'refused'
  readonly error: Routing_Error
  readonly why: string
  /** No ordinary app sends this: it is recorded. */
  readonly isForged: boolean
}

/** What becomes of a packet from an app. */
export type PacketVerdict =
  | Refusal
  /** A message to the radio itself. */
  | { readonly kind: 'admin'; readonly data: Data }
  | {
      readonly kind: 'send'
      readonly data: Data
      readonly as: OutgoingKind | 'other'
      /** Null: no text. */
      readonly text: string | null
      /** Its id; null: no waypoint. */
      readonly waypoint: number | null
    }

export type PacketRules = {
  /** The radio's own number. */
  readonly own: number
  readonly sight: Sight
  /** Whether a slot of the radio holds a channel. */
  readonly isOn: (slot: number) => boolean
  /** Whether a node is in the radio's list. */
  readonly isKnown: (nodeNum: number) => boolean
  /** The public key of a node in the radio's list; empty: unknown. */
  readonly keyOf: (nodeNum: number) => Uint8Array
  /** The radio's own `User`, encoded; null: unknown. */
  readonly ownUser: Uint8Array | null
}

/** The pace of each port. Others have a pace of their own. */
const KINDS: ReadonlyMap<PortNum, OutgoingKind> = new Map<PortNum, OutgoingKind>([
  [PortNum.TEXT_MESSAGE_APP, 'text'],
  [PortNum.TRACEROUTE_APP, 'traceroute'],
  [PortNum.POSITION_APP, 'position'],
  [PortNum.TELEMETRY_APP, 'telemetry'],
  [PortNum.NODEINFO_APP, 'node-info'],
  [PortNum.WAYPOINT_APP, 'waypoint'],
  [PortNum.ALERT_APP, 'alert'],
])

/** With these, an app can ask a node for its own, as the pages do. */
const ASKING: ReadonlySet<string> = new Set<OutgoingKind>(['position', 'telemetry', 'node-info'])

/** What only radios send, or what an app could use to act as another one. */
const REFUSED: ReadonlySet<PortNum> = new Set([
  PortNum.UNKNOWN_APP,
  PortNum.ROUTING_APP,
  PortNum.TEXT_MESSAGE_COMPRESSED_APP,
  PortNum.KEY_VERIFICATION_APP,
  PortNum.REMOTE_SHELL_APP,
  PortNum.REMOTE_HARDWARE_APP,
  PortNum.MESH_BEACON_APP,
  PortNum.SIMULATOR_APP,
  PortNum.MAP_REPORT_APP,
])

/** Decides about a packet by its own words and the rights of the port; pure. */
export function judgePacket(packet: MeshPacket, rules: PacketRules): PacketVerdict {
  const { own, sight, isOn, isKnown, keyOf } = rules
  const { from, to, channel, payloadVariant, pkiEncrypted, publicKey } = packet
  if (from !== 0 && from !== own) return forged('the sender is another node')
  if (payloadVariant.case !== 'decoded') return refused(Routing_Error.BAD_REQUEST, 'the content is encrypted')
  const data = payloadVariant.value
  if (channel >= RADIO_CHANNELS || (!pkiEncrypted && !isOn(channel)))
    return refused(Routing_Error.NO_CHANNEL, 'there is no such channel')
  if (data.requestId !== 0) return forged('it answers a packet as another node would')
  const isToRadio = to === own || to === 0
  if (data.portnum === PortNum.ADMIN_APP) {
    if (!isToRadio)
      return { ...forged('admin messages to other nodes are sent on the page'), error: Routing_Error.NOT_AUTHORIZED }
    return pkiEncrypted || publicKey.length > 0 ? forged('a key of another node') : { kind: 'admin', data }
  }
  // A hidden node is answered as one that does not exist.
  if (!isToRadio && to !== BROADCAST && !(isKnown(to) && sight.seesNode(to)))
    return refused(Routing_Error.NO_ROUTE, 'the node is unknown')
  if (pkiEncrypted || publicKey.length > 0) {
    // Apps name the key of the node that they write to.
    const key = keyOf(to)
    const isItsKey = publicKey.length === 0 || isSame(publicKey, key)
    if (isToRadio || to === BROADCAST || !isItsKey)
      return { ...forged('not the key of that node'), error: Routing_Error.PKI_FAILED }
  }
  if (REFUSED.has(data.portnum)) return refused(Routing_Error.BAD_REQUEST, 'apps may not send on this port')
  return judgeContent(packet, data, rules)
}

function judgeContent(
  { to, channel, hopLimit }: MeshPacket,
  data: Data,
  { own, sight, ownUser }: PacketRules,
): PacketVerdict {
  const as = KINDS.get(data.portnum) ?? 'other'
  const { permissions } = sight.viewer
  const resource = as === 'traceroute' ? permissions.info : permissions.messages
  if (!resource.write) return refused(Routing_Error.NOT_AUTHORIZED, 'the user of this port may not send')
  // A traceroute belongs to its channel, and what an app tells the radio itself is sent to nobody.
  const isOfChannel = as === 'traceroute'
  const isToRadio = to === own || to === 0
  // A packet that asks tells something as well: it needs the rights to both.
  const isAsking = data.wantResponse && ASKING.has(as) && !isToRadio
  if (isAsking && !(permissions.info.write && sight.canWrite(channel, BROADCAST))) {
    return refused(Routing_Error.NOT_AUTHORIZED, 'the user of this port may not ask nodes there')
  }
  if (isToRadio && as !== 'position') return refused(Routing_Error.BAD_REQUEST, 'the radio would send it to itself')
  if (!isToRadio && !sight.canWrite(channel, isOfChannel ? BROADCAST : to)) {
    return refused(Routing_Error.NOT_AUTHORIZED, 'the user of this port may not send there')
  }
  if (as === 'traceroute' && to === BROADCAST && hopLimit > 0) {
    return refused(Routing_Error.BAD_REQUEST, 'a traceroute to all goes over no hop')
  }
  if (data.payload.length > MAX_PAYLOAD_BYTES) return refused(Routing_Error.TOO_LARGE, 'too long')
  const text = as === 'text' || as === 'alert' ? new TextDecoder().decode(data.payload) : null
  if (text !== null && data.payload.length > MAX_TEXT_BYTES)
    return refused(Routing_Error.TOO_LARGE, 'the text is too long')
  if (text !== null && (text.trim() === '' || text.includes('\0')))
    return refused(Routing_Error.BAD_REQUEST, 'not a text')
  // The mesh would take names, role and key from it as those of the radio.
  if (as === 'node-info') {
    if (ownUser === null) return refused(Routing_Error.NO_INTERFACE, 'the radio has not said its names yet')
    return { kind: 'send', data: { ...data, payload: ownUser }, as, text: null, waypoint: null }
  }
  const waypoint = as === 'waypoint' ? idOfWaypoint(data.payload) : null
  if (waypoint === 0) return refused(Routing_Error.BAD_REQUEST, 'not a waypoint')
  return { kind: 'send', data, as, text, waypoint }
}

/** 0: it is none. */
function idOfWaypoint(payload: Uint8Array): number {
  try {
    return fromBinary(WaypointSchema, payload).id
  } catch {
    return 0
  }
}

function refused(error: Routing_Error, why: string): Refusal {
  return { kind: 'refused', error, why, isForged: false }
}

function forged(why: string): Refusal {
  return { kind: 'refused', error: Routing_Error.BAD_REQUEST, why, isForged: true }
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at])
}
