/**
 * How certain the sender of a packet is. `own`: a radio of ours reported it about itself; `signed`: its signature was
 * verified; `plain`: unverified.
 */
export const TRUSTS = ['own', 'signed', 'plain'] as const
export type Trust = (typeof TRUSTS)[number]

/** The same in the packet log, where null means `plain`. `spoofed`: somebody else sent it in the name of its sender. */
export const TRUST_LEVELS = ['own', 'signed', 'spoofed'] as const
export type TrustLevel = (typeof TRUST_LEVELS)[number]

/** Payloads whose content is unreadable. */
export const UNREADABLE = ['encrypted', 'malformed'] as const

/**
 * The result of checking a packet's signature. `missing`: the sender usually signs, but this packet is unsigned,
 * although its path keeps signatures.
 */
export const SIGNATURES = ['valid', 'invalid', 'unchecked', 'missing'] as const

/**
 * Why a node is suspected of being imitated. `own`: sent in the name of one of our radios; `signature`: it does not match
 * the key; `unsigned`: the node signs, and this packet is unsigned; `key`, `name`, `position`: differs from what is
 * certain; `sealed`: a direct message encrypted with another key than the known one.
 */
export const SUSPICIONS = ['own', 'signature', 'unsigned', 'key', 'name', 'position', 'sealed'] as const
export type Suspicion = (typeof SUSPICIONS)[number]

/**
 * Why encryption for one node does not show who sent a packet. `other`: it was opened with another key than the known one
 * of its sender; `unproven`: a collector says so of a packet for a radio that is not its own.
 */
export const KEY_DOUBTS = ['other', 'unproven'] as const
export type KeyDoubt = (typeof KEY_DOUBTS)[number]

/** What copies of a message may differ in. Of these, a signature covers the text only. */
export const DIFFERENCES = ['text', 'to', 'replyId', 'emoji'] as const
export type Difference = (typeof DIFFERENCES)[number]
