import { LINK_REASONS } from '../../../shared/mesh/link-reasons.ts'

const UNKNOWN_AUTHORITY = LINK_REASONS.broker_authority

const EXPLANATIONS: ReadonlyMap<string | number, string> = new Map<string | number, string>([
  ['ECONNREFUSED', LINK_REASONS.broker_refused],
  ['ECONNRESET', LINK_REASONS.broker_reset],
  ['ETIMEDOUT', LINK_REASONS.broker_unanswered],
  ['EHOSTUNREACH', LINK_REASONS.broker_unreached],
  ['ENETUNREACH', LINK_REASONS.no_network],
  ['ENOTFOUND', LINK_REASONS.broker_unknown],
  // nodejs.org/api/tls.html, "X509 certificate error codes".
  ['CERT_HAS_EXPIRED', LINK_REASONS.broker_expired],
  ['CERT_NOT_YET_VALID', LINK_REASONS.broker_early],
  ['ERR_TLS_CERT_ALTNAME_INVALID', LINK_REASONS.broker_other],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNKNOWN_AUTHORITY],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNKNOWN_AUTHORITY],
  ['ERR_SSL_WRONG_VERSION_NUMBER', LINK_REASONS.broker_no_tls],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', LINK_REASONS.broker_no_tls],
  // Return codes of CONNACK: MQTT 3.1.1, table 3.1.
  [2, LINK_REASONS.broker_client],
  [3, LINK_REASONS.broker_away],
  [4, LINK_REASONS.broker_password],
  [5, LINK_REASONS.broker_password],
])

/** Why a connection failed, for people; without details of the URL. */
export function explainMqttError(error: Error): string {
  const code = 'code' in error && (typeof error.code === 'string' || typeof error.code === 'number') ? error.code : null
  if (/keepalive timeout|connack timeout/i.test(error.message)) return LINK_REASONS.broker_unanswered
  const known = code === null ? undefined : EXPLANATIONS.get(code)
  if (known !== undefined) return known
  const isTls = typeof code === 'string' && /^(?:ERR_TLS|ERR_SSL|CERT_|EPROTO)/.test(code)
  return isTls ? `the TLS connection to the broker failed (${code})` : LINK_REASONS.broker_failed
}
