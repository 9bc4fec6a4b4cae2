/** How far a packet of ours got. */
export const DELIVERY_STATES = ['queued', 'sent', 'relayed', 'delivered', 'failed', 'unknown'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** Of a message: heard by a radio of ours, or sent by one. */
export const DIRECTIONS = ['in', 'out'] as const
