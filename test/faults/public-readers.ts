import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setPriority } from 'node:os'
import type { z } from 'zod'
import { commandSchema, type readersReport } from './public-plan.ts'

// Readers of the public map in a process of their own: `fork` it with the port of the service and their number. They
// poll as the pages do, each from an address of its own. "go" starts them, "rest" stops them and answers the counts.
// Real readers have their own computers, so these yield to everything else on this machine.

/** How often a page asks for each of these. */
const POLLED = [
  ['/api/nodes', 5000],
  ['/api/waypoints', 60_000],
  ['/api/auth/status', 60_000],
] as const
const FIRST = 0x0b000000
const GREEDY = [
  (n: number) => `/api/nodes?limit=${1 + (n % 4999)}`,
  (n: number) => `/api/nodes/${FIRST + (n % 300)}/positions?from=${n}`,
  (n: number) => `/api/messages?limit=${1 + (n % 500)}`,
  (n: number) => `/api/telemetry?nodeId=${FIRST + (n % 300)}&metric=deviceMetrics.voltage&from=0&to=${n * 60_000}`,
]
const TICK_MS = 5
/** Requests that are overdue because this machine was busy are skipped: real readers would not come all at once. */
const MAX_IN_TICK = 12

setPriority(19)

const [port = '', count = '', kind = 'pages'] = process.argv.slice(2)
/** Attackers ask for something that nobody asked for before, as often as they can. */
const isGreedy = kind === 'greedy'
const agent = new Agent({ keepAlive: true, maxSockets: 100 })
const readers = Array.from({ length: Number(count) }, (_, n) => ({
  address: `10.0.${n >> 8}.${n & 255}`,
  etags: new Map<string, string>(),
}))

let answers: Record<string, number> = {}
let open = 0

function ask(reader: (typeof readers)[number], path: string): void {
  open += 1
  const known = reader.etags.get(path)
  const headers = {
    'x-forwarded-for': reader.address,
    'accept-encoding': 'gzip',
    ...(known !== undefined && { 'if-none-match': known }),
  }
  const done = (outcome: string) => {
    open -= 1
    answers[outcome] = (answers[outcome] ?? 0) + 1
  }
  request({ port, host: '127.0.0.1', path, agent, headers }, (answer) => {
    const { etag } = answer.headers
    if (etag !== undefined) reader.etags.set(path, etag)
    answer.resume()
    answer.on('end', () => done(String(answer.statusCode)))
  })
    .on('error', () => done('broken'))
    .end()
}

/** Readers started at different moments: in each tick some of them ask. */
function poll(): () => void {
  const began = performance.now()
  const sent = POLLED.map(() => 0)
  let asked = 0
  const timer = setInterval(() => {
    if (isGreedy) {
      for (let n = 0; n < MAX_IN_TICK && open < 100; n++) {
        const reader = readers[asked % readers.length]
        asked += 1
        if (reader !== undefined) ask(reader, GREEDY[asked % GREEDY.length]?.(asked) ?? '')
      }
      return
    }
    const elapsed = performance.now() - began
    for (const [index, [path, everyMs]] of POLLED.entries()) {
      const due = Math.floor((elapsed / everyMs) * readers.length)
      for (let n = Math.max(sent[index] ?? 0, due - MAX_IN_TICK); n < due; n++) {
        const reader = readers[n % readers.length]
        if (reader !== undefined) ask(reader, path)
      }
      sent[index] = due
    }
  }, TICK_MS)
  return () => clearInterval(timer)
}

const tell = (report: z.infer<typeof readersReport>) => process.send?.(report)
let stop = () => {}
process.on('message', (message) => {
  if (commandSchema.parse(message) === 'go') {
    answers = {}
    stop = poll()
    tell({})
    return
  }
  stop()
  const settle = setInterval(() => {
    if (open > 0) return
    clearInterval(settle)
    tell(answers)
  }, TICK_MS)
})
await once(process, 'disconnect')
agent.destroy()
