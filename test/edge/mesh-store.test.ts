import { afterAll, beforeAll } from 'vitest'
import type { Store } from '../../src/db/store.ts'
import { d1Store } from '../../src/edge/d1.ts'
import { meshStoreContract } from '../contract/mesh-store.ts'
import { textSearchContract } from '../contract/text-search.ts'
import { trafficHoursContract } from '../contract/traffic-hours.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

let workerd: Workerd | undefined
let store: Store | undefined

beforeAll(async () => {
  workerd = await openWorkerd({})
  store = d1Store(workerd.database)
})
afterAll(() => workerd?.close())

function opened(): Store {
  if (store === undefined) throw new Error('D1 did not start')
  return store
}

meshStoreContract('D1', opened)
textSearchContract('D1', opened, 8)
trafficHoursContract('D1', opened, 4)
