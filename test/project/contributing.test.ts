import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { parseConfig, VARIABLES } from '../../src/app/config/config.ts'

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')
const listed = ['src', 'test', 'scripts'].flatMap((folder) =>
  readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
)
const sources = new Map(listed.filter((name) => /\.(?:tsx?|js|proto)$/.test(name)).map((name) => [name, read(name)]))

/** The recipes: what comes before the rules of style, which name things that the code must not have. */
const page = read('CONTRIBUTING.md').split('## Style')[0] ?? ''
const paragraphs = page.split(/\n\n|\n(?=[-|\d])/)
const quoted = paragraphs.flatMap((paragraph) =>
  Array.from(paragraph.matchAll(/`([^`]+)`/g), ([, words = '']) => ({
    paragraph,
    words: words.replaceAll(/\s+/g, ' '),
  })),
)
const isCommand = (words: string) => /^(?:[A-Z]+=\w+ )?(?:npm|npx|node) /.test(words)
/** Where a first run keeps everything. */
const DATA = './data'
const isPath = (words: string) => /[/<]|\.(?:tsx?|css)$|^\./.test(words)

test.each(quoted.filter(({ words }) => isCommand(words)))('$words can be run', ({ words }) => {
  const [, script] = /npm run (\S+)/.exec(words) ?? []
  if (script !== undefined) expect(manifest.scripts).toHaveProperty([script])
  const [, program] = /^node (\S+)/.exec(words) ?? []
  if (program !== undefined) expect(existsSync(new URL(program, root)), program).toBe(true)
  const [variable] = /^[A-Z_]+(?==)/.exec(words) ?? []
  if (variable !== undefined) expect(VARIABLES).toHaveProperty(variable)
  const [, files] = /vitest run (.+?)(?: -t .*)?$/.exec(words) ?? []
  for (const path of files?.split(' ') ?? []) expect(existsSync(new URL(path, root)), path).toBe(true)
})

test.each(quoted.filter(({ words }) => !isCommand(words) && isPath(words) && words !== DATA))(
  '$words exists',
  ({ words }) => {
    // `<noun>` stands for one name, `…` for the beginning of one, and a bare name for a file beside another one.
    const pattern = words
      .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
      .replaceAll(/<\w+>/g, '[\\w-]+(?:/[\\w-]+)*?')
      .replaceAll('…', '[\\w-]*')
    const found = new RegExp(`${words.includes('/') ? '^' : '/'}${pattern}(?:$|/)`)
    expect(existsSync(new URL(words, root)) || listed.some((name) => found.test(name))).toBe(true)
  },
)

test.each(quoted.filter(({ words }) => !isCommand(words) && !isPath(words)))(
  '$words is in the code',
  ({ words, paragraph }) => {
    const names = words.match(/[A-Za-z_]\w*/g) ?? []
    expect(names.length).toBeGreaterThan(0)
    const near = Array.from(paragraph.matchAll(/`((?:src|test)\/[\w./-]+\.tsx?)`/g), ([, path = '']) => path)
    for (const name of names) {
      const isWord = new RegExp(`\\b${name}\\b`)
      expect(
        [...sources.values()].some((text) => isWord.test(text)),
        name,
      ).toBe(true)
      // A table stands in one of the files that the same paragraph names.
      if (!/^[A-Z][A-Z_]+$/.test(name) || name in VARIABLES) continue
      const isTable = new RegExp(`\\b(?:const|type|interface) ${name}\\b`)
      expect(
        near.some((path) => isTable.test(sources.get(path) ?? '')),
        `${name} in ${near.join(', ')}`,
      ).toBe(true)
    }
  },
)

test('a first run keeps everything where the page says', () => {
  expect(quoted.some(({ words }) => words === DATA)).toBe(true)
  expect(parseConfig({})).toMatchObject({ config: { DATA_DIR: DATA } })
})

test('it has a recipe for everything that is often added', () => {
  const recipes = Array.from(page.matchAll(/^\*\*(.+?)\.\*\*/gm), ([, name]) => name)
  expect(recipes).toStrictEqual(
    expect.arrayContaining([
      'An endpoint',
      'A table or a column',
      'A setting',
      'An environment variable',
      'A transport',
      'A kind of alert',
      'A page',
      'A metric for Prometheus',
      'A language',
    ]),
  )
})
