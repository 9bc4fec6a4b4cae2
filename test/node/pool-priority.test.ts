import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { expect, test } from 'vitest'
import { lowerPoolPriority } from '../../src/node/pool-priority.ts'

test.runIf(process.platform === 'linux')('the pool works behind the event loop', async () => {
  const own = getPriority()
  await lowerPoolPriority()
  const pool = readdirSync('/proc/self/task').filter((thread) => nameOf(thread) === 'libuv-worker')
  expect(pool.length).toBeGreaterThan(0)
  // Nobody is let forward who was behind already.
  expect(new Set(pool.map((thread) => getPriority(Number(thread))))).toStrictEqual(new Set([Math.max(15, own)]))
  expect(getPriority()).toBe(own)
})

/** Null for a thread that has ended meanwhile. */
function nameOf(thread: string): string | null {
  try {
    return readFileSync(`/proc/self/task/${thread}/comm`, 'utf8').trim()
  } catch {
    return null
  }
}
