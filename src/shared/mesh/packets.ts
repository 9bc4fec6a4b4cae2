/**
 * How certain the sender of a packet is. `own`: a radio of ours reported it about itself; `signed`: its signature was
 * verified; `plain`: unverified.
 */
export const VOICES = ['own', 'signed', 'plain'] as const
export type Voice = (typeof VOICES)[number]

/** The same in the packet log, where null means `plain`. `spoofed`: somebody else sent it in the name of its sender. */
export const STANDINGS = ['own', 'signed', 'spoofed'] as const
export type Standing = (typeof STANDINGS)[number]

/** Payloads whose content is unreadable. */
export const UNREADABLE = ['encrypted', 'malformed'] as const

/**
 * The result of checking a packet's signature. `missing`: the sender usually signs, but this packet is unsigned,
 * although its path keeps signatures.
 */
export const SIGNATURES = ['valid', 'invalid', 'unchecked', 'missing'] as const
