import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { keptSessionSecret } from '../../../src/node/start/secret.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-secret-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)

test('is created once, private to the service, in a private directory', () => {
  const data = join(dir, 'deep', 'data')
  const secret = keptSessionSecret(data)
  expect(secret).toMatch(/^[\w-]{43}$/)
  expect(readFileSync(join(data, 'session-secret'), 'utf8')).toBe(`${secret}\n`)
  expect([mode(join(data, 'session-secret')), mode(data)]).toStrictEqual(['600', '700'])
  expect(readdirSync(data)).toStrictEqual(['session-secret'])
  expect(keptSessionSecret(data)).toBe(secret)
})

test('differs between directories', () => {
  expect(keptSessionSecret(join(dir, 'a'))).not.toBe(keptSessionSecret(join(dir, 'b')))
})

test('an existing one is used unchanged, and its permissions stay', () => {
  const file = join(dir, 'session-secret')
  writeFileSync(file, `${'s'.repeat(40)}\n\n`)
  chmodSync(file, 0o640)
  expect(keptSessionSecret(dir)).toBe('s'.repeat(40))
  expect(mode(file)).toBe('640')
})

test.each(['', 'short\n', '   \n'])('a file that contains %j stops the start and stays', (text) => {
  const file = join(dir, 'session-secret')
  writeFileSync(file, text)
  expect(() => keptSessionSecret(dir)).toThrow(`${file} does not hold a secret of at least 32 characters`)
  expect(readFileSync(file, 'utf8')).toBe(text)
})

test('a draft that a killed start left behind does no harm', () => {
  writeFileSync(join(dir, `session-secret.${process.pid}`), 'half')
  const secret = keptSessionSecret(dir)
  expect(readFileSync(join(dir, 'session-secret'), 'utf8')).toBe(`${secret}\n`)
  expect(secret).toHaveLength(43)
})

test('several processes that start at the same instant agree', async () => {
  const source = `
    import { parentPort, workerData } from 'node:worker_threads'
    const { keptSessionSecret } = await import(workerData.module)
    parentPort.postMessage('ready')
    Atomics.wait(workerData.gate, 0, 0)
    parentPort.postMessage(keptSessionSecret(workerData.dir))`
  const module = new URL('../../../src/node/start/secret.ts', import.meta.url).href
  const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`)
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const workerData = { module, gate, dir: join(dir, 'data') }
  const workers = Array.from({ length: 4 }, () => new Worker(url, { workerData }))
  const next = (worker: Worker) => new Promise<unknown>((resolve) => worker.once('message', resolve))
  await Promise.all(workers.map(next))
  const answers = Promise.all(workers.map(next))
  Atomics.store(gate, 0, 1)
  Atomics.notify(gate, 0)
  const secrets = await answers
  await Promise.all(workers.map((worker) => worker.terminate()))
  expect(new Set(secrets).size).toBe(1)
  expect(secrets[0]).toBe(keptSessionSecret(join(dir, 'data')))
})
