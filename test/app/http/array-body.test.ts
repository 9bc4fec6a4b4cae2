import { expect, test } from 'vitest'
import { arrayBody } from '../../../src/app/http/compression.ts'
import { turnsDuring } from '../../support/turns.ts'

const values = (length: number) => Array.from({ length }, (_, n) => JSON.stringify({ n, name: `Hütte ${n} ⛰` }))

test.each([0, 1, 2, 499, 500, 501, 1000, 1001, 1250])('%i values are one array of JSON', async (length) => {
  const { bytes, etag } = await arrayBody(values(length), '"tag"')
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  expect(text).toBe(`[${values(length).join(',')}]`)
  expect(JSON.parse(text)).toHaveLength(length)
  expect(etag).toBe('"tag"')
})

test('others get their turns while a long array is encoded', async () => {
  expect(await turnsDuring(() => arrayBody(values(5000), ''))).toBe(9)
})
