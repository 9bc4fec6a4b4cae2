import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type InstancesFile, openInstancesFile } from '../../../src/node/instances/file.ts'
import { createLease, LEASE_MS } from '../../../src/node/instances/lease.ts'

const HOUR = 3_600_000

let dir: string
let files: InstancesFile[]
let time: number
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-lease-'))
  files = []
  time = Date.UTC(2026, 0, 15, 12)
})
afterEach(() => {
  for (const file of files) file.close()
  rmSync(dir, { recursive: true })
})

function joined(hasRadios = true) {
  const file = openInstancesFile(dir)
  files.push(file)
  return { id: file.id, ...createLease(file, hasRadios, () => time) }
}

test('one of two holds it, and the other gets it only after a long enough silence', () => {
  const [one, two] = [joined(), joined()]
  expect([one.acquire(), two.acquire()]).toStrictEqual([true, false])
  time += LEASE_MS - 1
  expect([one.renew(), two.acquire()]).toStrictEqual([true, false])
  time += LEASE_MS - 1
  expect(two.acquire()).toBe(false)
  expect(two.owner()).toStrictEqual({ id: one.id, token: one.token() })
  time += 1
  expect(two.owner()).toBeNull()
  expect(two.acquire()).toBe(true)
})

test('an instance that lost it notices at the next check, and each takeover has a higher number', () => {
  const [one, two] = [joined(), joined()]
  one.acquire()
  time += LEASE_MS
  expect(one.isHeld()).toBe(true)
  two.acquire()
  expect([one.isHeld(), one.renew(), two.isHeld()]).toStrictEqual([false, false, true])
  one.release()
  expect(two.isHeld()).toBe(true)
  expect(two.token()).toBeGreaterThan(one.token())
  time += LEASE_MS
  one.acquire()
  expect(one.token()).toBeGreaterThan(two.token())
})

test('a released lease can be taken at once', () => {
  const [one, two] = [joined(), joined()]
  one.acquire()
  one.release()
  expect([one.isHeld(), two.owner(), two.acquire()]).toStrictEqual([false, null, true])
})

test('a lease that was not renewed stays with its holder while nobody else takes it', () => {
  const one = joined()
  one.acquire()
  time += HOUR
  expect([one.isHeld(), one.renew()]).toStrictEqual([true, true])
})

test('a clock that was set back does not block the lease of a dead instance', () => {
  const [one, two] = [joined(), joined()]
  one.acquire()
  time -= HOUR
  expect(two.acquire()).toBe(true)
  expect(one.isHeld()).toBe(false)
})

test('an instance with radios takes it from one without, not the other way round', () => {
  const [none, some] = [joined(false), joined(true)]
  none.acquire()
  expect([some.acquire(), none.isHeld()]).toStrictEqual([true, false])
  expect(none.acquire()).toBe(false)
  time += LEASE_MS
  expect(none.acquire()).toBe(true)
})
