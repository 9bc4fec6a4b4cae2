import type { Message } from '../../mesh/messages/messages.ts'
import type { Waypoint } from '../../mesh/topology/topology.ts'
import type { Traceroute } from '../../mesh/topology/traceroutes.ts'
import { blur } from './blur.ts'
import type { PublicView } from './public-view.ts'

// The part of a row for anonymous callers: each field is listed here, or it is not shown.

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
