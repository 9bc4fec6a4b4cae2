import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A proxy to a loopback server that can be cut. */
export type CutProxy = {
  readonly base: string
  /** Ends all current connections; new ones go through. */
  cut(): void
  /** Ends all current connections, and each new one at once, until it is restored. */
  setBroken(isBroken: boolean): void
  close(): Promise<void>
}

/** Passes bytes on to `port`, both ways. */
export async function openCutProxy(port: number): Promise<CutProxy> {
  const sockets = new Set<Socket>()
  let isBroken = false
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
  }
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  const server = createServer((client) => {
    keep(client)
    if (isBroken) {
      client.destroy()
      return
    }
    const service = connect(port, '127.0.0.1')
    keep(service)
    client.pipe(service)
    service.pipe(client)
    client.on('close', () => service.destroy())
    service.on('close', () => client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the proxy has no port')
  return {
    base: `http://127.0.0.1:${address.port}`,
    cut,
    setBroken(value) {
      isBroken = value
      if (value) cut()
    },
    async close() {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}
