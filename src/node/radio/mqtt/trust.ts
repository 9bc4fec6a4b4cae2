import { type PeerCertificate, rootCertificates } from 'node:tls'
import type { IClientOptions } from 'mqtt'
import { normalizeFingerprint, readCertificate } from '../transports/certificate.ts'
import { explainMqttError } from './reasons.ts'
import { LINK_REASONS } from '../../../shared/mesh/link-reasons.ts'

export type TrustOptions = {
  readonly url: string
  readonly ca?: string | null
  readonly fingerprint?: string | null
}

const CHANGED = LINK_REASONS.broker_changed

/**
 * Which certificates are accepted. Of a pinned one first the certificate is read, so that then TLS itself accepts no
 * other, and no password is sent to another server. Throws an error for people.
 */
export async function trustOf(
  { url, ca = null, fingerprint = null }: TrustOptions,
  timeoutMs: number,
): Promise<IClientOptions> {
  const { protocol, hostname, port } = new URL(url)
  if (fingerprint === null || (protocol !== 'mqtts:' && protocol !== 'wss:')) {
    return ca === null ? {} : { ca: [...rootCertificates, ca] }
  }
  const pinned = normalizeFingerprint(fingerprint)
  const address = {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? DEFAULT_PORTS[protocol] : Number(port),
  }
  const shown = await readCertificate(address, timeoutMs).catch((error: unknown) => {
    throw new Error(error instanceof Error ? explainMqttError(error) : LINK_REASONS.broker_failed)
  })
  if (shown.fingerprint !== pinned) throw new Error(CHANGED)
  const checkServerIdentity = (_host: string, { fingerprint256 }: PeerCertificate) =>
    normalizeFingerprint(fingerprint256) === pinned ? undefined : new Error(CHANGED)
  const exactly = { ca: [shown.pem], allowPartialTrustChain: true, checkServerIdentity }
  // The library hands `wsOptions` to node:tls, whatever its types say.
  return protocol === 'wss:' ? { ca: exactly.ca, wsOptions: Object(exactly) } : exactly
}

const DEFAULT_PORTS = { 'mqtts:': 8883, 'wss:': 443 } as const
