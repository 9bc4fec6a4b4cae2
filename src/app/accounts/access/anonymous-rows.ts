import type { Message } from '../../mesh/messages/messages.ts'
import type { Node } from '../../mesh/nodes/nodes.ts'
import type { Waypoint } from '../../mesh/topology/topology.ts'
import type { Traceroute } from '../../mesh/topology/traceroutes.ts'
import { blur } from './blur.ts'
import type { PublicView } from './public-view.ts'

// The part of a row for anonymous callers: each field is listed here, or it is not shown.

/**
 * Fields of a node that are never shown: notes, marks and firmware, its signal at our radios, and whether it is our
 * own.
 */
const WITHHELD = {
  firmwareVersion: null,
  publicKey: null,
  snr: null,
  rssi: null,
  isFavorite: false,
  isIgnored: false,
  isLocal: false,
  hidden: false,
  lastHeardByRadio: null,
  lastHeardByBroker: null,
  keyMismatch: false,
  spoofSuspected: false,
  notes: '',
} as const satisfies Partial<Node>

/**
 * A node as anonymous callers see it.
 * Decision: docs/decisions/ids-count-everything.md
 */
export function nodeForAnonymous(node: Node, view: PublicView): Node {
  const { nodeNum, nodeId, longName, shortName, nameAltered, hwModel, role, isLicensed, deviceMetrics, status } = node
  const { hopsAway, lastHeard, firstHeard, viaMqtt, channel, signed, position } = node
  return {
    ...WITHHELD,
    nodeNum,
    nodeId,
    longName,
    shortName,
    nameAltered,
    hwModel,
    role,
    isLicensed,
    position: position === null ? null : placeForAnonymous(position, view),
    deviceMetrics,
    status,
    hopsAway,
    lastHeard,
    firstHeard,
    viaMqtt,
    channel,
    signed,
  }
}

const SHOWN = [
  'nodeNum',
  'nodeId',
  'longName',
  'shortName',
  'nameAltered',
  'hwModel',
  'role',
  'isLicensed',
  'deviceMetrics',
  'status',
  'hopsAway',
  'lastHeard',
  'firstHeard',
  'viaMqtt',
  'channel',
  'signed',
] as const satisfies readonly (keyof Node)[]

/** The same for changes of a node. If they contain the whole node, so does the result. */
export function changesForAnonymous(changes: Partial<Node>, view: PublicView): Partial<Node> {
  const { nodeNum, position } = changes
  return {
    ...(nodeNum !== undefined && WITHHELD),
    ...Object.fromEntries(SHOWN.flatMap((name) => (name in changes ? [[name, changes[name]]] : []))),
    ...(position !== undefined && { position: position === null ? null : placeForAnonymous(position, view) }),
  }
}

function placeForAnonymous(
  { latitude, longitude, altitude, precisionBits, time }: NonNullable<Node['position']>,
  { precisionBits: bits }: PublicView,
): NonNullable<Node['position']> {
  return { ...blur({ latitude, longitude, altitude, precisionBits }, bits), time }
}

/** A waypoint at a rounded place. */
export function waypointForAnonymous(waypoint: Waypoint, { precisionBits: bits }: PublicView): Waypoint {
  const { id, fromNodeNum, fromNodeId, timestamp, name, description, icon, expiresAt, lockedTo } = waypoint
  const { latitude, longitude } = blur({ ...waypoint, altitude: null, precisionBits: null }, bits)
  return { id, fromNodeNum, fromNodeId, timestamp, name, description, icon, latitude, longitude, expiresAt, lockedTo }
}

/** A traceroute that does not show whether it was requested here. Its id reveals nothing about hidden ones. */
export function tracerouteForAnonymous(traceroute: Traceroute): Traceroute {
  const { requestId, fromNodeNum, fromNodeId, toNodeNum, toNodeId, route, snrTowards, routeBack, snrBack } = traceroute
  const timestamp = traceroute.answeredAt ?? traceroute.timestamp
  return {
    id: publicId(timestamp, `${fromNodeNum} ${requestId}`),
    requestId,
    fromNodeNum,
    fromNodeId,
    toNodeNum,
    toNodeId,
    timestamp,
    answeredAt: timestamp,
    state: 'delivered',
    routingError: null,
    route,
    snrTowards,
    routeBack,
    snrBack,
    requestedBy: null,
    radio: null,
  }
}

/** A message without its handling by our radios and users. Its id reveals nothing about hidden messages. */
export function messageForAnonymous(message: Message): Message {
  const { packetId, fromNodeNum, fromNodeId, toNodeNum, toNodeId, channel } = message
  const { text, replyId, emoji, timestamp, hopsAway, viaMqtt, signed, conflicting } = message
  return {
    id: publicId(timestamp, `${fromNodeNum} ${packetId}`),
    packetId,
    fromNodeNum,
    fromNodeId,
    toNodeNum,
    toNodeId,
    channel,
    text,
    replyId,
    emoji,
    timestamp,
    rxSnr: null,
    rxRssi: null,
    hopsAway,
    viaMqtt,
    pkiEncrypted: false,
    keyDoubt: null,
    signed,
    conflicting,
    direction: 'in',
    deliveryState: null,
    routingError: null,
    sentBy: null,
    radio: null,
  }
}

const IDS_PER_MS = 4096

/** An id in the order of time, derived from visible data only. Ids of the database would also count hidden rows. */
function publicId(timestamp: number, text: string): number {
  let hash = 0x811c9dc5
  for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193)
  return timestamp * IDS_PER_MS + ((hash >>> 0) % IDS_PER_MS)
}
