/** A request to an address that a user typed. */
export type OutboundRequest = {
  readonly url: string
  readonly method: 'POST' | 'PUT'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array<ArrayBuffer>
  /** Private and loopback addresses are only for administrators. */
  readonly mayBePrivate: boolean
}

export type OutboundAnswer = {
  readonly status: number
  /** The value of `Retry-After` in milliseconds; null: absent. */
  readonly retryAfterMs: number | null
}

/**
 * Requests to addresses that users typed: resolved once, connected to that very address, no redirects, ten seconds in
 * total, 64 KB of answer that is never shown. Throws `SendFailure`.
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

/** Nothing was sent, or that is unknown; the message is short, for people, and contains no address. */
export class SendFailure extends Error {
  override name = 'SendFailure'
}
