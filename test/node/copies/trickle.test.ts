import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { afterEach, expect, test } from 'vitest'
import { demandContent } from '../../../src/node/backup/copies/places/content.ts'
import { ask, textOf } from '../../../src/node/backup/copies/places/requests.ts'
import { portOf } from '../../support/servers/port-of.ts'

const STALL_MS = 400
const ANSWER_MS = 800
const OFTEN_MS = 50
const STALLED = 'The place stopped answering'

const sockets: Socket[] = []
let server: Server

/** A place that never reads what comes, says `first`, and then `drop` again and again. */
async function trickle(first: string, drop: string) {
  server = createServer((socket) => {
    sockets.push(socket)
    const timer = setInterval(() => socket.write(drop), OFTEN_MS)
    socket.on('error', () => {}).on('close', () => clearInterval(timer))
    socket.write(first)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const place = { isOwnNetwork: true, ca: null, timings: { stallMs: STALL_MS, answerMs: ANSWER_MS } }
  const url = `http://127.0.0.1:${portOf(server)}/`
  return (method = 'GET', body?: Readable) => ask(place, { method, url, headers: {}, ...(body && { body }) })
}
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  server.close()
  await once(server, 'close')
})

const BEGINS = 'HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n'

test('a text that comes without end is stalled, though it never pauses', async () => {
  const request = await trickle(BEGINS, 'x'.repeat(1000))
  await expect(textOf(await request())).rejects.toThrow(STALLED)
})

test('a file that comes byte by byte is stalled', async () => {
  const request = await trickle(BEGINS, 'x')
  const { body } = await request()
  await expect(demandContent(body, { size: 1e8, sha256: '' })).rejects.toThrow(STALLED)
})

test('an answer that never gets beyond its headers is stalled', async () => {
  const request = await trickle('HTTP/1.1 200 OK\r\nx-y: ', 'z')
  await expect(request()).rejects.toThrow(STALLED)
})

test('a place that reads nothing of a file and keeps saying that it works is stalled', async () => {
  const request = await trickle('', 'HTTP/1.1 102 Processing\r\n\r\n')
  const endless = Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(65_536)
    })(),
  )
  await expect(request('PUT', endless)).rejects.toThrow(STALLED)
})
