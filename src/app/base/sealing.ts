import { fromBase64url, toBase64url } from './crypto.ts'

const IV_BYTES = 12
const utf8 = new TextEncoder()

/**
 * Text that only this service can read or create: AES-256-GCM, base64url. Each `label` has its own key, derived from a
 * secret with HKDF: text sealed under one label cannot be opened under another. The first secret seals.
 */
export async function seal(secrets: readonly string[], label: string, text: string): Promise<string> {
  const [first] = secrets
  if (first === undefined) throw new Error('SESSION_SECRET is empty')
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES))
  const key = await keyFor(first, label)
  const sealed = new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, utf8.encode(text)))
  const bytes = new Uint8Array(IV_BYTES + sealed.length)
  bytes.set(iv)
  bytes.set(sealed, IV_BYTES)
  return toBase64url(bytes)
}

/** The text that one of the secrets sealed under this label; null for anything else. */
export async function unseal(secrets: readonly string[], label: string, sealed: string): Promise<string | null> {
  const bytes = decoded(sealed)
  if (bytes === null) return null
  const algorithm = { name: 'AES-GCM', iv: bytes.subarray(0, IV_BYTES) }
  for (const secret of secrets) {
    const key = await keyFor(secret, label)
    const opened = await crypto.subtle.decrypt(algorithm, key, bytes.subarray(IV_BYTES)).catch(() => null)
    if (opened !== null) return new TextDecoder().decode(opened)
  }
  return null
}

async function keyFor(secret: string, label: string): Promise<CryptoKey> {
  const material = await crypto.subtle.importKey('raw', utf8.encode(secret), 'HKDF', false, ['deriveKey'])
  const derivation = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(0), info: utf8.encode(`sealed:${label}`) }
  return crypto.subtle.deriveKey(derivation, material, { name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt'])
}

function decoded(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[\w-]+$/.test(text)) return null
  try {
    return fromBase64url(text)
  } catch {
    return null
  }
}
