import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { demandContent } from '../../../src/node/backup/copies/places/content.ts'
import { ask } from '../../../src/node/backup/copies/places/requests.ts'
import { letGo } from '../../../src/node/backup/folder/let-go.ts'
import { portOf } from '../../support/servers/port-of.ts'

// As large as pieces of files are, and as Node's pool of small buffers is.
const PIECE = 65_536
const PIECES = 40

let server: Server
let stored: Buffer

beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.method === 'GET') return response.end(stored)
    const parts: Buffer[] = []
    return request
      .on('data', (part: Buffer) => parts.push(part))
      .on('end', () => {
        stored = Buffer.concat(parts)
        response.end()
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(async () => {
  server.close()
  await once(server, 'close')
})

test('what was sent, received or compared keeps no memory until the engine collects', async () => {
  const made: Buffer[] = []
  const pieces = Readable.from(
    (function* () {
      for (let n = 0; n < PIECES; n++) {
        const piece = Buffer.allocUnsafeSlow(PIECE).fill(n)
        made.push(piece)
        yield piece
      }
    })(),
  )
  const place = { isOwnNetwork: true, ca: null }
  const url = `http://127.0.0.1:${portOf(server)}/`
  const headers = { 'content-length': String(PIECES * PIECE) }
  const sent = await ask(place, { method: 'PUT', url, headers, body: pieces })
  sent.body.resume()
  expect(made.map(({ length }) => length)).toEqual(Array(PIECES).fill(0))

  const { body } = await ask(place, { method: 'GET', url, headers: {} })
  const received: Buffer[] = []
  body.socket.on('data', (chunk: Buffer) => received.push(chunk))
  const parsed: Buffer[] = []
  body.on('data', (chunk: Buffer) => parsed.push(chunk))
  const wanted = Buffer.concat(Array.from({ length: PIECES }, (_, n) => Buffer.alloc(PIECE, n)))
  await demandContent(body, { size: wanted.length, sha256: createHash('sha256').update(wanted).digest('hex') })
  for (const chunks of [received, parsed]) {
    // Small ones stay.
    expect(chunks.filter(({ length }) => length >= 8192)).toEqual([])
    expect(chunks.length).toBeGreaterThanOrEqual(PIECES)
  }
})

test('a piece of a buffer that others use too, or of a constant, is not let go', () => {
  const pool = new ArrayBuffer(Buffer.poolSize)
  letGo(new Uint8Array(pool, Buffer.poolSize - 20_000))
  letGo(new Uint8Array(pool, 0, 20_000))
  expect(pool.byteLength).toBe(Buffer.poolSize)
  const zeros = new Uint8Array(1024)
  letGo(zeros)
  expect(zeros.length).toBe(1024)
})
