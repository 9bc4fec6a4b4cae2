import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { expect, test } from 'vitest'
import { lowerPoolPriority } from '../../src/node/pool-priority.ts'

test.runIf(process.platform === 'linux')('the pool works behind the event loop', async () => {
  const own = getPriority()
  await lowerPoolPriority()
  const tasks = readdirSync('/proc/self/task').map((thread) => ({
    name: readFileSync(`/proc/self/task/${thread}/comm`, 'utf8').trim(),
    priority: getPriority(Number(thread)),
  }))
  const pool = tasks.filter(({ name }) => name === 'libuv-worker')
  expect(pool.length).toBeGreaterThan(0)
  expect(new Set(pool.map(({ priority }) => priority))).toStrictEqual(new Set([15]))
  expect(getPriority()).toBe(own)
})
