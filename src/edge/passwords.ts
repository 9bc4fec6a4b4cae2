import type { PasswordHasher } from '../app/accounts/passwords/hasher.ts'
import { compareSync, hashSync } from 'bcryptjs'
import { BCRYPT_COST } from '../app/accounts/passwords/passwords.ts'
import { AppError } from '../app/http/errors.ts'

/** If this many are waiting, the answer is 429, because each blocks the thread for half a second. */
const MAX_WAITING = 16

/**
 * The runtime drops a request whose client has disconnected, in the middle of an `await`; its place becomes free after
 * this time.
 */
const GONE_AFTER_MS = 30_000

/**
 * bcrypt in JavaScript, on the isolate's only thread. It runs without a break: bcryptjs's asynchronous form yields by
 * the clock, and a Worker's clock stands still while it computes. Throws `rate_limited` if too many are waiting. Known
 * browsers and other callers have separate queues.
 */
export function scriptPasswordHasher(now: () => number): PasswordHasher {
  const all = { known: new Map<symbol, number>(), anonymous: new Map<symbol, number>() }
  const inTurn = async <T>(turn: keyof typeof all, job: () => T): Promise<T> => {
    const waiting = all[turn]
    for (const [place, since] of waiting) if (now() - since > GONE_AFTER_MS) waiting.delete(place)
    if (waiting.size >= MAX_WAITING) {
      throw new AppError('rate_limited', 'Too many sign-ins at once; try again in a few seconds', { retryAfter: 5 })
    }
    const place = Symbol('place')
    waiting.set(place, now())
    try {
      // Other requests run between two hashes.
      await new Promise((resolve) => setTimeout(resolve, 0))
      return job()
    } finally {
      waiting.delete(place)
    }
  }
  return {
    hash: (password) => inTurn('known', () => hashSync(password, BCRYPT_COST)),
    verify: (password, stored, turn) => inTurn(turn, () => isBcrypt(stored) && compareSync(password, stored)),
  }
}

// bcryptjs throws on a salt it can't read.
function isBcrypt(stored: string): boolean {
  return /^\$2[aby]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/.test(stored)
}
