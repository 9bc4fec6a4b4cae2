import type { StoredSession } from '../../../src/app/accounts/sessions/store.ts'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createClient } from '@redis/client'
import { afterEach, expect, test } from 'vitest'
import { createLog } from '../../../src/app/base/log.ts'
import { redisSessions } from '../../../src/node/redis/sessions.ts'
import { createTestApp } from '../../support/app.ts'
import { freePort } from '../../support/servers/free-port.ts'
import { startRedis } from '../../support/servers/redis.ts'

const HOUR = 3_600_000

const endings: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

/** A log whose lines can be waited for. */
function watchedLog() {
  const lines: string[] = []
  const waiting: { text: string; seen: () => void }[] = []
  const log = createLog({
    level: 'debug',
    format: 'json',
    now: () => 0,
    write: (line) => {
      lines.push(line)
      for (const { text, seen } of waiting) if (line.includes(text)) seen()
    },
  })
  const seen = (text: string) => new Promise<void>((resolve) => waiting.push({ text, seen: resolve }))
  return { log, lines, seen }
}

async function redis(options?: Parameters<typeof startRedis>[0]) {
  const server = await startRedis(options)
  endings.push(() => server.stop())
  return server
}

async function opened(url: string, log = watchedLog().log, prefix = 'mesh:') {
  const sessions = await redisSessions(url, prefix, log)
  endings.push(() => sessions.close())
  return sessions.store
}

const session = (id: number, now: number): StoredSession => ({
  id,
  tokenHash: String(id).padStart(64, '0'),
  userId: 7,
  epoch: 0,
  createdAt: now,
  lastSeenAt: now,
  expiresAt: now + HOUR,
  ip: null,
  userAgent: null,
  oidcIssuer: null,
  authenticatedAt: null,
  factors: null,
  factorAt: null,
})

test('an unreachable server stops the start with one sentence that hides the password', async () => {
  const port = await freePort()
  const start = redisSessions(`redis://me:hunter2@127.0.0.1:${port}`, 'mesh:', watchedLog().log)
  await expect(start).rejects.toThrow(`Redis at 127.0.0.1:${port} can't be reached: connect ECONNREFUSED`)
  await expect(start).rejects.not.toThrow(/hunter2/)
})

test('a server that accepts the connection and stays silent stops the start too', async () => {
  const silent = createServer().listen(0, '127.0.0.1')
  endings.push(() => void silent.close())
  await once(silent, 'listening')
  silent.on('connection', (socket) => {
    socket.resume()
    endings.push(() => void socket.destroy())
  })
  const { port } = Object(silent.address())
  await expect(redisSessions(`redis://127.0.0.1:${port}`, 'mesh:', watchedLog().log)).rejects.toThrow(
    `Redis at 127.0.0.1:${port} can't be reached: no answer within 5000 ms`,
  )
})

test('a wrong password stops the start', async () => {
  const { port } = await redis({ args: ['--requirepass', 'right'] })
  const start = redisSessions(`redis://:hunter2@127.0.0.1:${port}`, 'mesh:', watchedLog().log)
  await expect(start).rejects.toThrow(/can't be reached: WRONGPASS/)
  await expect(start).rejects.not.toThrow(/hunter2/)
  expect(await (await opened(`redis://:right@127.0.0.1:${port}`)).find('x', 0)).toBeNull()
})

test('without its server every call fails at once as database_unavailable; when it is back all work again', async () => {
  const { log, seen, lines } = watchedLog()
  const server = await redis()
  const store = await opened(server.url, log)
  await store.insert(session(1, 1000))
  const noticed = seen('Redis does not answer')
  await server.stop()
  await noticed
  const calls = [
    () => store.find(session(1, 0).tokenHash, 0),
    () => store.insert(session(2, 1000)),
    () => store.extend('x', 0, 0),
    () => store.remove('x'),
    () => store.removeForUser(7),
    () => store.list(7, 0),
    () => store.hit('k', HOUR, 0),
    () => store.forgive('k', 'one'),
    async () => store.probe?.(),
  ]
  for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'database_unavailable' })
  const again = seen('Redis answers again')
  await redis({ port: server.port })
  await again
  await store.insert(session(3, 1000))
  expect(await store.list(7, 1000)).toStrictEqual([session(3, 1000)])
  expect(lines.filter((line) => line.includes('Redis does not answer'))).toHaveLength(1)
})

test('two services count together and see the same sessions', async () => {
  const { url } = await redis()
  const [one, two] = [await opened(url), await opened(url)]
  const counts = await Promise.all(
    Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? one : two).hit('login:account:anna', HOUR, 5)),
  )
  expect(new Set(counts.map(({ count }) => count)).size).toBe(50)
  await one.insert(session(1, 5))
  await two.removeForUser(7)
  expect(await one.find(session(1, 5).tokenHash, 5)).toBeNull()
})

test('two services with different prefixes do not see each other', async () => {
  const { url } = await redis()
  const [one, two] = [await opened(url), await opened(url, watchedLog().log, 'club:')]
  await one.insert(session(1, 5))
  await one.hit('k', HOUR, 5)
  expect(await two.find(session(1, 5).tokenHash, 5)).toBeNull()
  expect(await two.list(7, 5)).toStrictEqual([])
  expect(await two.hit('k', HOUR, 5)).toMatchObject({ count: 1 })
  expect(await two.removeForUser(7)).toBe(0)
  await two.clear('')
  expect(await one.hit('k', HOUR, 5)).toMatchObject({ count: 2 })
  expect(await one.list(7, 5)).toHaveLength(1)
})

test('health reports that the session store is down, and that it is back', async () => {
  const { log, seen } = watchedLog()
  const server = await redis()
  const app = await createTestApp({ ports: { sessions: await opened(server.url, log) } })
  endings.push(() => app.close())
  const health = async () => {
    // An answer is cached for a second.
    app.clock.advance(1000)
    const answer = await app.request('/api/health')
    return [answer.status, await answer.json()]
  }
  const ready = async () => Object(await (await app.request('/api/ready')).json())
  expect(await health()).toStrictEqual([200, { status: 'ok', uptime: 1 }])
  const noticed = seen('Redis does not answer')
  await server.stop()
  await noticed
  expect(await health()).toStrictEqual([503, { status: 'error', uptime: 2, unavailable: 'session store' }])
  expect(await ready()).toStrictEqual({ status: 'unready', reason: 'session store' })
  const again = seen('Redis answers again')
  await redis({ port: server.port })
  await again
  expect(await health()).toStrictEqual([200, { status: 'ok', uptime: 3 }])
  expect(await ready()).toStrictEqual({ status: 'ready' })
})

test('all keys expire by themselves, and the index of a user drops expired ones', async () => {
  const { url } = await redis()
  const store = await opened(url)
  const raw = await createClient({ url }).connect()
  endings.push(() => raw.destroy())
  for (const id of [1, 2, 3]) await store.insert(session(id, 1000))
  await store.hit('k', HOUR, 1000)
  for (const key of await raw.keys('*')) expect(await raw.pTTL(key), key).toBeGreaterThan(HOUR - 60_000)
  expect((await raw.keys('*')).toSorted().map((key) => key.replace(/0{50,}/, ''))).toStrictEqual([
    'mesh:attempts:k',
    'mesh:session:1',
    'mesh:session:2',
    'mesh:session:3',
    'mesh:user:7',
  ])
  await raw.del(`mesh:session:${session(1, 0).tokenHash}`)
  await store.list(7, 1000)
  expect(await raw.sCard('mesh:user:7')).toBe(2)
  await raw.del(`mesh:session:${session(2, 0).tokenHash}`)
  await store.insert(session(4, 1000))
  expect(await raw.sCard('mesh:user:7')).toBe(2)
  await store.extend(session(4, 0).tokenHash, 1000, 1000 + 3 * HOUR)
  expect(await raw.pTTL('mesh:user:7')).toBeGreaterThan(2 * HOUR)
  await store.remove(session(3, 0).tokenHash)
  await store.removeForUser(7)
  expect(await raw.keys('mesh:[su]*')).toStrictEqual([])
})
