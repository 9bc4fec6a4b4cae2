import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Rows that are read between two collections: a few megabytes of short-lived objects. */
const ROWS_AT_ONCE = 5000

/**
 * Call it for each row of a large table. Node lets short-lived objects grow to 100 MB before it removes them, which
 * only flags at its start could change.
 */
export function createRelief(): () => void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  let rows = 0
  return () => {
    rows++
    if (rows % ROWS_AT_ONCE === 0 && typeof collect === 'function') collect({ type: 'minor' })
  }
}
