// Decision: docs/decisions/passkeys-without-certificates.md Replaces @peculiar/asn1-* in builds
// (scripts/certificates.js). Those packages parse certificates, which come only with attestations, and the service
// requests none. Only elliptic-curve signatures still need parsing.

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

/** The structure that the package passes to the parser; there is only this one. */
export const ECDSASigValue = undefined

function readInteger(bytes: readonly number[]): [Uint8Array, readonly number[]] {
  const [tag, length = 0] = bytes
  if (tag !== 0x02 || length === 0 || bytes.length < 2 + length) throw new Error('not a signature')
  return [Uint8Array.from(bytes.slice(2, 2 + length)), bytes.slice(2 + length)]
}
