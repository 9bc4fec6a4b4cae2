import { describe, expect, it } from 'vitest'
import { readMoment, readTerms, SearchProblem } from '../../../src/web/state/messages/terms.ts'

const NOW = new Date(2026, 10, 28, 12).getTime()

describe('the search of messages', () => {
  it.each([
    ['red fox', { parts: ['red', 'fox'], without: [], asked: [] }],
    ['"red fox" -hill', { parts: ['red fox'], without: ['hill'], asked: [] }],
    ['-"the hill" -5° -', { parts: ['-5°', '-'], without: ['the hill'], asked: [] }],
    [
      '"foo:bar" https://example.org 12:30 re: :)',
      {
        parts: ['foo:bar', 'https://example.org', '12:30', 're:', ':)'],
        without: [],
        asked: [],
      },
    ],
    [
      'FROM:"Castle Hill" in:#Club has:error',
      {
        parts: [],
        without: [],
        asked: [
          { operator: 'from', value: 'Castle Hill' },
          { operator: 'in', value: '#Club' },
          { operator: 'has', value: 'error' },
        ],
      },
    ],
    ['"not closed', { parts: ['not closed'], without: [], asked: [] }],
    ['', { parts: [], without: [], asked: [] }],
  ])('%s', (text, terms) => expect(readTerms(text)).toStrictEqual(terms))

  it.each([
    ['foo:bar', 'There is no foo:'],
    ['-from:me', 'A minus stands only before a text.'],
    ['from:', 'Write something after from:'],
    ['in:""', 'Write something after in:'],
    ['a '.repeat(12), 'Use at most 10 words'],
  ])('%s is answered by a sentence', (text, sentence) => {
    expect(() => readTerms(text)).toThrow(SearchProblem)
    expect(() => readTerms(text)).toThrow(sentence)
  })

  it.each([
    ['today', new Date(2026, 10, 28)],
    ['yesterday', new Date(2026, 10, 27)],
    ['7d', new Date(NOW - 7 * 86_400_000)],
    ['36h', new Date(NOW - 36 * 3_600_000)],
    ['2026-03-31', new Date(2026, 2, 31)],
    ['2026-03', new Date(2026, 2, 1)],
    ['2026', new Date(2026, 0, 1)],
    ['2026-03-31T12:30', new Date(2026, 2, 31, 12, 30)],
    ['2026-03-31T12:30Z', new Date(Date.UTC(2026, 2, 31, 12, 30))],
  ])('the moment %s', (text, moment) => expect(readMoment(text, 'after', NOW)).toBe(moment.getTime()))

  it.each(['2026-02-30', '2026-13', 'soon', '31.3.2026', '2026-03-31T25:00', '1969', '7m'])('%s is no date', (text) => {
    expect(() => readMoment(text, 'after', NOW)).toThrow(`“${text}” is no date`)
  })
})
