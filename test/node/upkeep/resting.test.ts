import { expect, test } from 'vitest'
import { startResting } from '../../../src/node/upkeep/resting.ts'
import { createManualClock } from '../../support/manual-clock.ts'

/** A service whose event loop works for a share of the time, by a clock of the test. */
function service(giveMs = 0) {
  const clock = createManualClock(0)
  let worked = 0
  let given = 0
  const giveBack = () => {
    worked += giveMs
    given++
  }
  const resting = startResting({ worked: () => worked, giveBack, clock })
  return {
    /** For this many seconds; returns how often memory was given back in them. */
    pass(seconds: number, share: number): number {
      const before = given
      for (let n = 0; n < seconds; n++) {
        worked += share * 1000
        clock.advance(1000)
      }
      return given - before
    },
    stop: resting.stop,
  }
}

test('memory is given back once when the service rests after its start and after work', () => {
  const { pass, stop } = service()
  expect(pass(6, 0.5)).toBe(0)
  expect(pass(6, 0)).toBe(1)
  expect(pass(600, 0)).toBe(0)
  expect(pass(60, 0.5)).toBe(0)
  expect(pass(6, 0.01)).toBe(1)
  stop()
  expect(pass(60, 0.5) + pass(60, 0)).toBe(0)
})

test('a service that always works a little gives back now and then', () => {
  const { pass } = service()
  expect(pass(6, 0)).toBe(1)
  expect(pass(30, 0.05)).toBe(0)
  expect(pass(60, 0.05)).toBeGreaterThan(0)
  expect(pass(60, 0.05)).toBeLessThan(3)
})

test('giving back that holds the service for long comes after more work and a longer rest', () => {
  const { pass } = service(100)
  expect(pass(6, 0)).toBe(1)
  // Three seconds of work, for which it would be done otherwise.
  expect(pass(6, 0.5) + pass(60, 0)).toBe(0)
  expect(pass(12, 0.5) + pass(24, 0)).toBe(0)
  // Somebody came.
  expect(pass(3, 0.5) + pass(24, 0)).toBe(0)
  expect(pass(12, 0)).toBe(1)
  const quick = service(25)
  expect(quick.pass(6, 0)).toBe(1)
  expect(quick.pass(6, 0.5) + quick.pass(6, 0)).toBe(1)
})
