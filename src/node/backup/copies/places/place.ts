import type { Readable } from 'node:stream'

/** An upload in parts that can go on later: `etags` are those of the parts that the place has. */
export type Upload = { readonly id: string; readonly sha256: string; readonly etags: readonly string[] }

/** A file to be sent, and what is known about it. */
export type Sent = {
  readonly size: number
  /** Hexadecimal, as all hashes. */
  readonly sha256: string
  readonly md5: string
  readonly partSize: number
  /** Of each `partSize` bytes. */
  readonly parts: readonly { readonly sha256: string; readonly md5: string }[]
  /** The bytes from `from` to before `to`. Whoever reads a piece may free its memory. */
  read(from: number, to: number): Readable
}

export type Sending = {
  /** What an earlier attempt left; null: nothing. */
  readonly upload: Upload | null
  /** Keeps what a later attempt needs; null: nothing any more. */
  keep(upload: Upload | null): Promise<void>
  onSent(bytes: number): void
}

export type Stored = { readonly name: string; readonly size: number }

/**
 * One place for copies. Names are those of files there. Throws `SendFailure` with one sentence in English; nothing that
 * is not complete and checked ever has its final name there, except in a bucket, where an object appears whole.
 */
export interface Place {
  /** Sends a file and checks it there, by its size and its checksum. What was there under its name is replaced. */
  send(name: string, file: Sent, sending: Sending): Promise<void>
  /** Removes what an interrupted `send` left. */
  clean(name: string, upload: Upload | null): Promise<void>
  /** All copies there. Throws rather than leave some out. */
  list(): Promise<Stored[]>
  read(name: string): Promise<Readable>
  /** Nothing there is no failure. */
  remove(name: string): Promise<void>
  /** The mark of the service whose copies are here; null: it has none. A folder without its file is not mounted. */
  owner(): Promise<string | null>
  /** Makes the place ready and marks it, once. Throws `foreign` if it has the mark of another service. */
  claim(service: string): Promise<void>
}
