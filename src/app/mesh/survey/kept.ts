import { survey } from '../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { ownedBy } from '../../base/owned.ts'

const queries = prepareOnce((db) => ({ version: db.select({ version: survey.version }).from(survey).prepare() }))

/**
 * Keeps the results of `make` while the survey stays as it is, for those who ask with the same key; those who ask
 * meanwhile wait for the same one. The key must name everything that the result depends on beside the survey. At most
 * `places` are kept.
 */
export function keepSurveyed<T>(places: number) {
  const states = ownedBy((_db: Db) => ({ version: -1, made: new Map<string, Promise<T>>() }))
  return async (store: Store, key: string, make: () => Promise<T>): Promise<T> => {
    const version = (await queries(store).version.get())?.version ?? 0
    const state = states(store.db)
    if (state.version !== version) Object.assign(state, { version, made: new Map() })
    const { made } = state
    const known = made.get(key)
    if (known !== undefined) return known
    const [oldest] = made.keys()
    if (made.size >= places && oldest !== undefined) made.delete(oldest)
    const fresh = make()
    if (store.batch === undefined) {
      made.set(key, fresh)
      fresh.catch(() => made.delete(key))
    } else {
      // The edge may drop a request at any time: nobody waits for the work of another one.
      made.set(key, Promise.resolve(await fresh))
    }
    return fresh
  }
}
