import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseConfig, VARIABLES } from '../../src/app/config/config.ts'

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')

test('the table of variables in the documentation matches what the service reads', () => {
  expect(read('docs/configuration.md').match(/^\| `[A-Z_]+` \|.*$/gm)).toStrictEqual(variableRows())
})

function variableRows(): string[] {
  const parsed = parseConfig({})
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  const defaults = new Map<string, { toString(): string } | null>(Object.entries(parsed.config))
  return Object.entries(VARIABLES).map(([name, { expected, meaning }]) => {
    const value = defaults.get(name)
    const text = (Array.isArray(value) ? value.join(' ') : value?.toString()) ?? ''
    return `| \`${name}\` | ${text === '' ? 'none' : `\`${text}\``} | ${expected} | ${meaning} |`
  })
}

test('the README is short enough to read', () => {
  expect(read('README.md').split('\n').length).toBeLessThanOrEqual(200)
})

/** The rows of the tables that the bench writes into a page. */
function measuredIn(page: string): string[] {
  const tables = [...read(page).matchAll(/<!-- measured[^]*?<!-- end of measured/g)].join('\n')
  return tables.split('\n').filter((line) => /^\| (?!work|---)/.test(line))
}

test('the README has the figures that users feel and that were measured, as docs/performance.md has them', () => {
  const [, pattern = ''] = /function isShort[^]*?return \/(.+)\/\.test/.exec(read('bench/table.ts')) ?? []
  const chosen = measuredIn('docs/performance.md').filter((row) => new RegExp(pattern).test(row.slice(2)))
  expect(chosen).toHaveLength(8)
  expect(measuredIn('README.md')).toStrictEqual(chosen.filter((row) => !row.includes('not measured yet')))
})

const pages = readdirSync(new URL('docs', root), { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.md'),
)
const forms = readdirSync(new URL('.github', root), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => `.github/${name}`)
const documents = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  ...forms,
  ...pages.map((name) => `docs/${name}`),
]
const links = documents.flatMap((page) =>
  [...read(page).matchAll(/\]\((?!http|#)([^)#]+)[^)]*\)/g)].map(([, path]) => ({ page, path: path ?? '' })),
)

test.each(links)('$page links to $path, which exists', ({ page, path }) => {
  expect(readFileSync(new URL(path, new URL(page, root))).length).toBeGreaterThan(0)
})

/** Also inside a command; a name with a placeholder is not a path. */
const PATH =
  /(?<![\w./<-])(?:src|test|bench|scripts|drizzle|deploy|docs|\.ci|\.github)(?:\/[\w./-]+(?![\w./<*{…-])|(?=`))/g
const named = documents.flatMap((page) =>
  [
    ...read(page)
      .replaceAll(/^```[^]*?^```/gm, '')
      .matchAll(/`[^`]+`/g),
  ].flatMap(([words]) => [...words.matchAll(PATH)].map(([path]) => ({ page, path }))),
)

test('the page about the architecture names files', () => {
  expect(named.filter(({ page }) => page === 'docs/architecture.md').length).toBeGreaterThan(50)
})

test.each(named)('$page names $path, which exists', ({ path }) => {
  expect(existsSync(new URL(path, root))).toBe(true)
})

test('compose.yaml passes on the variables that the documentation sets for a restore', () => {
  const compose = read('compose.yaml')
  for (const name of ['RESTORE_FROM_BACKUP', 'RESTORE_REAPPLY', 'RESTORE_REQUIRE_SIGNATURE']) {
    expect(compose).toMatch(new RegExp(`^ {6}${name}: \\$\\{${name}:-\\}$`, 'm'))
  }
})
