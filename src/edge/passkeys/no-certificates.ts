// Replaces @peculiar/* in the worker (wrangler.toml): these read certificates, which only attestations contain, and
// none is requested. The only part still needed is the signature of an elliptic-curve key.

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

function readInteger(bytes: readonly number[]): [Uint8Array, readonly number[]] {
  const [tag, length = 0] = bytes
  if (tag !== 0x02 || length === 0 || bytes.length < 2 + length) throw new Error('not a signature')
  return [Uint8Array.from(bytes.slice(2, 2 + length)), bytes.slice(2 + length)]
}

const none = undefined
export {
  none as AuthorityKeyIdentifierExtension,
  none as BasicConstraints,
  none as Certificate,
  none as CRLDistributionPointsExtension,
  none as ECDSASigValue,
  none as ECParameters,
  none as ExtendedKeyUsage,
  none as id_ce_basicConstraints,
  none as id_ce_extKeyUsage,
  none as id_ce_keyDescription,
  none as id_ce_subjectAltName,
  none as id_ecdsaWithSHA256,
  none as id_ecdsaWithSHA384,
  none as id_ecdsaWithSHA512,
  none as id_ecPublicKey,
  none as id_ml_dsa_44,
  none as id_ml_dsa_65,
  none as id_ml_dsa_87,
  none as id_rsaEncryption,
  none as id_secp256r1,
  none as id_secp384r1,
  none as id_sha1WithRSAEncryption,
  none as id_sha256WithRSAEncryption,
  none as id_sha384WithRSAEncryption,
  none as id_sha512WithRSAEncryption,
  none as KeyDescription,
  none as OctetString,
  none as RSAPublicKey,
  none as SubjectAlternativeName,
  none as SubjectKeyIdentifierExtension,
  none as X509Certificate,
  none as X509ChainBuilder,
  none as X509Crl,
}
