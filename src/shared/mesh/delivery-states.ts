/** The delivery state of one of our packets. */
export const DELIVERY_STATES = ['queued', 'sent', 'relayed', 'delivered', 'failed', 'unknown'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** Whether one of our radios received a message or sent it. */
export const DIRECTIONS = ['in', 'out'] as const
