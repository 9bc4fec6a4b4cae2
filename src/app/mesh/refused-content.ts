import { failedQuery } from '../query-error.ts'

const REFUSED = /SQLITE_(CONSTRAINT|TOOBIG|MISMATCH|RANGE)/

/** Whether it is the content that the database refuses: that would fail for ever, and hold up all that follows. */
export function isRefusedContent(error: unknown): boolean {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if (e instanceof TypeError || e instanceof RangeError) return true
    if ('code' in e && REFUSED.test(String(e.code))) return true
    // D1 has its codes at the end of its words; what Drizzle says ends with the content itself.
    if (failedQuery(e) === null && e.message.startsWith('D1_ERROR') && REFUSED.test(e.message)) return true
  }
  return false
}
