/**
 * How sure it is who sent a packet. `own`: a radio of ours told it of itself; `signed`: its signature was verified;
 * `plain`: as it says.
 */
export const VOICES = ['own', 'signed', 'plain'] as const
export type Voice = (typeof VOICES)[number]

/** How a packet stands in the log, beside null for `plain`. `spoofed`: somebody else sent it in the name of its sender. */
export const STANDINGS = ['own', 'signed', 'spoofed'] as const
export type Standing = (typeof STANDINGS)[number]

/** Payloads of which nothing could be read. */
export const UNREADABLE = ['encrypted', 'malformed'] as const

/** What became of the signature of a packet. `missing`: the sender signs, and this came without by a way that keeps them. */
export const SIGNATURES = ['valid', 'invalid', 'unchecked', 'missing'] as const
