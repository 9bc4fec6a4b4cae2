import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { held, mountHook, pass } from './service.ts'
import { ApiError, online, reconnects } from '../../../src/web/api.ts'
import { useAction, useLoad } from '../../../src/web/state/load.ts'

const document: EventTarget & { visibilityState: string } = Object(globalThis).document
const unmounts: (() => void)[] = []

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  for (const unmount of unmounts.splice(0)) unmount()
  document.visibilityState = 'visible'
  online.value = true
  vi.useRealTimers()
})

function mount<T>(hook: () => T): () => T {
  const { current, unmount } = mountHook(hook)
  unmounts.push(unmount)
  return current
}

const failure = (code: string) => new ApiError(code === 'offline' ? 0 : 403, code, '', {}, null)

/** Loads that are answered one by one, in any order. */
function createLoads() {
  const loads: ReturnType<typeof held<string>>[] = []
  const load = () => {
    const next = held<string>()
    loads.push(next)
    return next.promise
  }
  return { loads, load }
}

test('of two answers the one requested later counts, whichever arrives first', async () => {
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const { loads, load } = createLoads()
    const loaded = mount(() => useLoad(load, []))
    await pass(100)
    void loaded().reload()
    expect(loads).toHaveLength(2)
    for (const n of order) {
      loads[n]?.resolve(`answer ${n}`)
      await pass(0)
      expect(loaded().data.value).not.toBe('answer 0')
    }
    expect([loaded().data.value, loaded().busy.value]).toStrictEqual(['answer 1', false])
  }
})

test('a failure of an earlier request is not shown beside a later answer', async () => {
  const { loads, load } = createLoads()
  const loaded = mount(() => useLoad(load, []))
  await pass(100)
  void loaded().reload()
  loads[1]?.resolve('later')
  loads[0]?.reject(failure('forbidden'))
  await pass(0)
  expect([loaded().data.value, loaded().error.value]).toStrictEqual(['later', null])
})

test('old data stays while the service is away; a refusal is shown beside it until an answer comes', async () => {
  const { loads, load } = createLoads()
  const loaded = mount(() => useLoad(load, []))
  await pass(100)
  const answerWith = async (settle: (last: ReturnType<typeof held<string>> | undefined) => void) => {
    void loaded().reload()
    settle(loads.at(-1))
    await pass(0)
    return [loaded().data.value, loaded().error.value?.code ?? null]
  }
  expect(await answerWith((last) => last?.reject(failure('offline')))).toStrictEqual([null, 'offline'])
  expect(await answerWith((last) => last?.resolve('here'))).toStrictEqual(['here', null])
  expect(await answerWith((last) => last?.reject(failure('offline')))).toStrictEqual(['here', null])
  expect(await answerWith((last) => last?.reject(failure('forbidden')))).toStrictEqual(['here', 'forbidden'])
  expect(await answerWith((last) => last?.resolve('again'))).toStrictEqual(['again', null])
})

test('an answer for a page that was left changes nothing', async () => {
  const { loads, load } = createLoads()
  const { current, unmount } = mountHook(() => useLoad(load, [], 1000))
  await pass(100)
  const { data } = current()
  unmount()
  await pass(100)
  loads[0]?.resolve('too late')
  await pass(60_000)
  expect([data.value, loads.length]).toStrictEqual([null, 1])
})

test('it reloads at intervals while the page is visible and the service answers, and after an outage', async () => {
  let asked = 0
  mount(() => useLoad(async () => ++asked, [], 4000))
  await pass(100)
  expect(asked).toBe(1)
  await pass(8000)
  expect(asked).toBe(3)
  online.value = false
  await pass(8000)
  expect(asked).toBe(3)
  online.value = true
  reconnects.value++
  await pass(100)
  expect(asked).toBe(4)
  document.visibilityState = 'hidden'
  await pass(20_000)
  expect(asked).toBe(4)
  document.visibilityState = 'visible'
  document.dispatchEvent(new Event('visibilitychange'))
  await pass(0)
  expect(asked).toBe(5)
})

test('a page opened after an outage sends one request, like any other', async () => {
  reconnects.value++
  const { loads, load } = createLoads()
  mount(() => useLoad(load, []))
  await pass(100)
  expect(loads).toHaveLength(1)
})

test('an action runs once at a time, and its failure is shown until the next one', async () => {
  const { loads, load } = createLoads()
  const action = mount(() => useAction())
  const work = async () => void (await load())
  const first = action().run(work)
  expect(await action().run(work)).toBe(false)
  expect([loads.length, action().busy.value]).toStrictEqual([1, true])
  loads[0]?.reject(failure('forbidden'))
  expect(await first).toBe(false)
  expect([action().busy.value, action().error.value?.code]).toStrictEqual([false, 'forbidden'])
  const second = action().run(work)
  expect(action().error.value).toBeNull()
  loads[1]?.resolve('')
  expect(await second).toBe(true)
})
