// A process of its own that requests some paths in turn, one every 50 ms, without waiting for earlier answers: how long
// others wait while the service works. "begin" starts a measurement, "end" returns the waits in milliseconds since then.
import { Agent, get } from 'node:http'

export type Waits = { readonly longest: number; readonly p99: number }

const EVERY_MS = 50
const GIVE_UP_MS = 120_000

const [port = '', cookie = '', ...paths] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
const open = new Set<number>()
let waits: number[] = []
let probes = 0

function probe(path = '/api/health', begun = performance.now()): void {
  open.add(begun)
  const done = (ms: number) => {
    if (open.delete(begun)) waits.push(ms)
  }
  const asked = { port, host: '127.0.0.1', path, agent, timeout: GIVE_UP_MS, headers: { cookie } }
  const request = get(asked, (answer) => {
    answer.resume()
    answer.on('end', () => done(performance.now() - begun))
  }).on('error', () => {
    // The server closed an idle connection at the moment it was used again.
    if (request.reusedSocket) probe(path, begun)
    else done(GIVE_UP_MS)
  })
}

function answerWhenAllAre(asked: number): void {
  // Requests sent before the end are still affected by what was measured.
  if ([...open].some((begun) => begun <= asked)) setTimeout(() => answerWhenAllAre(asked), 1)
  else {
    const sorted = waits.toSorted((a, b) => a - b)
    const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN
    process.send?.({ answer: { longest: sorted.at(-1) ?? Number.NaN, p99 } satisfies Waits })
  }
}

process.on('message', (message) => {
  if (message === 'begin') {
    waits = []
    process.send?.({ answer: null })
  } else {
    answerWhenAllAre(performance.now())
  }
})
setInterval(() => probe(paths[probes++ % paths.length]), EVERY_MS)
