const UNKNOWN_AUTHORITY =
  "the broker's certificate was issued by an unknown authority; add the authority's certificate to the connection"

const EXPLANATIONS: ReadonlyMap<string | number, string> = new Map<string | number, string>([
  ['ECONNREFUSED', 'the broker refuses connections'],
  ['ECONNRESET', 'the broker reset the connection'],
  ['ETIMEDOUT', 'the broker does not answer'],
  ['EHOSTUNREACH', 'the broker cannot be reached'],
  ['ENETUNREACH', 'the network cannot be reached'],
  ['ENOTFOUND', "the broker's host name is not known"],
  // nodejs.org/api/tls.html, "X509 certificate error codes".
  ['CERT_HAS_EXPIRED', "the broker's certificate has expired"],
  ['CERT_NOT_YET_VALID', "the broker's certificate is not valid yet; is the clock of this machine right?"],
  ['ERR_TLS_CERT_ALTNAME_INVALID', "the broker's certificate is for another host name"],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNKNOWN_AUTHORITY],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNKNOWN_AUTHORITY],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'the broker does not speak TLS on this port'],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'the broker does not speak TLS on this port'],
  // Return codes of CONNACK: MQTT 3.1.1, table 3.1.
  [2, 'the broker refuses the client id'],
  [3, 'the broker is not available'],
  [4, 'the broker refuses the user name or password'],
  [5, 'the broker refuses the user name or password'],
])

/** Why a connection failed, for people; without details of the URL. */
export function explainMqttError(error: Error): string {
  const code = 'code' in error && (typeof error.code === 'string' || typeof error.code === 'number') ? error.code : null
  if (/keepalive timeout|connack timeout/i.test(error.message)) return 'the broker does not answer'
  const known = code === null ? undefined : EXPLANATIONS.get(code)
  if (known !== undefined) return known
  const isTls = typeof code === 'string' && /^(?:ERR_TLS|ERR_SSL|CERT_|EPROTO)/.test(code)
  return isTls ? `the TLS connection to the broker failed (${code})` : 'the connection to the broker failed'
}
