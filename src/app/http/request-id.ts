let prefix: string | null = null
let count = 0

/**
 * A UUID of version 8 (RFC 9562, section 5.8): 74 random bits that identify this process or isolate, then the number of
 * the request. Unique, but not secret: fresh random bits for each request would cost as much as the rest of a cheap
 * one.
 */
export function newRequestId(): string {
  // Not at the start: workerd has no random bits before the first request.
  prefix ??= crypto
    .randomUUID()
    .slice(0, 24)
    .replace(/-4(?=...-.{4}-$)/, '-8')
  count++
  return prefix + count.toString(16).padStart(12, '0')
}
