import type { Context } from 'hono'
import { sha256Hex, toHex } from '../base/crypto.ts'
import { ownedBy } from '../base/owned.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'
import type { Config } from '../config/config.ts'

/** Names of the IANA registry of content codings. */
export type Encoding = 'zstd' | 'gzip'

/** Compresses answers on another thread. */
export interface Compressor {
  /** Best first. */
  readonly encodings: readonly Encoding[]
  compress(encoding: Encoding, bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>>
}

/** Smaller answers fit into one packet anyway. */
const MIN_BYTES = 1400

/** The bytes of an answer for many readers, compressed once per encoding, and its entity tag. */
export type Body = {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** With its quotes; a compressed form has its own tag. */
  readonly etag: string
  /** Null: for one reader, so compressing it would cost more than it saves. */
  readonly packed: Map<Encoding, Promise<Uint8Array<ArrayBuffer>>> | null
}

const utf8 = new TextEncoder()

export function bodyOf(json: string, etag: string): Body {
  return { bytes: utf8.encode(json), etag, packed: new Map() }
}

/** Values of a long list that are encoded in one turn of the event loop: half a megabyte of nodes. */
const ENCODED_AT_ONCE = 500

/** As `bodyOf`, of an array of values that are JSON already. Other work has its turns while a long one is encoded. */
export async function arrayBody(values: readonly string[], etag: string): Promise<Body> {
  const parts: Uint8Array[] = []
  for (let at = 0; at === 0 || at < values.length; at += ENCODED_AT_ONCE) {
    if (at > 0) await nextTurn()
    const end = at + ENCODED_AT_ONCE
    const text = values.slice(at, end).join(',')
    parts.push(utf8.encode(`${at === 0 ? '[' : ','}${text}${end >= values.length ? ']' : ''}`))
  }
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let length = 0
  for (const part of parts) {
    bytes.set(part, length)
    length += part.length
  }
  return { bytes, etag, packed: new Map() }
}

/** SHA-256 as hexadecimal digits in lower case. */
type Digest = (bytes: Uint8Array<ArrayBuffer>) => string | Promise<string>

const digestOf = ownedBy((_process: typeof globalThis): { of: Digest } => ({
  of: async (bytes) => toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))),
}))

/** For a runtime that has a faster way than Web Crypto, which hashes in another thread. */
export function hashBodiesBy(digest: Digest): void {
  digestOf(globalThis).of = digest
}

/** Its tag is derived from its content: two processes give the same body the same tag. */
export async function hashedBody(json: string): Promise<Body> {
  const bytes = utf8.encode(json)
  return { bytes, etag: await tagOf(bytes), packed: new Map() }
}

/** The entity tag of a state of the data. The state, which may count what others see, cannot be guessed from it. */
export function stateTag({ SESSION_SECRET: [secret = ''] }: Pick<Config, 'SESSION_SECRET'>, state: string): string {
  return `"${sha256Hex(`entity tag\n${secret}\n${state}`).slice(0, 32)}"`
}

/** An entity tag that depends on a text alone. */
export function hashedTag(text: string): Promise<string> {
  return tagOf(utf8.encode(text))
}

async function tagOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return `"${(await digestOf(globalThis).of(bytes)).slice(0, 32)}"`
}

/**
 * Answers with a body, or 304 when the client has that version, compressed if possible and safe. `vary`: other request
 * headers that decide the answer, each followed by `, `.
 * Decision: docs/decisions/compressed-lists.md
 */
export async function answerBody(
  c: Context,
  compressor: Compressor | null,
  body: Body,
  more: Readonly<Record<string, string>> = {},
  vary = '',
) {
  const encoding = compressor === null ? null : chooseEncoding(c, compressor, body)
  const etag = encoding === null ? body.etag : body.etag.replace(/"$/, `-${encoding}"`)
  const headers = { ...more, ETag: etag, Vary: `${vary}${VARY}` }
  if (matchesEtag(c.req.header('if-none-match'), etag)) return c.body(null, 304, headers)
  return answerPacked(c, { compressor, encoding }, body, { ...headers, 'Content-Type': 'application/json' })
}

const VARY = 'Accept-Encoding, Sec-Fetch-Site'

/** As `answerBody`, without an entity tag, for a body of this type that stays as it is. */
export function answerText(c: Context, compressor: Compressor | null, body: Body, mediaType: string) {
  const encoding = compressor === null ? null : chooseEncoding(c, compressor, body)
  return answerPacked(c, { compressor, encoding }, body, { Vary: VARY, 'Content-Type': mediaType })
}

type Packing = { readonly compressor: Compressor | null; readonly encoding: Encoding | null }

async function answerPacked(
  c: Context,
  { compressor, encoding }: Packing,
  body: Body,
  headers: Readonly<Record<string, string>>,
) {
  if (compressor === null || encoding === null) return c.body(body.bytes, 200, headers)
  return c.body(await packOnce(compressor, encoding, body), 200, { ...headers, 'Content-Encoding': encoding })
}

/**
 * The best encoding that the client accepts; null: none. Answers to pages of other origins stay uncompressed: their
 * length could reveal content (BREACH), as anybody can choose names in it.
 */
function chooseEncoding(c: Context, { encodings }: Compressor, { bytes, packed }: Body): Encoding | null {
  if (
    packed === null ||
    bytes.length < MIN_BYTES ||
    (c.req.header('sec-fetch-site') ?? 'same-origin') !== 'same-origin'
  )
    return null
  const accepted = acceptedEncodings(c.req.header('accept-encoding') ?? '')
  return encodings.find((encoding) => accepted.has(encoding)) ?? null
}

/** The encodings in an Accept-Encoding header, without those refused by `q=0` (RFC 9110, 12.5.3). */
function acceptedEncodings(header: string): ReadonlySet<string> {
  const wanted = header.split(',').filter((part) => !/;\s*q=0(?:\.0*)?\s*$/.test(part))
  return new Set(wanted.map((part) => (part.split(';', 1)[0] ?? '').trim().toLowerCase()))
}

function packOnce(compressor: Compressor, encoding: Encoding, { bytes, packed }: Body) {
  const known = packed?.get(encoding)
  if (known !== undefined) return known
  const made = compressor.compress(encoding, bytes)
  packed?.set(encoding, made)
  made.catch(() => packed?.delete(encoding))
  return made
}

/** Whether an If-None-Match header contains the tag (RFC 9110, 13.1.2: a list, `*`, weak comparison). */
export function matchesEtag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.match(/(?:W\/)?"[^"]*"/g)?.some((tag) => tag.replace(/^W\//, '') === etag) ?? false
}
