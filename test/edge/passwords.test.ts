import { expect, test } from 'vitest'
import { AppError } from '../../src/app/http/errors.ts'
import { scriptPasswordHasher } from '../../src/edge/passwords.ts'

test('of simultaneous hashes sixteen wait their turn, and the others are told to retry', async () => {
  const passwords = scriptPasswordHasher(() => 1000)
  // A hash of the lowest cost: only the queue is tested.
  const hash = '$2b$04$3cF3uQ9qlYJcRmqgbMmMNeRk5wRkmwAzGjXcqJ3sVJHbQ3Cw8cQ6K'
  const outcomes = await Promise.allSettled(
    Array.from({ length: 24 }, () => passwords.verify('anything', hash, 'anonymous')),
  )
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(16)
  const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
  expect(refused).toHaveLength(8)
  for (const reason of refused) {
    expect(reason).toBeInstanceOf(AppError)
    expect(reason).toMatchObject({ code: 'rate_limited', extra: { retryAfter: 5 } })
  }
  expect(await passwords.verify('anything', hash, 'anonymous')).toBe(false)
})

test('unknown browsers cannot take the places of known ones', async () => {
  const passwords = scriptPasswordHasher(() => 1000)
  const hash = '$2b$04$3cF3uQ9qlYJcRmqgbMmMNeRk5wRkmwAzGjXcqJ3sVJHbQ3Cw8cQ6K'
  const others = Promise.allSettled(Array.from({ length: 17 }, () => passwords.verify('anything', hash, 'anonymous')))
  expect(await passwords.verify('anything', hash, 'known')).toBe(false)
  expect((await others).at(-1)).toMatchObject({ status: 'rejected', reason: { code: 'rate_limited' } })
})

test('the place of a dropped request is free again after half a minute', async () => {
  let now = 1000
  const passwords = scriptPasswordHasher(() => now)
  const hash = '$2b$04$3cF3uQ9qlYJcRmqgbMmMNeRk5wRkmwAzGjXcqJ3sVJHbQ3Cw8cQ6K'
  const first = Array.from({ length: 16 }, () => passwords.verify('anything', hash, 'anonymous'))
  await expect(passwords.verify('anything', hash, 'anonymous')).rejects.toMatchObject({ code: 'rate_limited' })
  now += 30_001
  expect(await passwords.verify('anything', hash, 'anonymous')).toBe(false)
  expect(await Promise.all(first)).toStrictEqual(Array.from({ length: 16 }, () => false))
})
