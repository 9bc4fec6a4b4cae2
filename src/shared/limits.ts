/** A longer text is refused, in bytes of UTF-8. The radio's own limits are 232 broadcast, 227 reply, 220 direct. */
export const MAX_TEXT_BYTES = 200

/** Days that a kind of data can be kept. */
export const MAX_RETENTION_DAYS = 36_500
/** Seconds after which a node must be heard again to count as active. */
export const MAX_ACTIVE_SECONDS = 2_592_000
