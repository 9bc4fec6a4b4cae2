import { afterEach, expect, test } from 'vitest'
import './page.ts'
import {
  isCalled,
  nameOf,
  nameOfId,
  type Node,
  nodeName,
  nodes,
  precisionMeters,
  shortNameOf,
} from '../../../src/web/state/mesh.ts'

/** Only what tells how a node is called. */
function named(longName: string | null, shortName: string | null = null): Node {
  return Object({ nodeNum: 0xa0cb0001, nodeId: '!a0cb0001', longName, shortName })
}

afterEach(() => {
  nodes.value = null
})

test.each([
  ['Far Hill', 'Far Hill'],
  ['  Far Hill ', 'Far Hill'],
  ['Far\u202eHill\n', 'FarHill'],
  [' ', null],
  ['\u200b\u2066', null],
  ['', null],
  [null, null],
])('the long name %j is shown as %j', (longName, shown) => {
  const name = nodeName(named(longName))
  if (shown === null) expect(name).toMatch(/^.+ !a0cb0001$/)
  else expect(name).toBe(shown)
})

test('a node without a short name is called by the end of its id', () => {
  expect([shortNameOf(named('Far Hill', 'FH')), shortNameOf(named('Far Hill', '\u200b'))]).toStrictEqual(['FH', '0001'])
})

test.each(['far', 'fh', '!a0cb', String(0xa0cb0001)])('a search for %s finds the node', (wanted) => {
  expect(isCalled(named('Far Hill', 'FH'), wanted)).toBe(true)
  expect(isCalled(named('Near', 'N'), `${wanted}x`)).toBe(false)
})

test('a name follows the list of nodes; who is not in it is called by id', () => {
  expect(nameOfId('!a0cb0001')).toBe('!a0cb0001')
  nodes.value = [named('Far Hill')]
  expect([nameOfId('!a0cb0001'), nameOf(7, '!00000007')]).toStrictEqual(['Far Hill', '!00000007'])
  nodes.value = [named('Far Valley')]
  expect(nameOfId('!a0cb0001')).toBe('Far Valley')
})

test('a position of few bits lies somewhere in a cell; an exact one has none', () => {
  expect([precisionMeters(32), precisionMeters(null), precisionMeters(9)]).toStrictEqual([null, null, null])
  expect(precisionMeters(13)).toBeCloseTo(2918, 0)
  expect((precisionMeters(13) ?? 0) / (precisionMeters(14) ?? 1)).toBe(2)
})
