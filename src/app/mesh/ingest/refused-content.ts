import { failedQuery } from '../../base/query-error.ts'

const REFUSED = /SQLITE_(CONSTRAINT|TOOBIG|MISMATCH|RANGE)/

/** The content itself cannot be read. Retrying would always fail. */
class UnreadableContent extends Error {
  override name = 'UnreadableContent'
}

/** Throws an error that `isRefusedContent` recognises, whichever error `read` throws. */
export function readContent<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new UnreadableContent('What was heard cannot be read', { cause: error })
  }
}

/**
 * Whether the parser or the database refused the content itself. Such an item would fail forever and block all later
 * ones. A closed or unreachable database does not count, whichever error it throws.
 */
export function isRefusedContent(error: unknown): boolean {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if (e instanceof UnreadableContent) return true
    if ('code' in e && REFUSED.test(String(e.code))) return true
    // D1 puts its codes at the end of its messages; Drizzle's messages end with the content itself.
    if (failedQuery(e) === null && e.message.startsWith('D1_ERROR') && REFUSED.test(e.message)) return true
  }
  return false
}
