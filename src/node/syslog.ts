import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { connect, isIP, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { SendFailure } from '../app/base/outgoing/ports.ts'
import type { Syslog } from '../app/audit/anchor/syslog-port.ts'
import type { SyslogTarget } from '../app/config/anchor-target.ts'
import { wordsFor } from './alerts/outbound.ts'

const TOTAL_MS = 10_000
/** How long to wait for an ICMP answer that nobody listens on the UDP port. */
const REFUSAL_MS = 200

/** `totalMs`, in milliseconds, and `ca`, certificates as PEM, are for tests. */
export function openSyslog({ totalMs = TOTAL_MS, ca }: { totalMs?: number; ca?: string } = {}): Syslog {
  return {
    async send(target, messages) {
      try {
        await (target.transport === 'udp'
          ? sendDatagrams(target, messages)
          : sendStream(target, frame(messages), { totalMs, ca }))
      } catch (error) {
        throw error instanceof SendFailure ? error : new SendFailure(wordsFor(error))
      }
    },
  }
}

/** Octet counting: RFC 6587, section 3.4.1. */
function frame(messages: readonly string[]): string {
  return messages.map((message) => `${Buffer.byteLength(message)} ${message}`).join('')
}

async function sendDatagrams({ host, port }: SyslogTarget, messages: readonly string[]): Promise<void> {
  const { address, family } = await lookup(host)
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4')
  const { promise: failed, reject } = Promise.withResolvers<never>()
  socket.on('error', reject)
  const send = async () => {
    await new Promise<void>((resolve) => socket.connect(port, address, () => resolve()))
    for (const message of messages) {
      await new Promise<void>((resolve, fail) =>
        socket.send(message, (error) => (error === null ? resolve() : fail(error))),
      )
    }
    await wait(REFUSAL_MS)
  }
  try {
    await Promise.race([send(), failed])
  } finally {
    socket.close()
  }
}

/**
 * Ends the connection and waits until the other side has ended it as well: syslog has no other sign that all was read.
 */
function sendStream(
  { transport, host, port }: SyslogTarget,
  text: string,
  { totalMs, ca }: { readonly totalMs: number; readonly ca: string | undefined },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const name = isIP(host) === 0 ? { servername: host } : {}
  const socket: Socket =
    transport === 'tls' ? connectTls({ host, port, ...name, ...(ca !== undefined && { ca }) }) : connect({ host, port })
  const timer = setTimeout(() => {
    reject(new SendFailure('the connection was not closed in time'))
    socket.destroy()
  }, totalMs)
  let isSent = false
  socket.once(transport === 'tls' ? 'secureConnect' : 'connect', () => socket.end(text, () => (isSent = true)))
  socket.on('error', reject)
  socket.on('close', () => {
    clearTimeout(timer)
    if (isSent) resolve()
    else reject(new SendFailure('the connection was cut'))
  })
  socket.resume()
  return promise
}
