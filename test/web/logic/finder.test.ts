import { expect, test } from 'vitest'
import { bestOf, excerpt, fold, rankOf, RANKS, searched } from '../../../src/web/shell/finder/match.ts'

const rank = (typed: string, name: string, about = '', where = '') =>
  rankOf(fold(typed), searched(name), { about: searched(about), where: searched(where) })

test('an exact name is better than a beginning, then a word, then a part of a word, then one with an error', () => {
  const names = ['Batery', 'Solarbattery', 'Low battery', 'Battery voltage', 'Battery']
  expect(names.map((name) => rank('battery', name))).toEqual([
    RANKS.similar + 0.1,
    RANKS.inside,
    RANKS.word,
    RANKS.prefix,
    RANKS.exact,
  ])
  expect(rank('battery', 'Retention')).toBe(null)
})

test.each([
  ['battrey', 'Battery', 'swapped'],
  ['batery', 'Battery', 'left out'],
  ['batttery', 'Battery', 'added'],
  ['bsttery', 'Battery', 'replaced'],
  ['ohp limit', 'Hop limit', null],
  ['hop limti', 'Hop limit', 'swapped at the end'],
  ['limt', 'Hop limit', 'of four letters'],
  ['hpo', 'Hop limit', null],
  ['confgiuratoin', 'Configuration', 'two in a long word'],
  ['batrey', 'Battery', null],
  ['conifg', 'Configuration', 'in a word that was only begun'],
  ['noed', 'Nodes', null],
  ['noed', 'Node', 'swapped'],
  ['node 2026', 'Node 2025', null],
])('%s finds %s: %s', (typed, name, why) => {
  if (why === null) expect(rank(typed, name)).toBe(null)
  else expect(rank(typed, name)).toBeGreaterThan(RANKS.similar)
})

test('accents, capitals, hyphens and the order of words do not matter', () => {
  expect(rank('zurich', 'ZÜRICH')).toBe(RANKS.exact)
  expect(rank('lodz', 'Łódź')).toBe(RANKS.exact)
  expect(rank('wifi', 'Wi-Fi name')).toBe(RANKS.word)
  expect(rank('wi-fi', 'Wifi')).toBe(RANKS.word)
  expect(rank('limit hop', 'Hop limit')).toBe(RANKS.word)
  expect(rank('!a0cb', '!a0cb0001')).toBe(RANKS.prefix)
  expect(rank('?', 'Hop limit')).toBe(null)
})

test('words may be in what is said about a thing, and all but one in where it is', () => {
  const [name, about, where] = ['Preset', 'Range against speed', 'Configuration · LoRa'] as const
  expect(rank('speed', name, about, where)).toBe(RANKS.about)
  expect(rank('lora preset', name, about, where)).toBe(RANKS.about)
  expect(rank('lora speed', name, about, where)).toBe(RANKS.about)
  expect(rank('lora', name, about, where)).toBe(null)
  expect(rank('lo preset', name, about, where)).toBe(null)
  expect(rank('lroa preset', name, about, where)).toBe(null)
  expect(rank('lora perset', name, about, where)).toBeGreaterThan(RANKS.similar)
})

test('of names with errors, the one with fewer errors and the same first letter is the best', () => {
  expect(rank('battrey', 'Battery')).toBeLessThan(rank('abttery', 'Battery') ?? 0)
  expect(rank('ruhezeiten', 'Ruhezeit')).toBeLessThan(rank('ruhezeiten', 'Uhrzeiten') ?? 0)
  expect(rank('configuratoin', 'Configuration')).toBeLessThan(rank('confgiuratoin', 'Configuration') ?? 0)
})

test('the best come first, favourites among equals, and equals keep their order', () => {
  const one = (name: string, weight = 0, ...others: string[]) => ({
    id: name,
    names: [name, ...others].map(searched),
    around: null,
    weight,
  })
  const all = [
    one('Reptaer'),
    one('Old repeater'),
    one('Repeater north'),
    one('Repeater south', 1),
    one('Repeater east'),
    one('Verstärker', 0, 'Repeater'),
    one('Map'),
  ]
  expect(bestOf('repeater', all).map(({ id }) => id)).toEqual([
    'Verstärker',
    'Repeater south',
    'Repeater north',
    'Repeater east',
    'Old repeater',
    'Reptaer',
  ])
})

test('of a long text, the part is shown in which it was found', () => {
  expect(excerpt('Hill is up again', 'hill')).toBe('Hill is up again')
  expect(excerpt('We meet\nat seven', 'at')).toBe('We meet at seven')
  expect(excerpt('The one who climbs up in the snow changes the battery', 'BATTERY')).toBe('…changes the battery')
  expect(excerpt('ooooooooooooooooooooooooooooobattery', 'battery')).toBe('ooooooooooooooooooooooooooooobattery')
})
