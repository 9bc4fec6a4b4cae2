/**
 * The SQL of an error that Drizzle wraps around a driver's; null for any other error. Its message must go nowhere: it
 * ends with the values bound to the query, among them hashes, addresses and names.
 */
export function failedQuery(error: Error): string | null {
  return 'params' in error && 'query' in error && typeof error.query === 'string' ? error.query : null
}
