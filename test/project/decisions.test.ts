import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const DECISIONS = join(ROOT, 'docs/decisions')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

const SHORT = 'short-decisions.md'
/** A text of so many words is short, besides its date. */
const FEW_WORDS = 60

/** The fragment of a heading, as GitHub makes it. */
function fragmentOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}

/** Every decision by its place in `docs/decisions`, with the text below its title. */
const decisions = new Map<string, string>()
for (const file of readdirSync(DECISIONS).filter((name) => name !== 'README.md')) {
  const text = read(`docs/decisions/${file}`)
  if (file !== SHORT) decisions.set(file, text.replace(/^# .*\n+/, ''))
  else
    for (const section of text.split(/^## /m).slice(1)) {
      const [title = '', ...body] = section.split('\n')
      decisions.set(`${SHORT}#${fragmentOf(title)}`, body.join('\n').trim())
    }
}

/** Places that a text points to, without the folder. */
function pointersIn(text: string): string[] {
  return Array.from(text.matchAll(/decisions\/([\w-]+\.md(?:#[\w-]+)?)/g), ([, place = '']) => place)
}

const code = ['src', 'bench', 'scripts'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:tsx?|js|sh|yaml|css)$/.test(name))
    .map((name) => `${folder}/${name}`),
)
const documents = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`)

test('every decision has a date, and says what replaced it if it no longer holds', () => {
  expect(decisions.size).toBeGreaterThan(50)
  const line =
    /^_Decided on 20\d\d-\d\d-\d\d\.(?: Changed on 20\d\d-\d\d-\d\d\.)?(?: (?:Amended|Replaced) on 20\d\d-\d\d-\d\d by \[[^\]]+\]\([^)]+\)\.)?_$/
  const undated = Array.from(decisions, ([place, text]) => [place, text.split('\n')[0] ?? ''] as const)
  expect(undated.filter(([, first]) => !line.test(first))).toEqual([])
})

test('a short decision is on the page of short ones, and only a short one', () => {
  const words = (text: string) =>
    text
      .replace(/^_.*_$/m, '')
      .trim()
      .split(/\s+/).length
  // With its title, a page has some words more.
  const misplaced = Array.from(decisions, ([place, text]) => [place, words(text)] as const).filter(([place, count]) =>
    place.startsWith(SHORT) ? count >= FEW_WORDS : count < FEW_WORDS - 12,
  )
  expect(misplaced).toEqual([])
})

test('the list names each decision once', () => {
  const listed = Array.from(
    read('docs/decisions/README.md').matchAll(/^- .*\]\(([^)]+)\)$/gm),
    ([, place = '']) => place,
  )
  expect(listed.toSorted()).toEqual([...decisions.keys()].toSorted())
})

test('every pointer to a decision resolves', () => {
  const lost = [...code, ...documents, 'README.md', 'CONTRIBUTING.md', '.oxlintrc.json'].flatMap((path) =>
    pointersIn(read(path))
      .filter((place) => place !== 'README.md' && place !== SHORT && !decisions.has(place))
      .map((place) => `${path}: ${place}`),
  )
  expect(lost).toEqual([])
  // Inside the folder, a link has no folder in front.
  const within = documents
    .filter((path) => path.startsWith('docs/decisions/'))
    .flatMap((path) => Array.from(read(path).matchAll(/\]\(([\w-]+\.md(?:#[\w-]+)?)\)/g), ([, place = '']) => place))
  expect(within.length).toBeGreaterThan(50)
  expect(within.filter((place) => place !== 'README.md' && place !== SHORT && !decisions.has(place))).toEqual([])
})

test('the code names every decision that it follows', () => {
  const named = new Set(code.flatMap((path) => pointersIn(read(path))))
  expect([...decisions.keys()].filter((place) => !named.has(place))).toEqual([])
})
