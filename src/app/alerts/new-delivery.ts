import { sql } from 'drizzle-orm'

/** What every new row of `alert_deliveries` has: an ID for the receiver, and its state. */
export const NEW_DELIVERY = {
  uid: sql`'msg_' || lower(hex(randomblob(16)))`,
  state: 'waiting',
} as const

/** The same for a message to the destination `d` of a query. */
export const NEW_TO_DESTINATION = { ...NEW_DELIVERY, destinationId: sql`d.id`, ownerId: sql`d.owner_id` }
