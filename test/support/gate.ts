import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A proxy to a loopback service that can be closed, or lose the answers. */
export type Gate = {
  readonly url: string
  /** `deaf`: requests get through, and their answers are lost. */
  mode: 'open' | 'shut' | 'deaf'
  /** Number of lost answers. */
  lost(): number
  stop(): Promise<void>
}

export async function startGate(target: URL): Promise<Gate> {
  const sockets = new Set<Socket>()
  let lost = 0
  const server = createServer((client) => {
    if (gate.mode === 'shut') return client.destroy()
    const service = connect(Number(target.port), target.hostname)
    for (const socket of [client, service]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        service.destroy()
      })
    }
    client.on('data', (bytes) => (gate.mode === 'shut' ? client.destroy() : service.write(bytes)))
    service.on('data', (bytes) => {
      if (gate.mode === 'open') return client.write(bytes)
      if (gate.mode === 'deaf') lost += 1
      return client.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the gate has no port')
  const gate: Gate = {
    url: `http://127.0.0.1:${address.port}`,
    mode: 'open',
    lost: () => lost,
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return gate
}
