import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, type Socket } from 'node:net'
import { createFrameDecoder, encodeFrame } from '../../../src/meshtastic/link/framing.ts'
import { portOf } from '../servers/port-of.ts'

/** Key and certificate in PEM form. */
export type Tls = { readonly key: string; readonly cert: string }

/** The web server of a radio, as the firmware's ContentHandler.cpp has it: one message a request, in order. */
export type HttpDevice = {
  readonly url: string
  /** Requests so far, without those that only ask whether it is there. */
  requests(): number
  /** Closes all connections, and the next one before it answers. */
  hangUp(): void
  /** Answers everything with this, as another web server might. */
  pretend(answer: { readonly status: number; readonly type: string; readonly body: string | Uint8Array }): void
  /** Another certificate, as after a factory reset. */
  setTls(tls: Tls): void
  switchOff(): Promise<void>
  switchOn(): Promise<void>
  /** Resolves when no connection is open. */
  untilClosed(): Promise<void>
  stop(): Promise<void>
}

/** A web server before the radio on this loopback port. */
export async function startHttpDevice(radioPort: number, tls?: Tls): Promise<HttpDevice> {
  const waiting: Uint8Array[] = []
  let radio: Socket | null = null
  let requests = 0
  let isHangingUp = false
  let pretended: Parameters<HttpDevice['pretend']>[0] | null = null
  const sockets = new Set<Socket>()
  let allClosed: () => void = () => {}

  const open = () => {
    const decoder = createFrameDecoder((payload) => payload)
    const socket = connect(radioPort, '127.0.0.1')
    socket.on('data', (bytes) => waiting.push(...decoder.push(bytes, 0).map(({ message }) => message)))
    socket.on('error', () => {})
    socket.on('close', () => {
      if (radio === socket) radio = null
    })
    radio = socket
    return socket
  }
  const handle = async (request: IncomingMessage, answer: ServerResponse) => {
    if (pretended !== null) {
      answer.writeHead(pretended.status, { 'content-type': pretended.type })
      return answer.end(pretended.body)
    }
    const { method, url } = request
    const chunks: Buffer[] = []
    for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk)
    answer.setHeader('content-type', 'application/x-protobuf')
    if (method === 'OPTIONS' && (url === '/api/v1/toradio' || url === '/api/v1/fromradio')) {
      answer.writeHead(204)
      return answer.end()
    }
    requests += 1
    const socket = radio ?? open()
    if (method === 'GET' && url === '/api/v1/fromradio?all=false') return answer.end(waiting.shift() ?? '')
    if (method === 'PUT' && url === '/api/v1/toradio') {
      const body = Buffer.concat(chunks).subarray(0, 512)
      socket.write(encodeFrame(body))
      return answer.end(body)
    }
    answer.writeHead(404)
    return answer.end()
  }
  const listener = (request: IncomingMessage, answer: ServerResponse) => void handle(request, answer)
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  server.on('connection', (socket: Socket) => {
    if (isHangingUp) {
      isHangingUp = false
      return socket.destroy()
    }
    sockets.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0) allClosed()
    })
  })
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen(0)
  const port = portOf(server)
  const closeAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  const switchOff = async () => {
    closeAll()
    server.close()
    await once(server, 'close')
  }
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    requests: () => requests,
    hangUp() {
      isHangingUp = true
      closeAll()
    },
    pretend(answer) {
      pretended = answer
    },
    setTls(other) {
      if ('setSecureContext' in server) server.setSecureContext(other)
    },
    switchOff,
    switchOn: () => listen(port),
    untilClosed: () =>
      new Promise((resolve) => {
        allClosed = resolve
        if (sockets.size === 0) resolve()
      }),
    async stop() {
      radio?.destroy()
      if (server.listening) await switchOff()
    },
  }
}
