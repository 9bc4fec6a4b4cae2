import { expect, test } from 'vitest'
import { isNewer } from '../../../../src/app/system/status/version-order.ts'

/** The examples of semver.org, 11, in ascending order. */
const ASCENDING = [
  '0.9.9',
  '1.0.0-alpha',
  '1.0.0-alpha.1',
  '1.0.0-alpha.beta',
  '1.0.0-beta',
  '1.0.0-beta.2',
  '1.0.0-beta.11',
  '1.0.0-rc.1',
  '1.0.0',
  '1.0.1',
  '1.10.0',
  '2.0.0',
  '2.1.0',
  '2.1.1',
]

test('versions have the order of semver.org', () => {
  for (const [i, a] of ASCENDING.entries()) {
    for (const [j, b] of ASCENDING.entries()) expect([a, b, isNewer(a, b)]).toStrictEqual([a, b, i > j])
  }
})

test('a build changes nothing, and what is no version is never newer', () => {
  expect(isNewer('1.0.0+2', '1.0.0+1')).toBe(false)
  for (const text of [
    '',
    '2',
    '2.0',
    'v2.0.0',
    '2.0.0.0',
    '02.0.0',
    '2.0.0-',
    '2.0.0 ',
    'latest',
    `${'9'.repeat(20)}.0.0`,
  ]) {
    expect([text, isNewer(text, '1.0.0')]).toStrictEqual([text, false])
    expect([text, isNewer('1.0.0', text)]).toStrictEqual([text, false])
  }
})
