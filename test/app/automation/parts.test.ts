import { describe, expect, test } from 'vitest'
import { cronProblem } from '../../../src/app/automation/cron.ts'
import { matches, matchesWildcards } from '../../../src/app/automation/kinds/matcher.ts'
import { MATCH_MODES } from '../../../src/shared/automation/rules.ts'
import { render } from '../../../src/app/automation/template.ts'
import { timeOnAirMs } from '../../../src/meshtastic/airtime.ts'
import { countTextBytes } from '../../../src/meshtastic/link/to-radio.ts'
import { ANSWER_TOKENS, TOKENS, widestText } from '../../../src/shared/automation/tokens.ts'

describe('matching', () => {
  test.each([
    ['exact', 'ping', ['ping', ' PING '], ['ping!', 'a ping']],
    ['prefix', 'ping', ['ping', 'Ping me', 'ping!'], ['pinging', 'a ping', '']],
    ['prefix', 'test 1', ['test 1 2', 'Test 1'], ['test 12']],
    [
      'word',
      'ping',
      ['ping', 'a Ping, please', '(ping)', 'ping-pong', 'pinging? ping!'],
      ['pinging', 'sping', 'ping_1'],
    ],
    ['word', 'größe', ['GRÖSSE Größe', 'die GRÖßE?'], ['größer']],
    ['word', '日本', ['日本', '"日本"'], ['日本語']],
    ['word', '👍', ['👍', 'ok 👍!'], ['ok']],
    ['contains', 'ing', ['pinging', 'ING'], ['png']],
    ['wildcard', 'p?ng*', ['ping', 'PONG me', 'pings'], ['png', 'a ping']],
    ['wildcard', '*test*', ['a test it is', 'test'], ['tes']],
    ['wildcard', '?', ['👍', 'x'], ['xx', '']],
    ['wildcard', 'a.c[x]', ['a.c[x]'], ['abcx']],
  ] as const)('mode "%s" with %s matches %j but not %j', (mode, word, heard, unheard) => {
    for (const text of heard) expect(matches({ mode, words: ['nothing', word] }, text), text).toBe(true)
    for (const text of unheard) expect(matches({ mode, words: ['nothing', word] }, text), text).toBe(false)
  })

  test('wildcards take at most as many steps as both lengths multiplied', () => {
    const counted = (text: string) => {
      const characters = Array.from(text)
      const count = { reads: 0 }
      const reading = new Proxy(characters, {
        get(target, key, receiver) {
          if (typeof key === 'string' && /^\d+$/.test(key)) count.reads += 1
          return Reflect.get(target, key, receiver)
        },
      })
      return { reading, count }
    }
    for (const pattern of ['*a'.repeat(32), `${'*'.repeat(63)}b`, `${'a*'.repeat(31)}ab`, '?*'.repeat(32)]) {
      const { reading, count } = counted('a'.repeat(256))
      matchesWildcards(Array.from(pattern), reading)
      expect(count.reads, pattern).toBeLessThanOrEqual(pattern.length * 256)
    }
  })

  test('in every mode a text is examined only up to the length of a packet', () => {
    for (const mode of MATCH_MODES) {
      expect(matches({ mode, words: ['needle'] }, `${'hay '.repeat(1000)}needle`), mode).toBe(false)
    }
    expect(matches({ mode: 'wildcard', words: ['*'.repeat(64)] }, 'x'.repeat(1_000_000))).toBe(true)
  })
})

describe('templates', () => {
  test('no value makes a text longer than was assumed when it was saved', () => {
    const all = Object.keys({ ...TOKENS, ...ANSWER_TOKENS })
    const template = all.map((name) => `{${name}}`).join(' ')
    const wide = Object.fromEntries(all.map((name) => [name, '😀'.repeat(100)]))
    expect(countTextBytes(render(template, wide))).toBeLessThanOrEqual(countTextBytes(widestText(template)))
    expect(render('{nodes}', { nodes: 123_456_789 })).toBe('12345')
  })

  test('an unknown value becomes a question mark, and an unknown token stays as it is', () => {
    expect(render('{shortName} {snr} {nothing} {} {a b}', { snr: null })).toBe('? ? {nothing} {} {a b}')
    expect(render('{longName}', { longName: 'A\u0000\n\u0007B' })).toBe('AB')
    expect(render('{longName}', { longName: '\n' })).toBe('?')
    // A value is not itself a template.
    expect(render('{longName}', { longName: '{shortName}', shortName: 'S' })).toBe('{shortName}')
  })
})

test.each([
  // Bytes, spreading factor, kHz, coding rate, ms: 16 + 4.25 symbols of preamble, then 8 and those of the payload.
  [16, 7, 250, 5, 0.512 * (20.25 + 8 + 5 * 6)],
  [16, 11, 250, 5, 8.192 * (20.25 + 8 + 5 * 3)],
  [253, 12, 125, 8, 32.768 * (20.25 + 8 + 8 * 51)],
  [253, 12, 62.5, 8, 65.536 * (20.25 + 8 + 8 * 51)],
])('the airtime of %i bytes at SF%i, %d kHz and 4/%i is %d ms', (bytes, spreadFactor, bandwidthKhz, codingRate, ms) => {
  expect(timeOnAirMs(bytes, { spreadFactor, bandwidthKhz, codingRate })).toBeCloseTo(ms, 6)
})

test.each([
  ['0 */3 * * *', 180, null],
  ['59 0,3,6,23 * * *', 180, 'runs must be at least 180 minutes apart'],
  ['*/5 * * * *', 5, null],
  ['*/7 * * * *', 5, 'runs must be at least 5 minutes apart'],
  ['0 0 29 2 *', 180, null],
  ['0 12 31 4,6,9,11 *', 5, 'is never due'],
])('the problem of cron %s, with runs at least %i minutes apart, is %s', (pattern, minutes, problem) => {
  expect(cronProblem(pattern, minutes * 60_000, 0)).toBe(problem)
})
