// What both builds leave out of @simplewebauthn/server. Passkeys have no attestation, or one by the key itself, which has
// no certificate. Every other attestation is refused, so no code for certificates is needed.
import { join } from 'node:path'
import { replaceExports } from './exports.js'

const WEBAUTHN = /@simplewebauthn\/server\/esm\/(.*)\.js$/

const CERTIFICATES = [
  /^helpers\/(?:convertX509PublicKeyToCOSE|getCertificateInfo|isCertRevoked|mapX509SignatureAlgToCOSEAlg|validateCertificatePath|validateExtFIDOGenCEAAGUID)$/,
  /^metadata\/verifyAttestationWithMetadata$/,
  /^registration\/verifications\/(?:tpm\/)?verifyAttestation(?!Packed)/,
  /^services\/metadataService$/,
]

const ASN1 = /^@peculiar\/asn1-(?:ecc|schema)$/

/** The file in place of a package that reads certificates; null for any other. */
export function noCertificates(root, name) {
  return ASN1.test(name) ? join(root, 'src/app/accounts/factors/no-certificates.ts') : null
}

/** What stands in place of a file of the library; null for one that stays. */
export function withoutCertificates(file) {
  const part = WEBAUTHN.exec(file)?.[1]
  if (part === undefined) return null
  if (part.startsWith('services/defaultRootCerts/')) return replaceExports(file, "''")
  if (!CERTIFICATES.some((one) => one.test(part))) return null
  return replaceExports(file, "() => { throw new Error('certificates are not part of this build') }")
}
