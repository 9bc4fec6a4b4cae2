import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { pass, serve } from './service.ts'
import { api, ApiError, ask, noteHeard, online, send, withoutReads } from '../../../src/web/api.ts'

const READ_MS = 30_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
  online.value = true
})

/** Rejects when the browser gives up. */
function untilAborted({ signal }: RequestInit): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
}

/** The code of the failure, once there is one. */
function codeOf(pending: Promise<unknown>): { readonly current: string | null } {
  const found: { current: string | null } = { current: null }
  pending.catch((error: unknown) => (found.current = error instanceof ApiError ? error.code : String(error)))
  return found
}

test('a read without an answer fails after its time; the service is only away if nothing else was heard', async () => {
  serve((_, init) => untilAborted(init))
  noteHeard()
  const alone = codeOf(ask(api.waypoints.$get()))
  await pass(READ_MS - 1)
  expect([alone.current, online.value]).toEqual([null, true])
  await pass(1)
  expect([alone.current, online.value]).toEqual(['offline', false])
  noteHeard()
  const beside = codeOf(ask(api.waypoints.$get()))
  await pass(10)
  noteHeard()
  await pass(READ_MS)
  expect([beside.current, online.value]).toEqual(['timeout', true])
})

test('the time includes the content of the answer', async () => {
  serve((_, { signal }) => {
    const body = new ReadableStream({
      start: (controller) => signal?.addEventListener('abort', () => controller.error(signal.reason)),
    })
    return new Response(body)
  })
  const found = codeOf(ask(api.waypoints.$get()))
  await pass(10)
  noteHeard()
  await pass(READ_MS)
  expect(found.current).toBe('timeout')
})

test('a write is sent once, and waits as long as it takes', async () => {
  const signals: unknown[] = []
  const answered = Promise.withResolvers<Response>()
  serve((_, { signal }) => {
    signals.push(signal ?? null)
    return answered.promise
  })
  const left = send(api.auth.logout.$post())
  await pass(20 * READ_MS)
  answered.resolve(Response.json({ logoutUrl: null }))
  expect((await left).status).toBe(200)
  expect(signals).toEqual([null])
})

test('the end of the session cuts off unanswered reads, and holds new ones; they fail with it', async () => {
  const asked: string[] = []
  serve((path, init) => {
    asked.push(path)
    return path === '/api/auth/status' ? Response.json({}) : untilAborted(init)
  })
  const before = codeOf(ask(api.waypoints.$get()))
  await pass(10)
  const ended = Promise.withResolvers<void>()
  const leaving = withoutReads(() => ended.promise)
  const meanwhile = codeOf(ask(api.tokens.$get()))
  await send(api.auth.status.$get())
  await pass(10)
  expect([before.current, meanwhile.current]).toEqual([null, null])
  ended.resolve()
  await leaving
  await pass(10)
  expect([before.current, meanwhile.current, online.value]).toEqual(['timeout', 'timeout', true])
  expect(asked).toEqual(['/api/waypoints', '/api/auth/status'])
})

test('reads go on if the session could not be ended', async () => {
  const asked: string[] = []
  serve((path, init) => {
    asked.push(path)
    return asked.length === 1 ? untilAborted(init) : Response.json({ path })
  })
  const before = ask(api.waypoints.$get())
  await pass(10)
  const ended = Promise.withResolvers<void>()
  const leaving = withoutReads(() => ended.promise)
  const meanwhile = ask(api.tokens.$get())
  ended.reject(new Error('unreachable'))
  await expect(leaving).rejects.toThrow('unreachable')
  expect(await Promise.all([before, meanwhile])).toEqual([{ path: '/api/waypoints' }, { path: '/api/tokens' }])
  expect(asked).toHaveLength(3)
})
