import { expect, it } from 'vitest'
import { createTelling } from '../../../src/node/radio/telling.ts'
import { START } from '../../support/app.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { heard, packet, text } from '../../support/mesh/mesh.ts'

it('reports the first batch of a flood at once, and ten times a second all that were stored since', () => {
  const clock = createManualClock(START)
  const told: number[] = []
  const telling = createTelling(clock, ({ batch }) => told.push(batch.length))
  const store = (count: number) =>
    telling.add({ news: [], batch: Array.from({ length: count }, () => heard(packet(text('x')))) })
  store(1)
  expect(told).toStrictEqual([1])
  store(2)
  clock.advance(50)
  store(3)
  clock.advance(49)
  expect(told).toStrictEqual([1])
  clock.advance(1)
  expect(told).toStrictEqual([1, 5])
  store(4)
  clock.advance(200)
  expect(told).toStrictEqual([1, 5, 4])
  store(6)
  store(7)
  telling.end()
  clock.advance(200)
  expect(told).toStrictEqual([1, 5, 4, 6, 7])
})
