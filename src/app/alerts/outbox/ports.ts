/** A request to an address that a user typed. */
export type OutboundRequest = {
  readonly url: string
  readonly method: 'POST' | 'PUT'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array<ArrayBuffer>
  /** Private and loopback addresses are for administrators alone. */
  readonly mayBePrivate: boolean
}

export type OutboundAnswer = {
  readonly status: number
  /** What `Retry-After` asks for, in milliseconds; null: nothing. */
  readonly retryAfterMs: number | null
}

/**
 * Requests to addresses that users typed: resolved once, connected to that very address, no redirects, ten seconds in all,
 * 64 KB of answer that nobody sees. Throws `SendFailure`.
 */
export interface Outbound {
  send(request: OutboundRequest): Promise<OutboundAnswer>
}

export type Letter = {
  readonly to: string
  readonly subject: string
  readonly text: string
  /** The same at each attempt. */
  readonly id: string
}

/** E-mail by the administrator's server. Throws `SendFailure`. */
export interface Mail {
  send(letter: Letter): Promise<void>
}

/** Nothing was sent, or nobody can tell; the message is in few words, for people, and names no address. */
export class SendFailure extends Error {
  override name = 'SendFailure'
}
