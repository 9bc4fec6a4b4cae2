import { createServer, type IncomingMessage, type Server } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { answerMalformed, answerUnaddressable, isHostless, refuseHostless } from './malformed-requests.ts'
import { closeAfterBody } from './unread-bodies.ts'

type FetchCallback = Parameters<typeof getRequestListener>[0]
type Fetch = (request: Request, env: unknown) => Response | Promise<Response>

export type Listening = {
  readonly port: number
  /** Stops accepting connections, gives running requests `graceMs` to end, then cuts them off. */
  close(graceMs: number): Promise<void>
}

const IDLE_CHECK_MS = 50

/** Serves until closed. Rejects when it cannot listen on the address. */
export async function listen(fetch: Fetch, port: number, hostname: string): Promise<Listening> {
  const handle: FetchCallback = (request, env) => (isHostless(env.incoming) ? refuseHostless() : fetch(request, env))
  const answer = getRequestListener(handle, { hostname, errorHandler: answerUnaddressable })
  // Node's own refusal of a request without Host differs in format from our errors.
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    if (hasBody(request)) closeAfterBody(request)
    void answer(request, response)
  })
  answerMalformed(server)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, hostname, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening on a port')
  return { port: address.port, close: (graceMs) => closeServer(server, graceMs) }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

async function closeServer(server: Server, graceMs: number): Promise<void> {
  const cut = setTimeout(() => server.closeAllConnections(), graceMs)
  // A kept-alive connection is idle only after its running request has ended.
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS)
  await new Promise<void>((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
  })
  clearInterval(idle)
  clearTimeout(cut)
}
