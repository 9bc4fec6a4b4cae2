import { createHash } from 'node:crypto'
import { Readable, Transform } from 'node:stream'
import { finished } from 'node:stream/promises'
import { letGo } from '../../folder/let-go.ts'
import { CopyFailure } from './problems.ts'
import type { Sent } from './place.ts'
import { asFailure } from './requests.ts'

/** Reads what a place has, and compares it with what was sent. Throws `SendFailure`. */
export async function demandContent(body: Readable, { size, sha256 }: Pick<Sent, 'size' | 'sha256'>): Promise<void> {
  const hash = createHash('sha256')
  let read = 0
  // By events: a loop over the stream would join pieces, which copies them.
  body.on('data', (chunk: Buffer) => {
    read += chunk.length
    if (read > size) {
      body.destroy(new CopyFailure('otherSize'))
      return
    }
    hash.update(chunk)
    letGo(chunk)
  })
  try {
    await finished(body)
  } catch (error) {
    throw asFailure(error)
  } finally {
    body.destroy()
  }
  if (read !== size) throw new CopyFailure('otherSize')
  if (hash.digest('hex') !== sha256) throw new CopyFailure('otherContent')
}

/** A small file from memory, as one to be sent. */
export function fileOf(bytes: Buffer): Sent {
  const hex = (name: string) => createHash(name).update(bytes).digest('hex')
  const hashes = { sha256: hex('sha256'), md5: hex('md5') }
  return {
    size: bytes.length,
    ...hashes,
    partSize: bytes.length,
    parts: [hashes],
    read: (from, to) => Readable.from([bytes.subarray(from, to)]),
  }
}

/** Counts the bytes that are read. */
export function counted(body: Readable, onRead: (bytes: number) => void): Readable {
  const counter = new Transform({
    // Of objects, so that reading joins no pieces, which would copy them.
    readableObjectMode: true,
    readableHighWaterMark: 1,
    transform(chunk: Buffer, _encoding, done) {
      onRead(chunk.length)
      done(null, chunk)
    },
  })
  body.on('error', (error) => counter.destroy(error))
  counter.on('close', () => body.destroy())
  return body.pipe(counter)
}
