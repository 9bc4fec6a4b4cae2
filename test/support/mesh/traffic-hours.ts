import { readTogether, type Store } from '../../../src/db/store.ts'
import { type View, visibleValues, WHOLE_VIEW } from '../../../src/app/accounts/access/visible.ts'
import { firstHour, trafficHours, trafficQueries } from '../../../src/app/system/dashboard/traffic-hours.ts'

/** The last 24 clock hours, as in the dashboard. */
export async function readTrafficHours(store: Store, now: number, view: View = WHOLE_VIEW) {
  const start = firstHour(now)
  const { messages, begun, leftOut } = trafficQueries(store, view)
  const values = { start, now, ...visibleValues(view) }
  const [said, first, without] = await readTogether(store, values, [messages, begun, leftOut])
  return trafficHours(start, view, { messages: said, begun: first, leftOut: without })
}
