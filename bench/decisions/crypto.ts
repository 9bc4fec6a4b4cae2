// node bench/decisions/crypto.ts: the figures of docs/decisions/bcrypt-on-node.md and of
// docs/decisions/short-decisions.md#cookies-are-signed-and-hashed-without-web-crypto.
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { hash } from '@node-rs/bcrypt'
import { hmacSha256 } from '../../src/app/base/crypto.ts'

const HASHES = 8
const WORKER = `
  const { parentPort } = require('node:worker_threads')
  const bcrypt = import('bcryptjs')
  parentPort.on('message', async (password) => parentPort.postMessage((await bcrypt).default.hashSync(password, 12)))
`

async function rate(name: string, job: () => Promise<unknown>): Promise<void> {
  await job()
  const begun = performance.now()
  for (let n = 0; n < HASHES; n++) await job()
  console.log(`${name}: ${((HASHES * 1000) / (performance.now() - begun)).toFixed(2)} hashes/s on one core`)
}

await rate('bcrypt cost 12, @node-rs/bcrypt', () => hash('correct horse battery', 12))
const worker = new Worker(WORKER, { eval: true })
await rate('bcrypt cost 12, bcryptjs in a worker thread', async () => {
  const answer = new Promise((resolve) => worker.once('message', resolve))
  worker.postMessage('correct horse battery')
  return answer
})
await worker.terminate()

const KEY = 's'.repeat(43)
const DATA = `session:${'t'.repeat(43)}`
const key = new TextEncoder().encode(KEY)
const data = new TextEncoder().encode(DATA)
const webKey = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
const ROUNDS = 20_000

async function cost(name: string, job: () => unknown): Promise<void> {
  for (let n = 0; n < 2000; n++) await job()
  const begun = performance.now()
  for (let n = 0; n < ROUNDS; n++) await job()
  console.log(`${name}: ${(((performance.now() - begun) * 1000) / ROUNDS).toFixed(1)} µs each`)
}

await cost('HMAC-SHA-256 of a session cookie, @oslojs/crypto', () => hmacSha256(KEY, DATA))
await cost('HMAC-SHA-256 of a session cookie, Web Crypto', async () => crypto.subtle.sign('HMAC', webKey, data))
console.log(`${availableParallelism()} cores, Node ${process.versions.node}`)
