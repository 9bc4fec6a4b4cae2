import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const page = readFileSync(new URL('docs/monitoring.md', root), 'utf8')
const code = ['app/system', 'node/metrics']
  .flatMap((room) =>
    readdirSync(new URL(`src/${room}`, root), { recursive: true, encoding: 'utf8' }).map(
      (name) => `src/${room}/${name}`,
    ),
  )
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(new URL(name, root), 'utf8'))
  .join('\n')

const METRIC = /\b(?:mesh|process|nodejs)_[a-z0-9]+(?:_[a-z0-9]+)*\b/g

test('the page about monitoring lists every metric that exists, and no other', () => {
  const made = new Set(Array.from(code.matchAll(/'((?:mesh|process|nodejs)_[a-z0-9_]+)'/g), ([, name = '']) => name))
  const listed = new Set(Array.from(page.matchAll(METRIC), ([name]) => name))
  expect(made.size).toBeGreaterThan(50)
  expect(listed).toStrictEqual(made)
})
