import { afterEach, expect, test } from 'vitest'
import './page.ts'
import { dropDrafts, keepDraft, readDraft } from '../../../src/web/state/drafts.ts'

const { sessionStorage } = Object(globalThis)
afterEach(() => {
  Object.assign(globalThis, { sessionStorage })
  dropDrafts()
})

/** A browser without storage throws at each use of it. */
const blockStorage = () => Object.assign(globalThis, { sessionStorage: null })

test.each([
  ['in the storage of the tab', () => {}],
  ['in memory, where that is blocked', blockStorage],
])('drafts are kept per place %s, and deleted on signing out', (_where, prepare) => {
  prepare()
  keepDraft('1 channel=0', 'half a sen')
  keepDraft('1 with=!a0cb0001', 'dear')
  keepDraft('1 with=!a0cb0001', '')
  expect([readDraft('1 channel=0'), readDraft('1 with=!a0cb0001'), readDraft('2 channel=0')]).toStrictEqual([
    'half a sen',
    '',
    '',
  ])
  dropDrafts()
  expect(readDraft('1 channel=0')).toBe('')
})

test('signing out keeps what other parts of the page stored', () => {
  sessionStorage.setItem('theme', 'dark')
  keepDraft('1 channel=0', 'half a sen')
  dropDrafts()
  expect(Object.keys(sessionStorage)).toStrictEqual(['theme'])
  sessionStorage.removeItem('theme')
})
