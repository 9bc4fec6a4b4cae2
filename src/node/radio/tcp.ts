import { createConnection } from 'node:net'
import type { Config } from '../../app/config/config.ts'
import type { ConfiguredRadio, Connect } from './connection.ts'

const KEEP_ALIVE_MS = 30_000

export type TcpTarget = { readonly host: string; readonly port: number }

/** The radios of MESHTASTIC_TCP. */
export function tcpRadios({ MESHTASTIC_TCP: targets }: Config): readonly ConfiguredRadio[] {
  return targets.map((target) => ({ kind: 'tcp', name: nameOf(target), connect: () => connectTcp(target) }))
}

function nameOf({ host, port }: TcpTarget): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
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
