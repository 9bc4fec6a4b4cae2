import { expect, test } from 'vitest'
import { createLog } from '../../../src/app/base/log.ts'
import { AppError, problem } from '../../../src/app/http/errors.ts'
import { languageOf, wordsOf } from '../../../src/app/words/reader.ts'
import { ENGLISH, said, Words } from '../../../src/app/words/words.ts'
import { readTranslation } from '../../../src/node/translations.ts'
import { LANGUAGE_TAGS, LANGUAGES, matchLanguage } from '../../../src/shared/languages.ts'

test('values stand where the language wants them, and numbers are written as in it', async () => {
  const german = new Words('de', { '{n} of {most}': 'von {most} sind es {n}' })
  expect(ENGLISH.say('{n} of {most}', { n: 1500, most: 2000.5 })).toBe('1,500 of 2,000.5')
  expect(german.say('{n} of {most}', { n: 1500, most: 2000.5 })).toBe('von 2.000,5 sind es 1.500')
  // A value is never read as a text with places in it.
  expect(ENGLISH.say('{name} left the area', { name: '{name} {n}' })).toBe('{name} {n} left the area')
})

test('a counted text has the form of its number', async () => {
  const polish = new Words('pl', await readTranslation('pl'))
  const count = (words: Words, n: number) => words.count(n, '{n} node is silent:', '{n} nodes are silent:')
  expect([1, 2].map((n) => count(ENGLISH, n))).toEqual(['1 node is silent:', '2 nodes are silent:'])
  const forms = [1, 2, 5, 22].map((n) => count(polish, n).replace(String(n), '#'))
  expect(new Set(forms).size).toBe(3)
  expect(forms[1]).toBe(forms[3])
})

test('a measurement is told in the units of its reader', () => {
  expect(ENGLISH.measure(21.456, '°C', 1)).toBe('21.5 °C')
  expect(new Words('en', {}, 'imperial').measure(21.456, '°C', 1)).toBe('70.6 °F')
  expect(new Words('de', {}, 'imperial').measure(1000, 'm', 1)).toBe('3.280,8 ft')
  expect(new Words('de', {}, 'imperial').measure(3.7, 'V', 1)).toBe('3,7 V')
})

test.each([
  [undefined, 'en'],
  ['', 'en'],
  ['de', 'de'],
  ['de-AT,de;q=0.9,en;q=0.8', 'de'],
  ['xx, fr;q=0.5', 'fr'],
  ['en-US,en;q=0.5,de;q=0.9', 'en'],
  ['de;q=0, es', 'es'],
  ['pt', 'pt-BR'],
  ['PT-br', 'pt-BR'],
  ['*', 'en'],
  [';;;q=,,,', 'en'],
  [`de,${'x'.repeat(600)}`, 'en'],
])('Accept-Language %j is answered in %s', (header, language) => {
  expect(languageOf(header)).toBe(language)
})

test('the wanted language of another region is better than none', () => {
  expect(matchLanguage(['es-MX'])).toBe('es')
  expect(matchLanguage(['zh-Hant-TW', 'pl-PL'])).toBe('pl')
  expect(matchLanguage(['__proto__', 'constructor'])).toBe('en')
  expect(Object.keys(LANGUAGES)).toEqual(LANGUAGE_TAGS)
})

test('a language that cannot be read is English, and the log says so', async () => {
  const lines: string[] = []
  const log = createLog({ level: 'info', format: 'json', now: () => 0, write: (line) => void lines.push(line) })
  const translations = async () => {
    throw new Error('no file')
  }
  const words = await wordsOf({ log, translations }, { language: 'fr', units: 'imperial' })
  expect(words.say('A backup failed')).toBe('A backup failed')
  expect(words.measure(1, 'km', 1)).toBe('0.6 mi')
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('no file')
})

test('a refusal has one code, and its words in the language of who asked', async () => {
  const german = new Words('de', await readTranslation('de'))
  const told = async (error: AppError, words: Words) => Object(await problem(error, 'r', words).json())
  const limited = new AppError(
    'rate_limited',
    said('Too many changes; try again in {retryAfter} s', { retryAfter: 5 }),
    {
      retryAfter: 5,
    },
  )
  expect(await told(limited, ENGLISH)).toMatchObject({
    code: 'rate_limited',
    title: 'Too many attempts',
    detail: 'Too many changes; try again in 5 s',
  })
  const answer = await told(limited, german)
  expect(answer).toMatchObject({ code: 'rate_limited', status: 429 })
  expect(answer.title).not.toBe('Too many attempts')
  expect(answer.detail).toContain('5')
  expect(answer.detail).not.toContain('again')
  const invalid = new AppError('invalid_request', 'name: not empty; limit: Too small: expected number to be >=1', {
    issues: [
      { path: 'name', message: 'not empty' },
      { path: 'limit', message: 'Too small: expected number to be >=1' },
    ],
  })
  const { detail, issues } = await told(invalid, german)
  expect(detail).toBe(
    issues.map((issue: { path: string; message: string }) => `${issue.path}: ${issue.message}`).join('; '),
  )
  expect(detail).not.toMatch(/empty|Too small/)
  expect(detail).toContain('>=1'.slice(2))
  expect(problem(limited, 'r', german).headers.get('content-language')).toBe('de')
})
