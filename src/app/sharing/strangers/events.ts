import type { Message } from '../../mesh/messages/messages.ts'
import type { LiveEvent } from '../../mesh/live/event.ts'
import { contentsSeen, mayGet } from '../../mesh/live/seen.ts'
import type { Node } from '../../mesh/nodes/nodes.ts'
import type { View } from '../visible.ts'
import type { PublicView } from '../public-view.ts'
import { changesForStrangers, messageForStrangers } from './rows.ts'

type Told = { readonly kind: LiveEvent['kind']; readonly data: Readonly<Record<string, unknown>> }

/**
 * An event as anonymous callers get it: for nodes and messages, also sent ones, the fields that the lists show; no
 * other kinds. Null: nothing that they may see has changed.
 */
export function eventForStrangers(event: LiveEvent, shown: PublicView, view: View): Told | null {
  if (!mayGet({ permissions: shown.permissions, view, userId: null }, event)) return null
  if (event.kind === 'node') return nodeEvent(event, shown, view)
  if (event.kind === 'message') return messageEvent(event.data, event.data['message'])
  // A message that was sent here is told as one that was heard: the list shows no difference either.
  return event.kind === 'delivery' && isMessage(event.sent) ? messageEvent({ ...event.sent }, event.sent) : null
}

function nodeEvent(event: LiveEvent, shown: PublicView, view: View): Told | null {
  const { nodeNum, nodeId, heardAt, signed } = event.data
  const changes = contentsSeen(event, view)?.['changes']
  const told = isChanges(changes) ? changesForStrangers(changes, shown) : undefined
  // Only something that users alone see has changed, such as notes.
  if (told !== undefined && Object.keys(told).length === 0) return null
  return { kind: 'node', data: { nodeNum, nodeId, heardAt, signed, ...(told !== undefined && { changes: told }) } }
}

function messageEvent(data: Told['data'], message: unknown): Told {
  const { packetId, fromNodeNum, fromNodeId, toNodeNum, toNodeId, channel, text, replyId, emoji, signed } = data
  const said = { packetId, fromNodeNum, fromNodeId, toNodeNum, toNodeId, channel, text, replyId, emoji, signed }
  return { kind: 'message', data: isMessage(message) ? { ...said, message: messageForStrangers(message) } : said }
}

// The service created them: an object is a part of a node as in the list.
function isChanges(value: unknown): value is Partial<Node> {
  return typeof value === 'object' && value !== null
}

// The service created it: an object with an id is a message as in the list.
function isMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && 'id' in value
}
