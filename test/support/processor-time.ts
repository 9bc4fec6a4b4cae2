import { afterEach, beforeEach } from 'vitest'

/** The most that one unit test may take of the processor, in ms. The longest one takes a quarter of it. */
export const MAX_PROCESSOR_MS = 10_000

/** The processor time of this process so far, in ms. Each worker of the tests is a process that runs one test at a time. */
export function processorTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Throws if more than `limit` ms of processor time have passed since `begun`. */
export function limitProcessorTime(begun: number, limit: number): void {
  const used = Math.round(processorTime() - begun)
  if (used > limit) throw new Error(`the test took ${used} ms of processor time, more than ${limit} ms`)
}

// A busy machine makes a test wait, and that says nothing about the test: only its own work counts.
let begun = 0
beforeEach(() => {
  begun = processorTime()
})
afterEach(() => limitProcessorTime(begun, MAX_PROCESSOR_MS))
