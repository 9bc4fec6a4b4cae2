import { afterEach, beforeEach, expect, test } from 'vitest'
import { keepBodies } from '../../../../src/app/mesh/nodes/list/body-cache.ts'
import { createTestApp, type TestApp } from '../../../support/app.ts'

let app: TestApp
beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

test('readers who ask while a body is made get the same one, and one that fails is made again', async () => {
  const keep = keepBodies<string>()
  const gate = Promise.withResolvers<string>()
  let made = 0
  const ask = (make: () => Promise<string>) => keep(app.store, 1, 'all', make)
  const slow = () => {
    made++
    return gate.promise
  }
  const asked = Array.from({ length: 20 }, () => ask(slow))
  gate.reject(new Error('no body'))
  expect((await Promise.allSettled(asked)).map(({ status }) => status)).toStrictEqual(Array(20).fill('rejected'))
  expect(made).toBe(1)
  expect(await ask(async () => 'body')).toBe('body')
  expect(await ask(slow)).toBe('body')
  expect(await keep(app.store, 2, 'all', async () => 'changed')).toBe('changed')
})
