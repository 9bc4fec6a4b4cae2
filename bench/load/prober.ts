// A process of its own that asks for GET /api/health each 50 ms, whether or not it was answered: what somebody else waits
// for while the service works. "begin" starts a count, "end" answers the longest wait in milliseconds since then.
import { Agent, get } from 'node:http'

const EVERY_MS = 50
const GIVE_UP_MS = 120_000

const [port = ''] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
const open = new Set<number>()
let longest = 0
let probes = 0

function probe(begun = performance.now()): void {
  open.add(begun)
  const done = (ms: number) => {
    if (!open.delete(begun)) return
    longest = Math.max(longest, ms)
    probes++
  }
  const request = get({ port, host: '127.0.0.1', path: '/api/health', agent, timeout: GIVE_UP_MS }, (answer) => {
    answer.resume()
    answer.on('end', () => done(performance.now() - begun))
  }).on('error', () => {
    // The server closed a connection that was idle, in the instant in which it was used again.
    if (request.reusedSocket) probe(begun)
    else done(GIVE_UP_MS)
  })
}

function answerWhenAllAre(asked: number): void {
  // Those that were sent before the end still wait for what was measured.
  if ([...open].some((begun) => begun <= asked)) setTimeout(() => answerWhenAllAre(asked), 1)
  else process.send?.({ answer: { longest, probes } })
}

process.on('message', (message) => {
  if (message === 'begin') {
    longest = 0
    probes = 0
    process.send?.({ answer: null })
  } else {
    answerWhenAllAre(performance.now())
  }
})
setInterval(() => probe(), EVERY_MS)
