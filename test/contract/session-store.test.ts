import { createClient } from '@redis/client'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { databaseSessions } from '../../src/app/accounts/sessions/database-sessions.ts'
import { memorySessions } from '../../src/app/accounts/sessions/memory-sessions.ts'
import { memoryBuckets } from '../../src/app/http/limits/buckets.ts'
import { createLog } from '../../src/app/base/log.ts'
import { redisSessions } from '../../src/node/redis/sessions.ts'
import { type RedisServer, startRedis } from '../support/servers/redis.ts'
import { bucketContract } from './buckets.ts'
import { sessionStoreContract } from './session-store.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const endings: (() => void | Promise<void>)[] = []
let redis: RedisServer

beforeAll(async () => {
  redis = await startRedis()
})
afterEach(async () => {
  for (const end of endings.splice(0)) await end()
})
afterAll(() => redis.stop())

sessionStoreContract('database', () => {
  const store = openMemoryStore()
  endings.push(() => store.close())
  return databaseSessions(store)
})

sessionStoreContract('memory', memorySessions)

bucketContract('memory', memoryBuckets)

async function openRedis() {
  const log = createLog({ level: 'debug', format: 'json', now: () => 0, write: () => {} })
  const sessions = await redisSessions(redis.url, 'mesh:', log)
  endings.push(async () => {
    await sessions.close()
    const client = await createClient({ url: redis.url }).connect()
    await client.flushAll()
    client.destroy()
  })
  return sessions
}

sessionStoreContract('redis', async () => (await openRedis()).store)

bucketContract('redis', async () => (await openRedis()).buckets)
