import type { Config } from '../../config/config.ts'

type Of = { readonly uid: string; readonly settings: string }

/** Proves that somebody reads e-mails to an address; valid for this destination and address only. */
export async function confirmToken({ SESSION_SECRET }: Pick<Config, 'SESSION_SECRET'>, of: Of): Promise<string> {
  const [first = ''] = SESSION_SECRET
  return tokenBy(first, of)
}

export async function isConfirmToken(
  { SESSION_SECRET }: Pick<Config, 'SESSION_SECRET'>,
  of: Of,
  token: string,
): Promise<boolean> {
  for (const secret of SESSION_SECRET) if ((await tokenBy(secret, of)) === token) return true
  return false
}

async function tokenBy(secret: string, { uid, settings }: Of): Promise<string> {
  const utf8 = new TextEncoder()
  const key = await crypto.subtle.importKey(
    'raw',
    utf8.encode(`confirm-address:${secret}`),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign'],
  )
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', key, utf8.encode(`${uid} ${settings}`)))
  return [...mac].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
