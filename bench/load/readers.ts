// A process of its own that reads live events: so many streams, ten for each cookie. "begin" starts a count, "end" answers
// what came since then.
import { connect } from 'node:net'

/** In the text of a message: when it was sent, by Date.now. */
const SENT = /over the hills (\d{13})/

const [port = '', count = '', ...cookies] = process.argv.slice(2)
let delays: number[] = []
let messages = 0
let resets = 0
let ended = 0

/** Texts with the time in them; one reader in ten looks at it, for to parse all of them would be the larger work. */
function read(chunk: string, looks: boolean): void {
  for (let at = chunk.indexOf('event: message'); at !== -1; at = chunk.indexOf('event: message', at + 1)) {
    messages++
    if (!looks) continue
    const sent = SENT.exec(chunk.slice(at, at + 600))?.[1]
    if (sent !== undefined) delays.push(Date.now() - Number(sent))
  }
  if (chunk.includes('event: reset')) resets++
}

for (let n = 0; n < Number(count); n++) {
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  const cookie = cookies[n % cookies.length]
  socket.write(`GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nCookie: ${cookie}\r\n\r\n`)
  // An event may begin in one chunk and end in the next.
  let rest = ''
  socket.on('data', (bytes) => {
    const text = rest + bytes.toString('latin1')
    const whole = text.lastIndexOf('\n\n') + 1
    read(text.slice(0, whole), n % 10 === 0)
    rest = text.slice(whole)
  })
  socket.on('close', () => ended++)
  socket.on('error', () => ended++)
}

process.on('message', (message) => {
  if (message === 'begin') {
    delays = []
    messages = 0
    resets = 0
    process.send?.({ answer: null })
    return
  }
  const sorted = delays.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
  process.send?.({
    answer: { messages, resets, ended, p50: at(0.5), p95: at(0.95), longest: sorted.at(-1) ?? Number.NaN },
  })
})
