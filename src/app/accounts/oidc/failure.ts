/** Why a sign-in by OpenID Connect failed, and the error code that the browser gets. */
export const OIDC_FAILURES = {
  state_invalid: 'oidc_state_invalid',
  attempt_unknown: 'oidc_state_invalid',
  attempt_expired: 'oidc_state_invalid',
  attempt_used: 'oidc_state_invalid',
  parameter_repeated: 'oidc_failed',
  attempt_of_another_issuer: 'oidc_failed',
  callback_of_another_provider: 'oidc_failed',
  callback_iss_wrong: 'oidc_failed',
  callback_iss_missing: 'oidc_failed',
  callback_code_missing: 'oidc_failed',
  provider_denied: 'oidc_denied',
  provider_error: 'oidc_failed',

  discovery_unreachable: 'oidc_unavailable',
  discovery_refused: 'oidc_unavailable',
  discovery_invalid: 'oidc_unavailable',
  discovery_issuer_wrong: 'oidc_unavailable',
  discovery_too_often: 'oidc_unavailable',

  token_unreachable: 'oidc_failed',
  token_refused: 'oidc_failed',
  token_invalid: 'oidc_failed',

  id_token_malformed: 'oidc_failed',
  id_token_alg: 'oidc_failed',
  id_token_typ: 'oidc_failed',
  id_token_crit: 'oidc_failed',
  id_token_signature: 'oidc_failed',
  keys_unreachable: 'oidc_failed',
  keys_refused: 'oidc_failed',
  keys_invalid: 'oidc_failed',
  keys_unusable: 'oidc_failed',
  key_unknown: 'oidc_failed',

  claim_iss: 'oidc_failed',
  claim_sub: 'oidc_failed',
  claim_aud: 'oidc_failed',
  claim_azp: 'oidc_failed',
  claim_exp: 'oidc_failed',
  claim_iat: 'oidc_failed',
  claim_nbf: 'oidc_failed',
  claim_nonce: 'oidc_failed',
  claim_at_hash: 'oidc_failed',
  claim_events: 'oidc_failed',
  claim_jti: 'oidc_failed',
  claim_sid: 'oidc_failed',
  claim_auth_time: 'oidc_failed',
  userinfo_sub: 'oidc_failed',

  proof_of_another_user: 'oidc_failed',
  link_of_another_user: 'oidc_state_invalid',
  already_linked: 'oidc_already_linked',
  too_many_links: 'oidc_too_many_links',
  ruled_by_groups: 'oidc_ruled_by_groups',
  identity_taken: 'oidc_identity_taken',
  invitation_invalid: 'oidc_invitation_invalid',
  invitation_ended: 'oidc_invitation_ended',
  group_missing: 'oidc_not_allowed',
  ended_at_provider: 'oidc_denied',
  user_unknown: 'oidc_user_unknown',
  user_inactive: 'oidc_user_inactive',
} as const satisfies Record<string, `oidc_${string}`>

export type OidcReason = keyof typeof OIDC_FAILURES

/** Details for the log: numbers and words from fixed lists, never text from outside. */
export type OidcDetails = Readonly<Record<string, string | number>>

/** A user whom the provider identified, without an account here. */
type UnknownIdentity = { readonly issuer: string; readonly subject: string }

/** The sign-in failed. Caught where the browser gets its answer. */
export class OidcFailure extends Error {
  override name = 'OidcFailure'
  readonly reason: OidcReason
  readonly details: OidcDetails
  /** The refused user, only for the audit log, because an administrator may want to admit them. */
  readonly unknownIdentity: UnknownIdentity | null

  constructor(reason: OidcReason, details: OidcDetails = {}, unknownIdentity: UnknownIdentity | null = null) {
    super(reason)
    this.reason = reason
    this.details = details
    this.unknownIdentity = unknownIdentity
  }
}
