import { X509Certificate } from 'node:crypto'
import { CopyFailure } from './problems.ts'

/** Throws `CopyFailure` unless all that this text contains is certificates in PEM form. */
export function demandCertificates(pem: string): void {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  // OpenSSL reads up to the first that it does not understand, and says nothing.
  if (blocks.length === 0 || blocks.length !== pem.split('-----BEGIN ').length - 1)
    throw new CopyFailure('unreadableCa')
  for (const block of blocks) {
    try {
      void new X509Certificate(block)
    } catch {
      throw new CopyFailure('unreadableCa')
    }
  }
}
