import type { DeliveryState } from '../../../shared/mesh/delivery-states.ts'

/** An event that changes the delivery state of one of our packets. */
export type DeliveryEvent =
  /**
   * Passed to the radio. Recorded just before, so that a process killed in between never makes a sent packet look
   * unsent.
   */
  | { readonly type: 'written' }
  /** The radio could not take it after all, so it waits again. */
  | { readonly type: 'requeued' }
  /** The node `from` reports the outcome: `NONE` is success, any other name a failure. */
  | { readonly type: 'routing'; readonly error: string; readonly from: number }
  /** The radio did not accept it. */
  | { readonly type: 'refused'; readonly error: string }
  /** The radio's notification about it. */
  | { readonly type: 'notice'; readonly message: string }
  /** It was never passed to the radio. */
  | { readonly type: 'not-sent' }
  /** It was never passed to the radio either, because its rule was changed. */
  | { readonly type: 'withdrawn' }
  /** It was never passed to the radio either, because the service that asked for it set a time. */
  | { readonly type: 'expired' }
  /** Nothing was heard for too long, or the link broke: the result stays unknown. */
  | { readonly type: 'lost' }

/** Error of a packet that waited while the service was killed: no radio had it. */
export const NOT_SENT = 'NOT_SENT'

/** Error of a packet that was withdrawn before a radio had it. */
export const WITHDRAWN = 'WITHDRAWN'

/** Error of a packet that no radio had in the time that another service gave for it. */
export const EXPIRED = 'EXPIRED'

/** Error of a packet that a collector took, and that may have been sent: it did not say more, or was stopped. */
export const UNREPORTED = 'UNREPORTED'

export type Delivery = {
  readonly state: DeliveryState
  readonly error: string | null
  /** Node numbers of both ends. */
  readonly from: number
  readonly to: number
}

/** The rank of each state; a packet never returns to a lower rank. */
const RANKS = {
  waiting: 0,
  taken: 0,
  queued: 0,
  sent: 1,
  unknown: 2,
  failed: 3,
  relayed: 4,
  delivered: 5,
} as const satisfies Record<DeliveryState, number>

/**
 * The state of a packet after an event. A better outcome replaces a worse one, so a late acknowledgement undoes a
 * failure. Only a refusal by the destination itself outweighs an overheard repetition. Only the two ends know the
 * outcome.
 */
export function advance(current: Delivery, event: DeliveryEvent): Delivery {
  if (event.type === 'routing' && event.from !== current.from && event.from !== current.to) return current
  if (event.type === 'requeued') return current.state === 'sent' ? { ...current, state: 'queued' } : current
  const next = { ...current, ...outcomeOf(event, current.to) }
  const isRefusal = next.state === 'failed' && event.type === 'routing' && event.from === current.to
  if (isRefusal && current.state !== 'delivered') return next
  return RANKS[next.state] > RANKS[current.state] ? next : current
}

/** Notices with which firmware (PhoneAPI.cpp, Router.cpp) drops a packet, and the corresponding error. */
const REFUSALS = [
  { words: /once every \d+ seconds/i, error: 'RATE_LIMIT_EXCEEDED' },
  { words: /duty cycle limit/i, error: 'DUTY_CYCLE_LIMIT' },
] as const

/** Any other text does not say how far the packet got. */
function outcomeOfNotice(message: string): Pick<Delivery, 'state' | 'error'> {
  const refusal = REFUSALS.find(({ words }) => words.test(message))
  return refusal === undefined ? { state: 'queued', error: null } : { state: 'failed', error: refusal.error }
}

function outcomeOf(event: Exclude<DeliveryEvent, { type: 'requeued' }>, to: number): Pick<Delivery, 'state' | 'error'> {
  switch (event.type) {
    case 'written':
      return { state: 'sent', error: null }
    case 'routing':
      if (event.error !== 'NONE') return { state: 'failed', error: event.error }
      // An acknowledgement from our own radio only means that it heard a repetition.
      return { state: event.from === to ? 'delivered' : 'relayed', error: null }
    case 'refused':
      return { state: 'failed', error: event.error }
    case 'notice':
      return outcomeOfNotice(event.message)
    case 'not-sent':
      return { state: 'failed', error: 'NO_INTERFACE' }
    case 'withdrawn':
      return { state: 'failed', error: WITHDRAWN }
    case 'expired':
      return { state: 'failed', error: EXPIRED }
    case 'lost':
      return { state: 'unknown', error: null }
    default:
      return event satisfies never
  }
}
