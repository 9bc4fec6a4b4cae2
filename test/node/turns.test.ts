import { expect, test } from 'vitest'
import { giveTurnsBy, nextTurn } from '../../src/app/base/pacing/next-turn.ts'
import { oneEachRound } from '../../src/node/turns.ts'

/** As long as a slice at least takes. */
function work(): void {
  const end = performance.now() + 2
  while (performance.now() < end);
}

test('of several loops one goes on at a time: between any two slices others have their turn', async () => {
  giveTurnsBy(oneEachRound())
  const order: string[] = []
  let isOver = false
  const beside = () => {
    order.push('others')
    if (!isOver) setImmediate(beside)
  }
  const loop = async (name: string) => {
    for (let slice = 0; slice < 10; slice++) {
      await nextTurn()
      order.push(name)
      work()
    }
  }
  beside()
  await Promise.all(['first', 'second', 'third'].map(loop))
  isOver = true
  const slices = order.flatMap((who, at) => (who === 'others' ? [] : [{ who, next: order[at + 1] }]))
  expect(slices.map(({ who }) => who)).toStrictEqual(
    Array.from({ length: 10 }, () => ['first', 'second', 'third']).flat(),
  )
  expect(slices.slice(0, -1).filter(({ next }) => next !== 'others')).toStrictEqual([])
})
