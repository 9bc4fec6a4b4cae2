import { expect } from 'vitest'
import type { Client } from './app.ts'

type Block = { readonly id?: string; readonly event?: string; readonly data?: unknown; readonly comment?: string }

/** A reader of `text/event-stream` (html.spec.whatwg.org, 9.2.6), one block at a time. */
export type EventStream = {
  /** The next block; null at the end. Throws if the stream was cut off. */
  next(): Promise<Block | null>
  end(): Promise<void>
}

/** The live events for a client. `query`: begins with `?`. */
export async function openEventStream(client: Client, lastEventId?: string, query = ''): Promise<EventStream> {
  const headers: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
  const answer = await client.send('GET', `/api/events${query}`, undefined, headers)
  expect([answer.status, answer.headers.get('content-type')]).toStrictEqual([200, 'text/event-stream'])
  return readEventStream(answer)
}

/** The events of an answer. */
export function readEventStream(answer: Response): EventStream {
  if (answer.body === null) throw new Error('no body')
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let buffered = ''
  return {
    async next() {
      for (;;) {
        const end = buffered.indexOf('\n\n')
        if (end >= 0) {
          const found = parseBlock(buffered.slice(0, end))
          buffered = buffered.slice(end + 2)
          return found
        }
        const { value, done } = await reader.read()
        if (done) return null
        buffered += value
      }
    },
    end: () => reader.cancel().catch(() => {}),
  }
}

function parseBlock(lines: string): Block {
  const fields = lines.split('\n').map((line) => {
    const at = line.indexOf(':')
    return [line.slice(0, at) || 'comment', line.slice(at + 1).trimStart()]
  })
  const { data, retry: _, ...rest } = Object.fromEntries(fields)
  return { ...rest, ...(data !== undefined && { data: JSON.parse(data) }) }
}
