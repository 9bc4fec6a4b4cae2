import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { removeHidden } from '../../src/shared/hidden-characters.ts'

it.each([
  'Łódź 🦉',
  'עיר',
  '👨\u200d👩\u200d👧',
  '👩🏽\u200d🚒',
  '🏳️\u200d🌈',
  '❤️\u200d🔥',
  '🏴\u200d☠️',
  '🇩🇪',
  '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} hill',
  '1️\u20e3 ©️',
  'می\u200cخواهم',
  'क्\u200dष',
  '葛\u{e0100}城',
])('%j stays as it is', (text) => {
  expect(removeHidden(text)).toBe(text)
})

it.each([
  ['Hi\u00adll\u2060', 'Hill'],
  ['\u200dHi\u200cll\u200d', 'Hill'],
  ['山\u200d川', '山川'],
  ['🦉\u200d', '🦉'],
  ['🦉\u200dx', '🦉x'],
  ['👨\u200d\u200d👩', '👨👩'],
  ['👨\u200b\u200d👩', '👨\u200d👩'],
  ['1\ufe0f', '1'],
  ['🦉\ufe0f\ufe0f', '🦉\ufe0f'],
  ['a\u{e0067}\u{e007f}', 'a'],
  ['🏴\u{e0067}x', '🏴x'],
  ['a\u180bb\u{e0100}', 'ab'],
  ['\u3164\u115f\uffa0', ''],
  ['a\u061c\u200e\u202e\u2066\u2028b', 'ab'],
  ['\u001b[2J\u0007', '[2J'],
])('of %j only %j is left', (text, left) => {
  expect(removeHidden(text)).toBe(left)
})

it('what is left of any text has nothing hidden, and visible characters stay in their order', () => {
  const pieces = [
    'a',
    '1',
    ' ',
    '山',
    'م',
    'क',
    '्',
    '👨',
    '👩',
    '🏽',
    '🏴',
    '❤',
    '\u20e3',
    '\u200b',
    '\u200c',
    '\u200d',
  ]
  const marks = ['\ufe0e', '\ufe0f', '\u{e0067}', '\u{e007f}', '\u{e0100}', '\u180b', '\u202e', '\u0007', '\ud800']
  const some = fc.array(fc.constantFrom(...pieces, ...marks), { maxLength: 12 }).map((all) => all.join(''))
  const visible = (text: string) => text.replaceAll(/[\p{Cc}\p{Default_Ignorable_Code_Point}]/gu, '')
  fc.assert(
    fc.property(fc.oneof(some, fc.string({ unit: 'binary' })), (text) => {
      const left = removeHidden(text)
      expect(removeHidden(left)).toBe(left)
      expect(visible(left)).toBe(visible(text).replaceAll(/[\u2028\u2029\ufff9-\ufffb]/gu, ''))
      expect(left).not.toMatch(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff]/u)
    }),
  )
})
