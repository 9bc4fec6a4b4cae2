/**
 * How certain the sender of a packet is. `own`: a radio of ours reported it about itself; `signed`: its signature was
 * verified; `plain`: unverified.
 */
export const TRUSTS = ['own', 'signed', 'plain'] as const
export type Trust = (typeof TRUSTS)[number]

/** The same in the packet log, where null means `plain`. `spoofed`: another sender sent it in its sender's name. */
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
 * Why a node is suspected of being imitated. `own`: a packet in the name of one of our radios; `signature`: it does not
 * match the key; `unsigned`: the node signs, but this packet is unsigned; `key`, `name`, `position`: differs from
 * certain data; `sealed`: a direct message encrypted with a key other than the known one.
 */
export const SUSPICIONS = ['own', 'signature', 'unsigned', 'key', 'name', 'position', 'sealed'] as const
export type Suspicion = (typeof SUSPICIONS)[number]

/**
 * Why encryption for one node does not prove who sent a packet. `other`: it was decrypted with a key other than its
 * sender's known one; `unproven`: a collector reports it of a packet for a radio that is not its own.
 */
export const KEY_DOUBTS = ['other', 'unproven'] as const
export type KeyDoubt = (typeof KEY_DOUBTS)[number]

/** The fields in which copies of a message may differ. Of these, a signature covers only the text. */
export const DIFFERENCES = ['text', 'to', 'replyId', 'emoji'] as const
export type Difference = (typeof DIFFERENCES)[number]
