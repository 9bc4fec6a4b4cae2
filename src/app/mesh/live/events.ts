import type { News } from '../heard/heard.ts'
import type { Events, HeardBy, LiveEvent, NewEvent } from './event.ts'
import type { LinkInfo } from '../radios/radio.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import type { Change } from '../../device-config/schemas.ts'
import { channelOnAir, readText } from '../heard/contents.ts'
import { FIRST_DIRECT, WITHHELD } from '../../../shared/mesh/channels.ts'
import { type Place, placeOfMessage } from '../../accounts/access/visible.ts'

/** Events kept for readers that were disconnected for a short time. */
const KEPT_EVENTS = 1000
/** Readers that are woken at a time, before other work gets its turn. */
const SLICE = 25
/** The maximum number of open streams per user. */
const STREAMS_PER_USER = 10

type Clock = { now(): number; after(delayMs: number, run: () => void): () => void }

/**
 * The live events of one process. Numbers of another process mean nothing here: `epoch` identifies the process. `name`:
 * letters and digits that distinguish it from one started at the same instant.
 */
export function createEvents(
  clock: Clock,
  name = '',
  streamsPerUser = STREAMS_PER_USER,
): Events & {
  /** Some events never arrived here; readers are informed. */
  skip(): void
} {
  const ring: LiveEvent[] = []
  const listeners = new Set<() => void>()
  const streams = new Map<number, number>()
  let last = 0
  let isClosed = false
  let isDue = false
  let isWaking = false
  const wakeAll = async () => {
    isDue = true
    if (isWaking) return
    isWaking = true
    try {
      while (isDue) {
        isDue = false
        let woken = 0
        for (const wake of listeners) {
          wake()
          if (++woken % SLICE === 0) await nextTurn()
        }
      }
    } finally {
      isWaking = false
    }
  }
  return {
    epoch: `${clock.now().toString(36)}${name}`,
    after: clock.after,
    last: () => last,
    isClosed: () => isClosed,
    publish(events) {
      if (events.length === 0 || isClosed) return
      for (const event of events) ring.push({ ...event, seq: ++last })
      ring.splice(0, ring.length - KEPT_EVENTS)
      void wakeAll()
    },
    skip() {
      ring.length = 0
      last += 1
      void wakeAll()
    },
    since(seq, limit) {
      const first = last - ring.length + 1
      return seq < first - 1 || seq > last ? null : ring.slice(seq + 1 - first, seq + 1 - first + limit)
    },
    subscribe(userId, wake) {
      const open = streams.get(userId) ?? 0
      if (open >= streamsPerUser) return null
      streams.set(userId, open + 1)
      listeners.add(wake)
      return () => {
        if (!listeners.delete(wake)) return
        const left = (streams.get(userId) ?? 1) - 1
        if (left === 0) streams.delete(userId)
        else streams.set(userId, left)
      }
    },
    close() {
      isClosed = true
      for (const wake of listeners) wake()
    },
  }
}

/** The events of a stored batch: each node that was heard, once, each text, each route and each list of neighbours. */
export function newsEvents(news: readonly News[]): NewEvent[] {
  const certain = news.filter(({ isDoubted }) => isDoubted !== true)
  const nodes = [...Map.groupBy(certain, ({ packet }) => packet.from)].map(([nodeNum, packets]): NewEvent => {
    const heardBy = packets.map(heardByOf)
    const data = { nodeNum, nodeId: formatNodeId(nodeNum), ...summarise(heardBy) }
    return { kind: 'node', data, nodes: [nodeNum], heardBy }
  })
  return [...nodes, ...news.flatMap(messageEvent), ...certain.flatMap(topologyEvent)]
}

function heardByOf({ packet, receivedAt: heardAt, receiver, isSigned: signed, isOwn }: News): HeardBy {
  const channel = channelOnAir(packet)
  const { hopsAway, viaMqtt, to } = packet
  return { channel: isOwn && channel < FIRST_DIRECT ? null : channel, heardAt, hopsAway, viaMqtt, signed, receiver, to }
}

/** When a node was heard by these packets, and whether one of them was signed. */
export function summarise(heardBy: readonly HeardBy[]): { heardAt: number; signed: boolean } {
  const heardAt = heardBy.reduce((latest, each) => Math.max(latest, each.heardAt), 0)
  return { heardAt, signed: heardBy.some(({ signed }) => signed) }
}

function messageEvent({ packet, isSigned: signed }: News): NewEvent[] {
  const said = readText(packet)
  if (said === null) return []
  const { from, channel, replyId, isEmoji: emoji } = packet
  const { packetId, to, text } = said
  const ends = { fromNodeNum: from, fromNodeId: formatNodeId(from), toNodeNum: to, toNodeId: formatNodeId(to) }
  const data = { packetId, ...ends, channel, text, replyId, emoji, signed }
  const place = placeOfMessage({ channel: packet.isWithheld ? channel + WITHHELD : channel, to })
  return [{ kind: 'message', data, place, nodes: [from, to] }]
}

/** What a packet reports about the paths of the mesh. Viewers load it, as far as they may see it. */
function topologyEvent({ packet }: News): NewEvent[] {
  const { from, to, payload, requestId } = packet
  const place = { channel: channelOnAir(packet), isDirect: false }
  if (payload.kind === 'neighborinfo') {
    return [{ kind: 'neighbors', data: { nodeNum: from, nodeId: formatNodeId(from) }, place, nodes: [from] }]
  }
  if (payload.kind !== 'traceroute' || requestId === null) return []
  return [tracerouteEvent({ nodeNum: to, packetId: requestId, to: from }, place)]
}

type Traced = { readonly nodeNum: number; readonly packetId: number; readonly to: number }

/** A traceroute was added or has changed. */
export function tracerouteEvent({ nodeNum, packetId, to }: Traced, place: Place): NewEvent {
  return { kind: 'traceroute', data: { fromNodeNum: nodeNum, requestId: packetId }, place, nodes: [nodeNum, to] }
}

/** The state of a link has changed. */
export function linkEvent({ name, kind, state, since, reason }: LinkInfo): NewEvent {
  return { kind: 'link', data: { name, kind, state, since, reason } }
}

/** The state of one of our messages or traceroutes may have changed. */
export function deliveryEvent({ nodeNum, packetId }: { nodeNum: number; packetId: number }): NewEvent {
  return { kind: 'delivery', data: { fromNodeNum: nodeNum, packetId } }
}

/** A change of a radio's settings has begun or ended. */
export function changeEvent(
  source: string,
  {
    id,
    section,
    state,
    differing,
    reason,
  }: Pick<Change, 'id' | 'section' | 'state' | 'reason'> & {
    readonly differing: readonly string[]
  },
): NewEvent {
  return { kind: 'configuration', data: { source, section, id, state, differing, reason } }
}
