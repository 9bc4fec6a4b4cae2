import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { portOf } from '../servers/port-of.ts'

/** What happens to a request instead of an answer of the server behind. */
export type Fault =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly body?: string
      readonly headers?: Record<string, string>
    }
  /** Nothing is read, and nothing answered. */
  | { readonly kind: 'stall' }
  /** The connection ends after this many bytes of the body. */
  | { readonly kind: 'cut'; readonly after: number }
  /** The server behind does it; the answer is lost. */
  | { readonly kind: 'lose' }
  /** The answer has another header. */
  | { readonly kind: 'header'; readonly name: string; readonly value: string }
  /** One bit of the answer is another. */
  | { readonly kind: 'flip' }

export type Front = {
  readonly url: string
  /** Requests that arrived, as `PUT /mesh/…`. */
  readonly seen: string[]
  /** Decides about each request; null: it goes through. */
  fault: (method: string, path: string, headers: IncomingHttpHeaders) => Fault | null
  close(): Promise<void>
}

/** A server in front of a loopback server that does what a bad place does. */
export async function openFront(port: number): Promise<Front> {
  const server = createServer((incoming, outgoing) => {
    handle(incoming, outgoing)
  })
  // Nothing of a test waits for a connection that nobody closes.
  server.keepAliveTimeout = 1
  const front: Front = {
    url: '',
    seen: [],
    fault: () => null,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }

  function handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method = '', url = '' } = incoming
    front.seen.push(`${method} ${url}`)
    const fault = front.fault(method, url, incoming.headers)
    if (fault?.kind === 'stall') return
    if (fault?.kind === 'answer') {
      outgoing.writeHead(fault.status, fault.headers).end(fault.body ?? '')
      return
    }
    pass(incoming, outgoing, fault)
  }

  function pass(incoming: IncomingMessage, outgoing: ServerResponse, fault: Fault | null): void {
    const { method, url, headers } = incoming
    const behind = request({ port, host: '127.0.0.1', method, path: url, headers }, (answer) => {
      if (fault?.kind === 'lose') {
        answer.resume().on('end', () => outgoing.destroy())
        return
      }
      const changed = fault?.kind === 'header' ? { [fault.name]: fault.value } : {}
      outgoing.writeHead(answer.statusCode ?? 500, { ...answer.headers, ...changed })
      answer.on('data', (chunk: Buffer) => {
        if (fault?.kind === 'flip') chunk.writeUInt8(chunk.readUInt8(0) ^ 1, 0)
        if (!outgoing.write(chunk)) answer.pause()
      })
      outgoing.on('drain', () => answer.resume())
      answer.on('end', () => outgoing.end())
    })
    behind.on('error', () => outgoing.destroy())
    let passed = 0
    incoming.on('data', (chunk: Buffer) => {
      passed += chunk.length
      if (fault?.kind === 'cut' && passed > fault.after) {
        behind.destroy()
        incoming.destroy()
        return
      }
      if (!behind.write(chunk)) incoming.pause()
    })
    behind.on('drain', () => incoming.resume())
    incoming.on('end', () => behind.end())
    incoming.on('error', () => behind.destroy())
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(front, { url: `http://127.0.0.1:${portOf(server)}` })
}
