import { afterEach, beforeEach, expect, test } from 'vitest'
import { giveTurnsBy, nextTurn } from '../../../src/app/base/pacing/next-turn.ts'
import { startJob } from '../../../src/node/upkeep/upkeep.ts'
import { oneEachRound } from '../../../src/node/turns.ts'
import { createTestApp, START, type TestApp } from '../../support/app.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { until } from '../../support/radio/service.ts'

const MINUTE = 60_000

let app: TestApp
let clock: ReturnType<typeof createManualClock>
let upkeep: ReturnType<typeof startJob>
/** Functions that end the runs, in the order in which they began. */
let ends: ((error?: Error) => void)[]

beforeEach(async () => {
  app = await createTestApp()
  clock = createManualClock(START)
  ends = []
  const job = () =>
    new Promise<void>((resolve, reject) => {
      ends.push((error) => (error === undefined ? resolve() : reject(error)))
    })
  upkeep = startJob(app.ports, { name: 'Something', job, everyMs: 10 * MINUTE, clock })
})
afterEach(() => app.close())

/** The first run. */
async function begin(): Promise<void> {
  clock.advance(MINUTE)
  await until(() => expect(ends).toHaveLength(1))
}

test('a run that takes longer than its interval does not overlap with the next one', async () => {
  await begin()
  clock.advance(60 * MINUTE)
  await nextTurn()
  expect(ends).toHaveLength(1)
  ends[0]?.()
  await until(() => {
    clock.advance(MINUTE)
    expect(ends).toHaveLength(2)
  })
})

test('a failed run is logged, and followed by another one', async () => {
  await begin()
  ends[0]?.(new Error('disk is full'))
  await until(() => expect(app.logged.join('\n')).toContain('Something failed'))
  await until(() => {
    clock.advance(MINUTE)
    expect(ends).toHaveLength(2)
  })
})

test('stopping waits for the run under way and starts no other', async () => {
  await begin()
  let isStopped = false
  const stopped = upkeep.stop().then(() => (isStopped = true))
  await Promise.resolve()
  expect(isStopped).toBe(false)
  ends[0]?.()
  await stopped
  clock.advance(60 * MINUTE)
  expect(ends).toHaveLength(1)
})

test('jobs that are due at once begin one in each round of the event loop, and none once it is stopped', async () => {
  let round = 0
  const count = () => {
    round++
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  giveTurnsBy(oneEachRound())
  try {
    const begun: number[] = []
    const job = async () => void begun.push(round)
    const jobs = Array.from({ length: 4 }, () => startJob(app.ports, { name: 'Due', job, everyMs: 10 * MINUTE, clock }))
    clock.advance(MINUTE)
    expect(begun).toStrictEqual([])
    await jobs[3]?.stop()
    await until(() => expect(begun).toHaveLength(3))
    expect(new Set(begun).size).toBe(3)
    await Promise.all(jobs.map((each) => each.stop()))
    expect(begun).toHaveLength(3)
  } finally {
    clearImmediate(counting)
    giveTurnsBy((go) => setTimeout(go, 0))
  }
})

test('a job rests while it is held, also in the middle, and goes on a minute later; for an hour at most', async () => {
  let isHeld = true
  const goesOn: boolean[] = []
  const job = async (_: unknown, pause: () => Promise<boolean>) => {
    goesOn.push(await pause())
    isHeld = true
    goesOn.push(await pause())
  }
  const held = startJob(app.ports, { name: 'Something', job, everyMs: 10 * MINUTE, isHeld: () => isHeld, clock })
  const runs = () => goesOn.length / 2
  const pass = async (minutes: number) => {
    for (let n = 0; n < minutes; n++) {
      clock.advance(MINUTE)
      // A run has its own turn. Its end starts the timer of the next one.
      await nextTurn()
    }
  }
  await pass(3)
  expect(runs()).toBe(0)
  isHeld = false
  await pass(1)
  await until(() => expect(goesOn).toEqual([true, false]))
  await pass(10)
  expect(runs()).toBe(1)
  await pass(60)
  // Nothing stops it in the middle now.
  await until(() => expect(goesOn).toEqual([true, false, true, true]))
  await held.stop()
})
