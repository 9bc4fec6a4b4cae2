import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { VARIABLES } from '../../src/app/config/config.ts'

const root = new URL('../../', import.meta.url)
const page = readFileSync(new URL('docs/troubleshooting.md', root), 'utf8')
const sources = ['app', 'node', 'web']
  .flatMap((room) =>
    readdirSync(new URL(`src/${room}`, root), { recursive: true, encoding: 'utf8' }).map(
      (name) => `src/${room}/${name}`,
    ),
  )
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => readFileSync(new URL(name, root), 'utf8'))

/** The messages in the left columns. */
const messages = Array.from(page.matchAll(/^\| (.*?) \|/gm), ([, cell = '']) => cell).flatMap((cell) =>
  Array.from(cell.matchAll(/`([^`]+)`/g), ([, text = '']) => text),
)

test('the page lists messages', () => {
  expect(messages.length).toBeGreaterThan(30)
})

test.each(messages)('the service says: %s', (message) => {
  expect(sources.some((text) => text.includes(message))).toBe(true)
})

test('every variable on the page exists', () => {
  const named = Array.from(page.matchAll(/\b[A-Z]+(?:_[A-Z]+)+\b/g), ([name]) => name)
  expect(named.length).toBeGreaterThan(10)
  expect(named.filter((name) => !(name in VARIABLES))).toStrictEqual([])
})
