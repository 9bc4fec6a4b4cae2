import type { Profile } from '../provider.ts'
import { MAX_DISPLAY_NAME, MAX_USERNAME } from '../../../../shared/limits.ts'
import { displayNameSchema, emailSchema } from '../../users/users.ts'
import { type Claims, claimAt } from './claims.ts'

/**
 * Reads the profile claims of OpenID Connect Core 1.0, 5.1. A claim of another type or shape counts as absent.
 * `usernameClaim` is where the provider names the username, before `preferred_username`.
 */
export function profileOf(claims: Claims, usernameClaim: string | null = null): Profile {
  const name = plainText(claims['name'])
  const email = emailSchema.safeParse(claims['email']).data ?? null
  const chosen = usernameClaim === null ? null : plainText(claimAt(claims, usernameClaim))
  const preferred = chosen ?? plainText(claims['preferred_username'])
  // E-mail addresses must stay out of the audit log, and therefore out of usernames.
  const given = preferred?.toLowerCase() === email?.toLowerCase() ? null : preferred
  const candidates = [given, localPart(email ?? preferred), name, plainText(claims['nickname']), 'user']
  return {
    username: candidates.map(asUsername).find((username) => username !== null) ?? 'user',
    displayName: asDisplayName(name ?? joined(claims['given_name'], claims['family_name']) ?? preferred),
    email,
  }
}

/** The name with a suffix, cut to fit. */
export function suffixed(username: string, suffix: string): string {
  return `${username.slice(0, MAX_USERNAME - suffix.length - 1)}-${suffix}`
}

/** Removes control characters, lone surrogates and direction marks; null if nothing is left. */
function plainText(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const text = value.replace(/[\p{Cc}\p{Cs}\u202a-\u202e\u2066-\u2069]/gu, '').trim()
  return text === '' ? null : text
}

function joined(...values: unknown[]): string | null {
  return plainText(values.flatMap((value) => plainText(value) ?? []).join(' '))
}

function localPart(address: string | null): string | null {
  return address?.split('@', 1)[0] ?? null
}

function asUsername(text: string | null): string | null {
  const ascii = (text ?? '')
    .slice(0, 4 * MAX_USERNAME)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^A-Za-z0-9._@-]+/g, '-')
    .replace(/^[-.]+/, '')
    .slice(0, MAX_USERNAME)
    .replace(/[-.]+$/, '')
  return ascii === '' ? null : ascii
}

function asDisplayName(text: string | null): string | null {
  let name = ''
  for (const character of text ?? '') {
    if (name.length + character.length > MAX_DISPLAY_NAME) break
    name += character
  }
  return displayNameSchema.safeParse(name.trim()).data ?? null
}
