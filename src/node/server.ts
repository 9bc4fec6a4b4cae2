import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'

type Fetch = (request: Request, env: unknown) => Response | Promise<Response>

export type Listening = {
  readonly port: number
  /** Stops accepting, lets running requests end for `graceMs`, then cuts them off. */
  close(graceMs: number): Promise<void>
}

const IDLE_CHECK_MS = 50

/** Serves until closed. Rejects when the address can't be had. */
export async function listen(fetch: Fetch, port: number, hostname: string): Promise<Listening> {
  const server = createAdaptorServer({ fetch, hostname })
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

async function closeServer(server: ReturnType<typeof createAdaptorServer>, graceMs: number): Promise<void> {
  const http: Server | null = 'closeIdleConnections' in server ? server : null
  const cut = setTimeout(() => http?.closeAllConnections(), graceMs)
  // A connection kept alive for more is idle only once its running request has ended.
  const idle = setInterval(() => http?.closeIdleConnections(), IDLE_CHECK_MS)
  await new Promise<void>((resolve) => {
    server.close(() => resolve())
    http?.closeIdleConnections()
  })
  clearInterval(idle)
  clearTimeout(cut)
}
