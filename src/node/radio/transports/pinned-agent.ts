import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent, type AgentOptions } from 'node:https'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { normalizeFingerprint } from './certificate.ts'

/** One connection that is kept: opening one with TLS takes a small radio seconds. */
const SETTINGS = { keepAlive: true, maxSockets: 1 } as const satisfies AgentOptions

/** A small radio needs seconds for a handshake. */
const HANDSHAKE_MS = 15_000

/** The certificate is not the pinned one. Nothing was sent. */
export class ChangedCertificate extends Error {}

/**
 * Connections to one server whose certificate nobody has signed. `accepts` decides by its SHA-256 fingerprint, 64
 * hexadecimal digits, before anything is sent, and is not asked after `destroy`.
 */
export function createPinnedAgent(isTls: boolean, accepts: (fingerprint: string) => boolean): HttpAgent {
  if (!isTls) return new HttpAgent(SETTINGS)
  const agent = new HttpsAgent(SETTINGS)
  /** Of these the agent knows only when their handshake has ended. */
  const pending = new Set<TLSSocket>()
  let isOver = false
  agent.createConnection = (options: ConnectionOptions, done) => {
    // The authority does not matter, because the certificate itself is compared. No session is resumed without it.
    const socket = connectTls({ ...options, rejectUnauthorized: false, session: undefined })
    const fail = (error: Error) => done?.(error, socket)
    const expire = () => socket.destroy(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' }))
    socket.once('error', fail)
    socket.once('close', () => pending.delete(socket))
    if (isOver) {
      socket.destroy(new Error(ENDED))
      return undefined
    }
    pending.add(socket)
    socket.setTimeout(HANDSHAKE_MS, expire)
    socket.once('secureConnect', () => {
      if (!pending.delete(socket)) return
      socket.off('error', fail)
      socket.off('timeout', expire)
      socket.setTimeout(0)
      const certificate = socket.getPeerX509Certificate()
      const isAccepted = certificate !== undefined && accepts(normalizeFingerprint(certificate.fingerprint256))
      if (isAccepted) return done?.(null, socket)
      socket.destroy()
      done?.(new ChangedCertificate(), socket)
    })
    return undefined
  }
  const destroyIdle = agent.destroy.bind(agent)
  agent.destroy = () => {
    isOver = true
    for (const socket of pending) socket.destroy(new Error(ENDED))
    pending.clear()
    destroyIdle()
  }
  return agent
}

const ENDED = 'the connection was ended'
