import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const WEB = join(import.meta.dirname, '../../src/web')

test('every sentence of the page texts is used by a page', async () => {
  const names = (await readdir(WEB, { recursive: true })).filter((name) => /\.tsx?$/.test(name))
  const files = await Promise.all(names.map(async (name) => ({ name, text: await readFile(join(WEB, name), 'utf8') })))
  const pages = files.filter(({ name }) => !name.startsWith('strings')).map(({ text }) => text)
  const all = files.map(({ text }) => text).join('\n')
  const isRead = (group: string, key: string) =>
    new RegExp(`\\b${group}\\s*\\.\\s*${key}\\b`).test(all) ||
    // By a name known only at run time: `t.nodes[shown]`, where some page knows the name.
    (all.includes(`${group}[`) && pages.some((text) => text.includes(`'${key}'`) || text.includes(`${key}:`)))
  const sentences = files.flatMap(({ name, text }) =>
    name.startsWith('strings')
      ? // A table by names of the API has no type of its own, and is looked up by incoming values.
        Array.from(text.matchAll(/^export const (\w+) = catalog\('\w+', \{\n(.*?)^\}\)$/gms)).flatMap(
          ([, group = '', body = '']) => Array.from(body.matchAll(/^ {2}(\w+):/gm), ([, key = '']) => ({ group, key })),
        )
      : [],
  )
  expect(sentences.length).toBeGreaterThan(500)
  // The protocol names these, or a kind of link.
  const named = new Set([
    'measurementTexts',
    'measurementGroups',
    'packetFields',
    'CONNECTION_KINDS',
    'radioProblems',
    'linkReasons',
  ])
  const own = sentences.filter(({ group }) => !named.has(group))
  expect(own.filter(({ group, key }) => !isRead(group, key)).map(({ group, key }) => `${group}.${key}`)).toEqual([])
})
