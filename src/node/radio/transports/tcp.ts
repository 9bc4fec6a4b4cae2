import { createConnection } from 'node:net'
import type { Config } from '../../../app/config/config.ts'
import type { ConfiguredRadio, Connect } from '../connection.ts'
import { explainNetworkError, type Explanation } from './network-errors.ts'
import { LINK_REASONS } from '../../../shared/mesh/link-reasons.ts'

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
    let told: Explanation = [LINK_REASONS.closed]
    socket.on('connect', () => events.onOpen())
    socket.on('data', (bytes) => events.onData(bytes))
    socket.on('error', (error) => {
      told = explainNetworkError(error)
    })
    socket.on('close', () => events.onClose(...told))
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
