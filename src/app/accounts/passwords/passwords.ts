import type { PasswordHasher } from './hasher.ts'
import type { Ctx } from '../../base/context.ts'
import { CAPITALS, DIGITS, LETTERS, randomText } from '../../base/crypto.ts'
import { AppError, type Issue } from '../../http/errors.ts'
import { isBreached } from './breached.ts'
import { isCommonPassword } from './common-passwords.ts'

/** Stored hashes of a lower cost are renewed at the next login. */
export const BCRYPT_COST = 12

/** bcrypt reads 72 bytes and no more. */
const MAX_BYTES = 72

/** 20 characters of 62: 119 bits. */
export function randomPassword(): string {
  return randomText(20, `${LETTERS}${CAPITALS}${DIGITS}`)
}

/** The form in which a password is hashed: the same characters give the same bytes, whatever keyboard typed them. */
function normalise(password: string): string {
  return password.normalize('NFC')
}

/** Whether two texts are the same password. */
export function isSamePassword(one: string, other: string): boolean {
  return normalise(one) === normalise(other)
}

/** False for a password that bcrypt would truncate or confuse with another one. */
function isHashable(normalised: string): boolean {
  return (
    normalised.isWellFormed() && !normalised.includes('\0') && new TextEncoder().encode(normalised).length <= MAX_BYTES
  )
}

/** Why a new password is refused; empty if it is accepted. Lengths are in characters, as in NIST SP 800-63B-4. */
export function passwordIssues(password: string, username: string, minLength: number): Issue[] {
  const normalised = normalise(password)
  const plain = normalised.toLowerCase()
  const rules: [broken: boolean, message: string][] = [
    [[...normalised].length < minLength, `At least ${minLength} characters`],
    [new TextEncoder().encode(normalised).length > MAX_BYTES, `At most ${MAX_BYTES} bytes of UTF-8`],
    [normalised.includes('\0') || !normalised.isWellFormed(), 'No NUL and no unpaired surrogate'],
    [plain === username.toLowerCase(), 'Not the username'],
    [isCommonPassword(plain), 'Not a common password'],
  ]
  return rules.filter(([broken]) => broken).map(([, message]) => ({ path: 'password', message }))
}

/** Hashes a password that meets the rules. Throws `weak_password` with the broken rules, `rate_limited`. */
export async function hashNewPassword(
  ctx: Pick<Ctx, 'config' | 'log' | 'passwords'>,
  password: string,
  username: string,
): Promise<string> {
  const issues = passwordIssues(password, username, ctx.config.PASSWORD_MIN_LENGTH)
  if (issues.length > 0) throw new AppError('weak_password', undefined, { issues })
  if (await isBreached(ctx, normalise(password))) {
    const known = [{ path: 'password', message: 'Not a password that is known from a breach' }]
    throw new AppError('weak_password', undefined, { issues: known })
  }
  return ctx.passwords.hash(normalise(password))
}

/** A hash with cost 12 of 32 random bytes that were not kept. */
const NOBODYS_HASH = '$2b$12$9l24srCew/XBXaBIBjD6lOfl/nONiiY.xoX6e9KRa3rrVQGOo.AD6'

/**
 * Whether this is the password of the hash. Without a hash it takes the same time, so that timing does not reveal which
 * users exist. Throws `rate_limited` if too many are waiting.
 */
export async function verifyPassword(
  passwords: PasswordHasher,
  { password, turn }: { readonly password: string; readonly turn: 'known' | 'anonymous' },
  hash: string | null,
): Promise<boolean> {
  const normalised = normalise(password)
  const possible = hash !== null && isHashable(normalised)
  const matches = await passwords.verify(possible ? normalised : 'x', possible ? hash : NOBODYS_HASH, turn)
  return possible && matches
}

/** A new hash to replace one with a lower cost; null if the hash is up to date or the queue is full. */
export async function renewHash(passwords: PasswordHasher, password: string, hash: string): Promise<string | null> {
  const cost = Number(/^\$2[aby]\$(\d\d)\$/.exec(hash)?.[1] ?? 0)
  if (cost >= BCRYPT_COST) return null
  return passwords.hash(normalise(password)).catch((error: unknown) => {
    // A full queue must not refuse a user whose password was correct.
    if (error instanceof AppError && error.code === 'rate_limited') return null
    throw error
  })
}
