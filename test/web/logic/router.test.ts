import { expect, test } from 'vitest'
import './page.ts'
import { queryNode, safeReturn } from '../../../src/web/router.ts'

test.each([
  ['/nodes', '/nodes'],
  ['/messages?channel=0', '/messages?channel=0'],
  ['/a/../nodes', '/nodes'],
  ['/login', '/'],
  ['/x/../login?returnTo=/nodes', '/'],
  [null, '/'],
  ['', '/'],
  ['nodes', '/'],
  ['//evil.example.org', '/'],
  ['/\\evil.example.org', '/'],
  ['/\t/evil.example.org', '/'],
  ['https://evil.example.org/nodes', '/'],
])('after signing in, %j leads to %s', (wanted, path) => {
  expect(safeReturn(wanted)).toBe(path)
})

test.each([
  ['!a0cb0001', '!a0cb0001'],
  ['!A0CB0001', '!a0cb0001'],
  ['!00000000', null],
  ['!ffffffff', null],
  ['!a0cb000', null],
  ['a0cb0001', null],
  ['!a0cb0001 ', null],
])('the address names %j as node %s', (text, id) => {
  expect(queryNode(new URLSearchParams({ node: text }), 'node')).toBe(id)
})

test('an invalid address names no node', () => {
  expect(queryNode(new URLSearchParams(), 'node')).toBeNull()
})
