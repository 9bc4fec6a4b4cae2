import { isRecord } from '../../api.ts'
import { DELIVERY_STATES } from '../../../shared/mesh/delivery-states.ts'
import type { LiveEvent } from '../live.ts'
import type { Message } from '../mesh/nodes.ts'

/**
 * Messages, newest first, updated by an event of the kind `message` or `delivery`; null if the event is not sufficient.
 * `isWanted`: whether a message belongs to the list.
 */
export function withNews(
  known: readonly Message[],
  { kind, data }: NonNullable<LiveEvent>,
  isWanted: (message: Message) => boolean = () => true,
): readonly Message[] | null {
  if (kind === 'message') {
    const { message } = data
    if (!isMessage(message)) return null
    const others = known.filter(({ id }) => id !== message.id)
    return isWanted(message) ? [message, ...others].toSorted((a, b) => b.id - a.id) : known
  }
  // The new state of a traceroute.
  if (data['deliveryState'] === undefined) return known
  const isIt = ({ packetId, fromNodeNum }: Message) =>
    packetId === data['packetId'] && fromNodeNum === data['fromNodeNum']
  const changes = stateOf(data)
  return known.some(isIt) ? known.map((message) => (isIt(message) ? { ...message, ...changes } : message)) : null
}

// The service created them: an object with an id is a message in the form of the list.
function isMessage(value: unknown): value is Message {
  return isRecord(value) && typeof value['id'] === 'number' && typeof value['text'] === 'string'
}

function stateOf({ deliveryState, routingError, notice }: Readonly<Record<string, unknown>>): Partial<Message> {
  const state = DELIVERY_STATES.find((name) => name === deliveryState)
  return {
    ...(state !== undefined && { deliveryState: state }),
    routingError: typeof routingError === 'string' ? routingError : null,
    ...(typeof notice === 'string' && { notice }),
  }
}
