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
 * Sends requests to addresses that users typed. The name is resolved once and the connection goes to exactly that
 * address. No redirects, ten seconds in total, at most 64 KB of the answer, which is never shown. Throws `SendFailure`.
 */
export interface Outbound {
  send(request: OutboundRequest): Promise<OutboundAnswer>
}

export type Letter = {
  readonly to: string
  readonly subject: string
  readonly text: string
  /** The same for each attempt. */
  readonly id: string
}

/** Sends e-mail through the administrator's server. Throws `SendFailure`. */
export interface Mail {
  send(letter: Letter): Promise<void>
}

/** Sending failed, or its outcome is unknown. The message is short, for people, and contains no address. */
export class SendFailure extends Error {
  override name = 'SendFailure'
}
