import { readFileSync } from 'node:fs'

/** A message that real firmware sent or received, with the decoding of an independent implementation. */
export type Recording = {
  readonly source: string
  readonly bytes: Uint8Array
  /** Protobuf JSON of the message. */
  readonly json: unknown
  /** Protobuf JSON of the payload of a `Data`; null where there is none. */
  readonly inner: unknown
}

export function readRecordings(direction: 'fromradio' | 'toradio' | 'reconnect-2.8'): Recording[] {
  const text = readFileSync(new URL(`./fixtures/${direction}.jsonl`, import.meta.url), 'utf8')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const { source = 'reconnect', hex, json, inner } = JSON.parse(line)
      return { source, bytes: Uint8Array.from(Buffer.from(hex, 'hex')), json, inner: inner ?? null }
    })
}
