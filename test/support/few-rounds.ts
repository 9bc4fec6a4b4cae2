import { compare, hash } from '@node-rs/bcrypt'
import type { PasswordHasher } from '../../src/app/accounts/passwords/hasher.ts'

/**
 * bcrypt on Node with 16 rounds, for tests of who gets in. Its hashes claim the usual 4096, so that no sign-in renews
 * them.
 */
export function fewRoundsHasher(): PasswordHasher {
  return {
    mayWait: true,
    hash: async (password) => (await hash(password, 4)).replace('$04$', '$12$'),
    verify: (password, stored) => compare(password, stored.replace('$12$', '$04$')),
  }
}

/** A bundle whose bcryptjs takes 16 rounds, whatever a hash claims. Throws if the bundle contains no such code. */
export function withFewRounds(bundle: string): string {
  const parts = bundle.split(/(?<==\s*\(?)1 ?<< ?\w+(?=\)? ?>>> ?0)/)
  if (parts.length !== 2) throw new Error(`the rounds of bcrypt stand in ${parts.length - 1} places of the bundle`)
  return parts.join('16')
}
