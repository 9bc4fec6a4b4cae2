import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { isObject, nest, valueAt } from '../../src/shared/nested.ts'

it('nests values by their paths, in their order', () => {
  const nested = nest<unknown>([
    ['role', 'ROUTER'],
    ['ipv4Config.ip', '192.0.2.1'],
    ['ipv4Config.dns.first', [9, 9]],
    ['rsyslog', ''],
    ['ipv4Config.gateway', null],
  ])
  expect(nested).toStrictEqual({
    role: 'ROUTER',
    ipv4Config: { ip: '192.0.2.1', dns: { first: [9, 9] }, gateway: null },
    rsyslog: '',
  })
  expect(Object.keys(nested)).toStrictEqual(['role', 'ipv4Config', 'rsyslog'])
  expect(nest([])).toStrictEqual({})
})

it('the later stays of a value and one below it, and no value is changed', () => {
  const value = { b: 1 }
  const below = [
    ['a', value],
    ['a.c', 2],
  ] as const
  expect(nest<unknown>(below)).toStrictEqual({ a: { c: 2 } })
  expect(nest<unknown>([...below].toReversed())).toStrictEqual({ a: { b: 1 } })
  expect(value).toStrictEqual({ b: 1 })
})

it.each(['__proto__', '__proto__.isAdmin', 'constructor.prototype.isAdmin', 'a.__proto__.isAdmin', 'toString.isAdmin'])(
  'the path %s changes nothing that other objects inherit',
  (path) => {
    const nested = nest<unknown>([
      [path, { isAdmin: true }],
      [`a.${path}`, 1],
    ])
    expect('isAdmin' in {}).toBe(false)
    expect(Object.getPrototypeOf(nested)).toBe(Object.prototype)
    expect(Object.getPrototypeOf(nested['a'])).toBe(Object.prototype)
    expect('isAdmin' in nested).toBe(false)
    expect(valueAt(nested, `a.${path}`)).toBe(1)
    expect(valueAt({ a: {} }, path)).toBeUndefined()
  },
)

it('each value is at its path, unless another is there or below', () => {
  const step = fc.constantFrom('a', 'b', '__proto__', 'constructor')
  const path = fc.array(step, { minLength: 3, maxLength: 3 }).map((steps) => steps.join('.'))
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(path, fc.integer()), { selector: ([each]) => each }), (values) => {
      const nested = nest(values)
      for (const [each, value] of values) expect(valueAt(nested, each)).toBe(value)
    }),
  )
})

it('only objects have members', () => {
  expect([{}, Object.create(null)].every(isObject)).toBe(true)
  expect([[], null, undefined, 'text', 1].some(isObject)).toBe(false)
  expect(valueAt({ list: ['first'], text: 'text' }, 'list.0')).toBeUndefined()
  expect(valueAt({ list: [], text: 'text' }, 'text.length')).toBeUndefined()
})
