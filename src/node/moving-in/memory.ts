import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Rows that are read between two collections of the youngest objects, and between two of all. */
const ROWS_AT_ONCE = 5000
const ROWS_TO_ALL = 50_000

/**
 * Call it for each row of a large table. Node lets objects that are no longer used grow to hundreds of megabytes before
 * it removes them, which only flags at its start could change.
 */
export function createRelief(): () => void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  let rows = 0
  return () => {
    rows++
    if (rows % ROWS_AT_ONCE !== 0 || typeof collect !== 'function') return
    if (rows % ROWS_TO_ALL === 0) collect()
    else collect({ type: 'minor' })
  }
}
