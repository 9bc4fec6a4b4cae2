// A process of its own that requests GET /api/health every 50 ms without waiting for earlier answers: how long others
// wait while the service works. "begin" starts a measurement, "end" returns the longest wait in milliseconds since
// then.
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
    // The server closed an idle connection at the moment it was used again.
    if (request.reusedSocket) probe(begun)
    else done(GIVE_UP_MS)
  })
}

function answerWhenAllAre(asked: number): void {
  // Requests sent before the end are still affected by what was measured.
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
