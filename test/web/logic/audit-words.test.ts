import { expect, test } from 'vitest'
import './page.ts'
import { inWords, scopeInWords } from '../../../src/web/pages/audit/in-words.ts'

const grant = (read: boolean, write: boolean) => ({ read, write })

test.each([
  [grant(true, true), 'read and write'],
  [grant(true, false), 'read'],
  [grant(false, false), '–'],
  [
    { messages: grant(true, true), nodes: grant(true, false), settings: grant(false, false) },
    'Messages: read and write; Nodes and map: read',
  ],
  [{ messages: grant(false, false) }, '–'],
  [
    {
      isAdmin: false,
      permissions: { messages: grant(true, true) },
      scope: { channels: { read: [0, 2], write: [] }, direct: grant(true, false) },
    },
    'isAdmin: No; permissions: (Messages: read and write); scope: (channels: (read: 0, 2; write: –); direct: read)',
  ],
  [[1, 'two', null], '1, two, –'],
  ['text', 'text'],
  [{ x: 1 }, 'x: 1'],
])('%j is told as %s', (value, words) => {
  expect(inWords(value)).toBe(words)
})

test.each([
  ['messages:write', 'Messages: write'],
  ['ingest', 'Deliver what a collector hears'],
  ['of-a-later-version', 'of-a-later-version'],
])('the scope %s of a token is told as %s', (scope, words) => {
  expect(scopeInWords(scope)).toBe(words)
})
