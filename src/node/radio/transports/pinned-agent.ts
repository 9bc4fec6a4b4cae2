import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent, type AgentOptions } from 'node:https'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import { normalizeFingerprint } from './certificate.ts'

/** One connection that is kept: opening one with TLS takes a small radio seconds. */
const SETTINGS = { keepAlive: true, maxSockets: 1 } as const satisfies AgentOptions

/** The certificate is not the pinned one. Nothing was sent. */
export class ChangedCertificate extends Error {}

/**
 * Connections to one server whose certificate nobody has signed. `accepts` decides by its SHA-256 fingerprint, 64
 * hexadecimal digits, before anything is sent.
 */
export function createPinnedAgent(isTls: boolean, accepts: (fingerprint: string) => boolean): HttpAgent {
  if (!isTls) return new HttpAgent(SETTINGS)
  const agent = new HttpsAgent(SETTINGS)
  agent.createConnection = (options: ConnectionOptions, done) => {
    // The authority does not matter, because the certificate itself is compared. No session is resumed without it.
    const socket = connectTls({ ...options, rejectUnauthorized: false, session: undefined })
    const fail = (error: Error) => done?.(error, socket)
    socket.once('error', fail)
    socket.once('secureConnect', () => {
      socket.off('error', fail)
      const certificate = socket.getPeerX509Certificate()
      const isAccepted = certificate !== undefined && accepts(normalizeFingerprint(certificate.fingerprint256))
      if (isAccepted) return done?.(null, socket)
      socket.destroy()
      done?.(new ChangedCertificate(), socket)
    })
    return undefined
  }
  return agent
}
