// A process of its own that reads a number of live event streams, ten for each cookie. "begin" starts a count, "end"
// returns the counts since then.
import { connect } from 'node:net'

import { SENT_AT } from './traffic.ts'

const SENT = new RegExp(`^${SENT_AT}(\\d{13})`)

const [port = '', count = '', ...cookies] = process.argv.slice(2)
let delays: number[] = []
let resets = 0
let ended = 0

/** The data for one reader; one in ten parses it, because parsing all of it would be more work than sending it. */
function createReader(looks: boolean): (bytes: Buffer) => void {
  // An event may begin in one chunk and end in the next.
  let rest = ''
  return (bytes) => {
    if (bytes.includes('event: reset')) resets++
    if (!looks) return
    const text = rest + bytes.toString('latin1')
    const whole = text.lastIndexOf('\n\n') + 1
    for (let at = text.indexOf(SENT_AT); at !== -1 && at < whole; at = text.indexOf(SENT_AT, at + 1)) {
      const sent = SENT.exec(text.slice(at, at + 80))?.[1]
      if (sent !== undefined) delays.push(Date.now() - Number(sent))
    }
    rest = text.slice(whole)
  }
}

for (let n = 0; n < Number(count); n++) {
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  const cookie = cookies[n % cookies.length]
  socket.write(`GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nCookie: ${cookie}\r\n\r\n`)
  socket.on('data', createReader(n % 10 === 0))
  socket.on('close', () => ended++)
  socket.on('error', () => ended++)
}

process.on('message', (message) => {
  if (message === 'begin') {
    delays = []
    resets = 0
    process.send?.({ answer: null })
    return
  }
  const sorted = delays.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
  process.send?.({
    answer: { resets, ended, p50: at(0.5), p95: at(0.95), longest: sorted.at(-1) ?? Number.NaN },
  })
})
