import { readTogether, type Store } from '../../../src/db/store.ts'
import { firstHour, trafficHours, trafficQueries } from '../../../src/app/system/traffic-hours.ts'

/** The last 24 clock hours, as in the dashboard. */
export async function readTrafficHours(store: Store, now: number) {
  const start = firstHour(now)
  const { messages, packets } = trafficQueries(store)
  const [said, logged] = await readTogether(store, { start }, [messages, packets])
  return trafficHours(start, said, logged)
}
