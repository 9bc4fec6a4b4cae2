import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseConfig, VARIABLES } from '../../src/app/config/config.ts'

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')

test('the table of variables in the README is what the service reads', () => {
  expect(README.match(/^\| `[A-Z_]+` \|.*$/gm)).toStrictEqual(variableRows())
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

test.each([...README.matchAll(/\]\((?!http)([^)#]+)\)/g)].map(([, path]) => path ?? ''))(
  'the README links to %s, which exists',
  (path) => {
    expect(readFileSync(new URL(`../../${path}`, import.meta.url)).length).toBeGreaterThan(0)
  },
)

test('compose.yaml hands on what the documentation sets for a restore', () => {
  const compose = readFileSync(new URL('../../compose.yaml', import.meta.url), 'utf8')
  for (const name of ['RESTORE_FROM_BACKUP', 'RESTORE_REAPPLY', 'RESTORE_REQUIRE_SIGNATURE']) {
    expect(compose).toMatch(new RegExp(`^ {6}${name}: \\$\\{${name}:-\\}$`, 'm'))
  }
})
