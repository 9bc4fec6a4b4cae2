import type { Message } from '../../messages/messages.ts'
import { canReadChannel } from '../../../../shared/access/scope.ts'
import type { HeardBy, LiveEvent } from '../event.ts'
import { summarise } from '../events.ts'
import { contentsSeen, mayGet } from '../seen.ts'
import type { Node } from '../../nodes/nodes.ts'
import type { View } from '../../../accounts/access/visible.ts'
import type { PublicView } from '../../../accounts/access/public-view.ts'
import { changesForAnonymous } from '../../nodes/anonymous-node.ts'
import { messageForAnonymous } from '../../messages/anonymous.ts'

type ShownEvent = { readonly kind: LiveEvent['kind']; readonly data: Readonly<Record<string, unknown>> }

/**
 * An event as anonymous callers get it. They get events about nodes and messages, sent ones included, with the fields
 * that the lists show, and no other kinds. Null: nothing that they may see has changed.
 */
export function eventForAnonymous(event: LiveEvent, shown: PublicView, view: View, known: Known): ShownEvent | null {
  if (!mayGet({ permissions: shown.permissions, view, userId: null }, event)) return null
  if (event.kind === 'node') return nodeEvent(event, shown, view, known)
  if (event.kind === 'message') return messageEvent(event.data, event.data['message'])
  // A message sent from here looks like one that was heard: the list shows no difference either.
  return event.kind === 'delivery' && isMessage(event.sent) ? messageEvent({ ...event.sent }, event.sent) : null
}

/** When and how the node was heard comes only from packets that the public may know about. */
function nodeEvent(event: LiveEvent, shown: PublicView, view: View, { nodes, lastHeard }: Known): ShownEvent | null {
  const { nodeNum, nodeId } = event.data
  const heardBy = event.heardBy?.filter(({ channel }) => canReadChannel(view, channel))
  if (heardBy?.length === 0) return null
  const last = heardBy?.toSorted((x, y) => x.heardAt - y.heardAt).at(-1)
  const isLater = last !== undefined && last.heardAt > (lastHeard.get(Number(nodeNum)) ?? last.heardAt)
  if (last !== undefined) lastHeard.set(Number(nodeNum), last.heardAt)
  const { heardAt, signed } = heardBy === undefined ? { heardAt: null, signed: false } : summarise(heardBy)
  const changes = contentsSeen(event, view)?.['changes']
  const shownChanges = isChanges(changes) ? partOf(changes) : undefined
  // Only fields that anonymous callers do not see have changed, such as notes.
  if (shownChanges !== undefined && Object.keys(shownChanges).length === 0) return null
  return {
    kind: 'node',
    data: { nodeNum, nodeId, heardAt, signed, ...(shownChanges !== undefined && { changes: shownChanges }) },
  }

  function partOf(changed: Partial<Node>): Partial<Node> | undefined {
    if (changed.nodeNum !== undefined) return nodes.get(changed.nodeNum)
    const hearing = Object.entries(hearingOf(last)).filter(
      ([name]) => name in changed || (isLater && name === 'lastHeard'),
    )
    return { ...changesForAnonymous(withoutHearing(changed), shown), ...Object.fromEntries(hearing) }
  }
}

/** What a feed knows besides its events. */
export type Known = {
  /** Those of `listWholeNodes`, as the list shows them. */
  readonly nodes: ReadonlyMap<number, Node>
  /** The time heard that the feed last reported for each node. It is kept between calls. */
  readonly lastHeard: Map<number, number>
}

/** The numbers of nodes that these events contain as a whole, with fields that are not for the public. */
export function listWholeNodes(events: readonly LiveEvent[]): number[] {
  return events.flatMap(({ contents }) => {
    const changes = contents?.['changes']
    return isChanges(changes) && changes.nodeNum !== undefined ? [changes.nodeNum] : []
  })
}

/** Removes the fields that would reveal packets that the public may not know about. */
function withoutHearing(changes: Partial<Node>): Partial<Node> {
  const { lastHeard: _last, firstHeard: _first, hopsAway: _hops, viaMqtt: _via, channel: _channel, ...others } = changes
  return others
}

function hearingOf(last: HeardBy | undefined): Partial<Node> {
  if (last === undefined) return {}
  const { heardAt: lastHeard, hopsAway, viaMqtt, channel } = last
  return channel === null ? { lastHeard } : { lastHeard, hopsAway, viaMqtt, channel }
}

function messageEvent(data: ShownEvent['data'], message: unknown): ShownEvent {
  const { packetId, fromNodeNum, fromNodeId, toNodeNum, toNodeId, channel, text, replyId, emoji, signed } = data
  const said = { packetId, fromNodeNum, fromNodeId, toNodeNum, toNodeId, channel, text, replyId, emoji, signed }
  return { kind: 'message', data: isMessage(message) ? { ...said, message: messageForAnonymous(message) } : said }
}

// Safe, because the service itself created the event: an object here is a part of a node as in the list.
function isChanges(value: unknown): value is Partial<Node> {
  return typeof value === 'object' && value !== null
}

// Safe, because the service itself created the event: an object with an id is a message as in the list.
function isMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && 'id' in value
}
