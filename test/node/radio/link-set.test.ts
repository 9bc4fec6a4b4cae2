import { expect, test } from 'vitest'
import { createLinkSet } from '../../../src/node/radio/link-set.ts'

const wanted = (...all: readonly (readonly [name: string, key: string])[]) =>
  all.map(([name, key]) => ({ key, configured: { name } }))

function makeSet() {
  const log: string[] = []
  const set = createLinkSet(
    ({ name }: { readonly name: string }) => {
      if (name === 'bad') throw new Error('cannot be opened')
      log.push(`open ${name}`)
      return name
    },
    (name) => log.push(`close ${name}`),
  )
  return { set, log }
}

test('opens what is new, closes what is gone, and touches nothing else', () => {
  const { set, log } = makeSet()
  expect(set.want(wanted(['a', '1'], ['b', '1']))).toEqual({ made: ['a', 'b'], closed: [] })
  expect(set.want(wanted(['c', '1'], ['b', '2'], ['a', '1']))).toEqual({ made: ['c', 'b'], closed: ['b'] })
  expect(set.all()).toEqual(['c', 'b', 'a'])
  expect(log).toEqual(['open a', 'open b', 'close b', 'open c', 'open b'])
})

test('a new key that is only noted opens nothing', () => {
  const { set, log } = makeSet()
  set.want(wanted(['a', '1']))
  set.rekey('a', '2')
  expect(set.want(wanted(['a', '2']))).toEqual({ made: [], closed: [] })
  expect(log).toEqual(['open a'])
})

test('what was opened before another one failed is known, and is closed later', () => {
  const { set, log } = makeSet()
  expect(() => set.want(wanted(['a', '1'], ['bad', '1']))).toThrow('cannot be opened')
  expect(set.all()).toEqual(['a'])
  set.want([])
  expect(log).toEqual(['open a', 'close a'])
})
