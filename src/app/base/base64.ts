/** The bytes of base64 or base64url; null for any other text. */
export function bytesOf(value: string): Uint8Array | null {
  if (!/^[\w+/-]+={0,2}$/.test(value)) return null
  try {
    return Uint8Array.from(atob(value.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0))
  } catch {
    return null
  }
}
