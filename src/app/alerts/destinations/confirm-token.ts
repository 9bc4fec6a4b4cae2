import { keyedHash } from '../../base/keyed-hash.ts'
import type { Config } from '../../config/config.ts'

type Of = { readonly uid: string; readonly settings: string }

/** A token that proves that somebody reads e-mails to an address. Valid for this destination and address only. */
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

function tokenBy(secret: string, { uid, settings }: Of): Promise<string> {
  return keyedHash(`confirm-address:${secret}`, `${uid} ${settings}`)
}
