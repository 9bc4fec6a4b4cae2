import { connect } from 'node:tls'

/** `AB:CD:…` in the form of hexadecimal digits alone. */
export function normalizeFingerprint(fingerprint: string): string {
  return fingerprint.replaceAll(':', '').toLowerCase()
}

/** A certificate in PEM form, and its SHA-256 fingerprint, 64 hexadecimal digits. */
export type ShownCertificate = { readonly pem: string; readonly fingerprint: string }

/** The certificate that a server shows. Nothing is sent to it. Throws the error of the connection. */
export function readCertificate(
  { host, port }: { readonly host: string; readonly port: number },
  timeoutMs: number,
): Promise<ShownCertificate> {
  return new Promise((resolve, reject) => {
    // Who issued it does not matter: it will be compared with a known one.
    const socket = connect({ host, port, rejectUnauthorized: false, timeout: timeoutMs })
    const fail = (error: Error) => {
      socket.destroy()
      reject(error)
    }
    socket.on('error', fail)
    socket.on('timeout', () => fail(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })))
    socket.on('secureConnect', () => {
      const certificate = socket.getPeerX509Certificate()
      socket.destroy()
      if (certificate === undefined) return reject(new Error('the server shows no certificate'))
      resolve({ pem: certificate.toString(), fingerprint: normalizeFingerprint(certificate.fingerprint256) })
    })
  })
}
