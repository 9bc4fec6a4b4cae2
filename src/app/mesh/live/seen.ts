import type { Viewer } from '../../base/context.ts'
import { canReadMessage, seesEverything, seesNodes, type View } from '../../accounts/access/visible.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import { EVENT_KINDS } from '../../../shared/mesh/event-kinds.ts'
import type { Node } from '../nodes/nodes.ts'
import type { LiveEvent } from './event.ts'

// Which live events a viewer gets, and which parts of them.

/** Whether a viewer may get the event. `userId`: null for anonymous callers. */
export function mayGet(
  { permissions, view, userId }: Pick<Viewer, 'permissions' | 'view'> & { readonly userId: number | null },
  event: LiveEvent,
): boolean {
  const needs = EVENT_KINDS[event.kind]
  if (needs === 'own') return userId !== null && event.userId === userId
  if (!permissions[needs].read || (event.nodes !== undefined && !seesNodes(view, event.nodes))) return false
  return event.place === undefined || canReadMessage(view, event.place)
}

/** What changes with each packet of a node. */
const HEARD_FIELDS: ReadonlySet<string> = new Set([
  'lastHeard',
  'lastHeardByRadio',
  'lastHeardByBroker',
  'channel',
  'snr',
  'rssi',
  'hopsAway',
  'viaMqtt',
  'position',
  'deviceMetrics',
] satisfies (keyof Node)[])

/** Whether an event reports no more than that a node was heard, with its position and measurements. */
export function isOnlyHeard({ kind, contents }: LiveEvent): boolean {
  const changes = contents?.['changes']
  if (kind !== 'node' || typeof changes !== 'object' || changes === null) return false
  return Object.keys(changes).every((name) => HEARD_FIELDS.has(name))
}

/** Receivers named in one event. */
const MAX_RECEIVERS = 8

/**
 * The packets of a node event, for viewers who may know which nodes hear each other: one for each receiver, and none on
 * a channel outside the view, nor from, to or by a hidden node.
 */
export function packetsSeen({ data, heardBy = [] }: LiveEvent, view: View) {
  const sender = Number(data['nodeNum'])
  const seen = heardBy.flatMap(({ channel, to, receiver, hopsAway, viaMqtt }) =>
    receiver !== null &&
    receiver !== sender &&
    (channel === null || canReadChannel(view, channel)) &&
    seesNodes(view, [sender, to, receiver])
      ? [{ receiver, hopsAway, viaMqtt }]
      : [],
  )
  return [...new Map(seen.map((packet) => [packet.receiver, packet])).values()].slice(0, MAX_RECEIVERS)
}

/** The contents without changes on channels outside the view, because for that view nothing has changed there. */
export function contentsSeen({ contents, channels }: LiveEvent, view: View): LiveEvent['contents'] {
  const changes = contents?.['changes']
  if (channels === undefined || typeof changes !== 'object' || changes === null || seesEverything(view)) {
    return contents
  }
  const unseen = Object.entries(channels).flatMap(([name, channel]) => (canReadChannel(view, channel) ? [] : [name]))
  if (unseen.length === 0) return contents
  // The event has the whole node. With fields missing it would be useless, so pages load the node instead.
  if ('nodeNum' in changes) return undefined
  return { changes: Object.fromEntries(Object.entries(changes).filter(([name]) => !unseen.includes(name))) }
}
