import { sql } from 'drizzle-orm'

/**
 * A row of `nodes` that is known from another program alone: this service has not heard the node on any day, so it
 * raises no alert.
 */
export const IS_IMPORTED = sql.raw('(days_heard is 0 and last_heard is not null)')
