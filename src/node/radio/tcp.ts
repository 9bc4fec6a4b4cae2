import { createConnection } from 'node:net'
import type { Connect } from './connection.ts'

const DEFAULT_PORT = 4403
const KEEP_ALIVE_MS = 30_000

export type TcpTarget = { readonly host: string; readonly port: number }

/** `host`, `host:port`, `[ipv6]` or `[ipv6]:port`; null for anything else. The port is 4403 unless given. */
export function parseTcpTarget(text: string): TcpTarget | null {
  const match = /^(?:\[(?<six>[0-9a-f:.]+)\]|(?<host>[^\s:/[\]]+))(?::(?<port>\d{1,5}))?$/i.exec(text.trim())
  const host = match?.groups?.['six'] ?? match?.groups?.['host']
  const port = Number(match?.groups?.['port'] ?? DEFAULT_PORT)
  return host === undefined || port < 1 || port > 65_535 ? null : { host, port }
}

/** Opens the stream of a radio over TCP. */
export function connectTcp({ host, port }: TcpTarget): Connect {
  return (events) => {
    const socket = createConnection({
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
    })
    let reason = 'the radio closed the connection'
    socket.on('connect', () => events.onOpen())
    socket.on('data', (bytes) => events.onData(bytes))
    socket.on('error', (error) => {
      reason = explain(error)
    })
    socket.on('close', () => events.onClose(reason))
    return {
      write(bytes) {
        if (socket.writable) socket.write(bytes)
      },
      destroy() {
        socket.removeAllListeners('close')
        socket.destroy()
      },
    }
  }
}

const EXPLANATIONS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'the radio refuses connections'],
  ['ECONNRESET', 'the radio reset the connection'],
  ['EPIPE', 'the radio closed the connection'],
  ['ETIMEDOUT', 'the radio does not answer'],
  ['EHOSTUNREACH', 'the radio cannot be reached'],
  ['ENETUNREACH', 'the network cannot be reached'],
  ['ENOTFOUND', "the radio's host name is not known"],
])

function explain(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null
  return code === null ? error.message : (EXPLANATIONS.get(code) ?? code)
}
