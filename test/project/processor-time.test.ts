import { expect, test } from 'vitest'
import { limitProcessorTime, processorTime } from '../support/processor-time.ts'

test('work counts, and waiting for the machine does not', () => {
  const working = processorTime()
  while (processorTime() - working < 60);
  expect(() => limitProcessorTime(working, 50)).toThrow(/of processor time, more than 50 ms/)
  const waiting = processorTime()
  // Blocks the thread without work, as a machine does that runs something else.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
  expect(() => limitProcessorTime(waiting, 100)).not.toThrow()
})
