import { afterAll, beforeAll } from 'vitest'
import { databaseSessions } from '../../src/app/accounts/sessions/database-sessions.ts'
import type { Store } from '../../src/db/store.ts'
import { d1Store } from '../../src/edge/d1.ts'
import { sessionStoreContract } from '../contract/session-store.ts'
import { storeContract } from '../contract/store.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

let workerd: Workerd | undefined
let store: Store | undefined

beforeAll(async () => {
  workerd = await openWorkerd({})
  store = d1Store(workerd.database)
})
afterAll(() => workerd?.close())

storeContract('D1', () => opened(store))

sessionStoreContract('database on D1', async () => {
  await opened(workerd).sql('delete from sessions')
  await opened(workerd).sql('delete from rate_limits')
  return databaseSessions(opened(store))
})

function opened<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('D1 did not start')
  return value
}
