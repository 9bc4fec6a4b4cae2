const utf8 = new TextEncoder()

/** HMAC-SHA-256 of a text, hexadecimal. Without `key` nobody can compute it or test guesses of the text. */
export async function keyedHash(key: string, text: string): Promise<string> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const imported = await crypto.subtle.importKey('raw', utf8.encode(key), algorithm, false, ['sign'])
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', imported, utf8.encode(text)))
  return [...mac].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
