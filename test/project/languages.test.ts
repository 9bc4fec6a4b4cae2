import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'vite'
import { expect, test } from 'vitest'
import { compareLanguage, compareServer, readEnglish } from '../../scripts/languages.js'
import { readServerTexts } from '../../scripts/server-texts.js'
import { readTranslation } from '../../src/node/translations.ts'
import { LANGUAGE_TAGS } from '../../src/shared/languages.ts'

const WEB = join(import.meta.dirname, '../../src/web')
const TRANSLATED = LANGUAGE_TAGS.filter((tag) => tag !== 'en')

test.for(TRANSLATED)('the page has every text in %s, and none that it does not use', (tag) => {
  expect(readEnglish().size).toBeGreaterThan(2000)
  expect(compareLanguage(tag)).toMatchObject({ missing: [], unknown: [] })
})

test.for(TRANSLATED)('the texts in %s need nothing of the page, which waits for them', (tag) => {
  const source = readFileSync(join(WEB, 'languages', `${tag}.ts`), 'utf8')
  const values = [...source.matchAll(/^import (?!type )[^\n]*from '(.*)'$/gm)].map(([, from]) => from)
  expect(values).toEqual(['./plural.ts'])
})

const placesIn = (text: string) => [...new Set(text.match(/\{\w+\}/g))].toSorted()

test.for(TRANSLATED)('the service has every text in %s, each with the same values', async (tag) => {
  const english = readServerTexts()
  expect(english).toEqual(expect.arrayContaining(['Too many attempts', '{name} was not heard for {time}', 'not empty']))
  expect(compareServer(tag)).toEqual({ missing: [], unknown: [] })
  const texts = Object.entries(await readTranslation(tag))
  const forms = texts.flatMap(([text, told]) =>
    (typeof told === 'string' ? [told] : Object.values(told)).map((form) => [text, form] as const),
  )
  expect(forms.filter(([text, form]) => form === '' || placesIn(text).join() !== placesIn(form).join())).toEqual([])
  // A counted text has the forms that the language has.
  const counted = texts.flatMap(([, told]) => (typeof told === 'string' ? [] : [Object.keys(told).toSorted()]))
  expect(counted.length).toBeGreaterThan(2)
  const { pluralCategories } = new Intl.PluralRules(tag).resolvedOptions()
  for (const keys of counted) expect(keys).toEqual(pluralCategories.toSorted())
})

type Node = { readonly type: string; readonly start: number; readonly [key: string]: unknown }
const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

/** Texts written down in a file of the page outside of its catalogues, with their line. */
function plainTexts(path: string): string[] {
  const source = readFileSync(join(WEB, path), 'utf8')
  const found: string[] = []
  const visit = (value: unknown, parent: Node | null): void => {
    if (Array.isArray(value)) for (const each of value) visit(each, parent)
    if (!isNode(value)) return
    if (isNode(value['callee']) && value['callee']['name'] === 'catalog') return
    if (value.type === 'JSXText' && /\p{L}{3}/u.test(String(value['value']))) found.push(String(value['value']).trim())
    if (value.type === 'Literal' && typeof value['value'] === 'string' && isShown(value['value'], parent)) {
      found.push(value['value'])
    }
    for (const each of Object.values(value)) if (typeof each === 'object') visit(each, value)
  }
  visit(parseAst(source, { lang: path.endsWith('x') ? 'tsx' : 'ts' }), null)
  return found.map((text) => `${path}: ${text}`)
}

/** A sentence begins with a capital and has a space; an attribute that people read has a capital. */
function isShown(text: string, parent: Node | null): boolean {
  const attribute = parent?.type === 'JSXAttribute' && isNode(parent['name']) ? String(parent['name']['name']) : null
  if (attribute === null) return /^\p{Lu}\p{L}* \p{L}/u.test(text)
  return /^(?:label|title|placeholder|alt|aria-label|help)$/.test(attribute) && /\p{L}{2}/u.test(text)
}

test('every text of the page is in a catalogue', () => {
  const paths = readdirSync(WEB, { recursive: true, encoding: 'utf8' }).filter(
    (path) => /\.tsx?$/.test(path) && !/^(?:languages|strings)\/|^(?:vite\.config|no-cookies)\.ts$/.test(path),
  )
  expect(paths.flatMap(plainTexts).toSorted()).toEqual([
    // A name and a key.
    'shell/shell.tsx: Ctrl K',
    'strings.ts: Mesh Monitoring',
  ])
})
