import type { PasswordHasher } from '../app/accounts/passwords/hasher.ts'
import { availableParallelism } from 'node:os'
import { compare, hash } from '@node-rs/bcrypt'
import { BCRYPT_COST } from '../app/accounts/passwords/passwords.ts'
import { AppError } from '../app/http/errors.ts'

/** One core stays free for the event loop, and one thread of four in Node's pool for the flushes of the disk. */
const AT_ONCE = Math.min(3, Math.max(1, availableParallelism() - 1))

/** If this many are waiting, the answer is 429. Each waits a quarter of a second for the one before it. */
const MAX_WAITING = 32

/**
 * bcrypt in the native thread pool, a few at a time. Throws `rate_limited` when too many are waiting.
 * Decision: docs/decisions/bcrypt-on-node.md
 */
export function nativePasswordHasher(): PasswordHasher {
  const gate = createGate(AT_ONCE, MAX_WAITING)
  return {
    mayWait: true,
    hash: (password) => gate(() => hash(password, BCRYPT_COST), 'known'),
    verify: (password, stored, turn) => gate(() => compare(password, stored).catch(() => false), turn),
  }
}

/**
 * Runs at most `atOnce` jobs at a time. At most `mostWaiting` known and as many unknown callers wait. Known callers go
 * first, so that unknown ones cannot keep them out, however many there are.
 */
export function createGate(atOnce: number, mostWaiting: number) {
  let running = 0
  const queues = { known: new Array<() => void>(), anonymous: new Array<() => void>() }
  return async <T>(job: () => Promise<T>, turn: keyof typeof queues): Promise<T> => {
    if (running >= atOnce) {
      const waiting = queues[turn]
      if (waiting.length >= mostWaiting) {
        throw new AppError('rate_limited', 'Too many sign-ins at once; try again in a few seconds', { retryAfter: 5 })
      }
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else running++
    try {
      return await job()
    } finally {
      const next = queues.known.shift() ?? queues.anonymous.shift()
      if (next === undefined) running--
      else next()
    }
  }
}
