import { failedQuery } from '../../http/query-error.ts'

const REFUSED = /SQLITE_(CONSTRAINT|TOOBIG|MISMATCH|RANGE)/

/** The content itself cannot be understood: a fault of this program, which the same content meets each time. */
class UnreadableContent extends Error {
  override name = 'UnreadableContent'
}

/** Throws, whatever `read` throws, what `isRefusedContent` knows. */
export function readContent<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new UnreadableContent('What was heard cannot be read', { cause: error })
  }
}

/**
 * Whether it is the content that is refused, by what reads it or by the database: that would fail for ever, and hold up
 * all that follows. A database that is closed or away is none of it, whatever kind of error it throws.
 */
export function isRefusedContent(error: unknown): boolean {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if (e instanceof UnreadableContent) return true
    if ('code' in e && REFUSED.test(String(e.code))) return true
    // D1 has its codes at the end of its words; what Drizzle says ends with the content itself.
    if (failedQuery(e) === null && e.message.startsWith('D1_ERROR') && REFUSED.test(e.message)) return true
  }
  return false
}
