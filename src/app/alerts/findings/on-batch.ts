import type { Store } from '../../../db/store.ts'
import type { OnBatch } from '../../mesh/ingest/on-batch.ts'
import { type Changed, readChanging, settleChanged } from './changed.ts'
import { alertsOfBatch } from './heard.ts'

/** Alerts about the contents of a batch are stored with it; alerts about its changes, right after it. */
export const alertsOnBatch: OnBatch = async (store, batch) => {
  const heard = await alertsOfBatch(store, batch)
  const changing = await readChanging(store, batch.plan)
  return {
    statements: heard.statements,
    stored: async () => [...heard.owners, ...(await settleStored(store, changing, batch.now))],
  }
}

/** The batch is stored, even if this fails: the run of each minute catches up. */
async function settleStored(store: Store, changed: Changed, now: number): Promise<readonly number[]> {
  try {
    return await settleChanged(store, changed, now)
  } catch {
    return []
  }
}
