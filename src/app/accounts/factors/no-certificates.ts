// Decision: docs/decisions/passkeys-without-certificates.md
// Replaces @peculiar/asn1-* in what is built (scripts/certificates.js). These packages read certificates, which come only with
// attestations, and the service asks for none. Only the signature of an elliptic-curve key remains to be read.

/** RFC 3279, section 2.2.3: a SEQUENCE of two INTEGERs of less than 128 bytes. Throws for anything else. */
export const AsnParser = {
  parse: (signature: Uint8Array) => {
    const [tag, length, ...content] = signature
    if (tag !== 0x30 || length !== content.length) throw new Error('not a signature')
    const [r, afterR] = readInteger(content)
    const [s, afterS] = readInteger(afterR)
    if (afterS.length > 0) throw new Error('not a signature')
    return { r, s }
  },
}

/** The structure that the package asks the parser for; there is only this one. */
export const ECDSASigValue = undefined

function readInteger(bytes: readonly number[]): [Uint8Array, readonly number[]] {
  const [tag, length = 0] = bytes
  if (tag !== 0x02 || length === 0 || bytes.length < 2 + length) throw new Error('not a signature')
  return [Uint8Array.from(bytes.slice(2, 2 + length)), bytes.slice(2 + length)]
}
