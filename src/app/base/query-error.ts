/**
 * The SQL of an error that Drizzle wraps around a driver's; null for any other error. Never log or send its message,
 * which ends with the bound values, such as hashes, addresses and names.
 */
export function failedQuery(error: Error): string | null {
  return 'params' in error && 'query' in error && typeof error.query === 'string' ? error.query : null
}
