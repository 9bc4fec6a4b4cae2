/**
 * The delivery state of one of our packets. `waiting` and `taken` are those of a radio that a collector has: it did not
 * take the packet yet, or has it and did not say more.
 */
export const DELIVERY_STATES = [
  'waiting',
  'taken',
  'queued',
  'sent',
  'relayed',
  'delivered',
  'failed',
  'unknown',
] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** Whether one of our radios received a message or sent it. */
export const DIRECTIONS = ['in', 'out'] as const
