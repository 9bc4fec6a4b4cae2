import { afterEach, beforeEach, expect, test } from 'vitest'
import { audit } from '../../../src/app/audit/audit.ts'
import { auditRows, createTestApp, type TestApp } from '../../support/app.ts'

let app: TestApp
beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

/** The details of an entry as they are stored. */
async function recorded(details: Record<string, unknown>): Promise<Record<string, unknown>> {
  const ctx = { store: app.store, ip: null, requestId: null, viewer: null, now: () => app.clock.now }
  await app.store.atomic([audit(ctx, 'node_updated', details)])
  return auditRows(app).at(-1)?.details ?? {}
}

const bytesOf = (details: unknown) => Buffer.byteLength(JSON.stringify(details))

test('short details are recorded unchanged', async () => {
  const details = { nodeNum: 7, before: { notes: 'a'.repeat(500), list: [1, null, true] }, after: { notes: '' } }
  expect(await recorded(details)).toStrictEqual(details)
})

test('a long text is cut, at any depth, and gives its original length', async () => {
  const cut = `${'ä'.repeat(500)}… (cut, 2000 characters)`
  const long = 'ä'.repeat(2000)
  const details = { name: long, before: { notes: long, lines: [{ text: long }, 'short'] }, after: null }
  expect(await recorded(details)).toStrictEqual({
    name: cut,
    before: { notes: cut, lines: [{ text: cut }, 'short'] },
    after: null,
  })
})

test('a character of two code units is kept whole or left out', async () => {
  const { text } = await recorded({ text: `${'a'.repeat(499)}😀😀` })
  expect(text).toBe(`${'a'.repeat(499)}… (cut, 503 characters)`)
})

test('in an entry that is too large, the largest fields become the beginning of their JSON', async () => {
  const steps = Array.from({ length: 5000 }, (_, n) => n)
  const stored = await recorded({ automationId: 3, before: { enabled: true, steps }, after: { enabled: false } })
  const json = JSON.stringify(steps)
  expect(stored).toStrictEqual({
    automationId: 3,
    before: { enabled: true, steps: `${json.slice(0, 500)}… (cut, ${json.length} characters)` },
    after: { enabled: false },
  })
})

test('many large fields together stay within the same bound', async () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`field${n}`, '漢\n'.repeat(1000 + n)]))
  const stored = await recorded({ nodeNum: 7, before: many, after: many })
  expect(bytesOf(stored)).toBeLessThanOrEqual(8192)
  expect(stored).toMatchObject({ nodeNum: 7, before: { field0: '… (cut, 2000 characters)' } })
})
