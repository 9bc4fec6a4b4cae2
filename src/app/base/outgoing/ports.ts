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
 * Sends requests to other hosts. The name is resolved once and the connection goes to exactly that address. No
 * redirects, ten seconds in total, at most 64 KB of the answer. Throws `SendFailure`.
 */
export interface Outbound {
  /** To an address that a user typed. The answer is never shown. */
  send(request: OutboundRequest): Promise<OutboundAnswer>
  /** A GET without cookies or a body, to an address that the operator configured. It may be private. */
  read(url: string): Promise<OutboundText>
}

export type OutboundText = { readonly status: number; readonly text: string }

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
