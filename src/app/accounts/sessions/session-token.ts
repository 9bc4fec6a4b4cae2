import { ownedBy } from '../../base/owned.ts'
import { parse } from 'hono/utils/cookie'
import { hmacSha256, isSameText, sha256Hex, toBase64url } from '../../base/crypto.ts'

/** 256 random bits, base64url. */
export function randomToken(): string {
  return toBase64url(crypto.getRandomValues(new Uint8Array(32)))
}

/** SHA-256, hexadecimal: the only stored form of a token. */
export function hashToken(token: string): string {
  return sha256Hex(token)
}

/** A random number that can be an id: 1 to 2^53 − 1. */
export function randomId(): number {
  const words = crypto.getRandomValues(new Uint32Array(2))
  return ((words[0] ?? 0) % 0x20_0000) * 0x1_0000_0000 + (words[1] ?? 0) || 1
}

/** The cookie's value: the token and its HMAC-SHA-256 under the first secret. */
export function signToken(token: string, secrets: readonly string[]): string {
  const [first] = secrets
  if (first === undefined) throw new Error('SESSION_SECRET is empty')
  return `${token}.${signature(token, first)}`
}

/** The token in a cookie that one of the secrets signed; null for anything else. */
export function verifySignedToken(value: string, secrets: readonly string[]): string | null {
  const match = /^([\w-]{43})\.([\w-]{43})$/.exec(value)
  const [, token, given] = match ?? []
  if (token === undefined || given === undefined) return null
  // Compared as text, because the decoder throws on a last character that no encoder writes.
  return secrets.some((secret) => isSameText(signature(token, secret), given)) ? token : null
}

const REMEMBERED = 1000
const REMEMBERED_LENGTH = 2048
const hashes = ownedBy((_secrets: readonly string[]) => new Map<string, string>())

/**
 * The hash of the token that one of the secrets signed, from the cookie `name` of a Cookie header; null if there is
 * none. The latest valid results are cached: they depend on the arguments alone, and verifying costs more than finding
 * the session.
 */
export function hashPresentedToken(cookies: string, name: string, secrets: readonly string[]): string | null {
  const known = hashes(secrets)
  const key = name + cookies
  const remembered = known.get(key)
  if (remembered !== undefined) return remembered
  const value = parse(cookies, name)[name]
  const token = value === undefined ? null : verifySignedToken(value, secrets)
  if (token === null) return null
  const hash = hashToken(token)
  if (known.size >= REMEMBERED) known.clear()
  if (key.length <= REMEMBERED_LENGTH) known.set(key, hash)
  return hash
}

function signature(token: string, secret: string): string {
  return hmacSha256(secret, `session:${token}`)
}
