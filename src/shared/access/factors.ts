/** Second factors, in the order in which the page offers them. */
export const SECOND_FACTORS = ['totp', 'passkey', 'recovery'] as const
export type SecondFactor = (typeof SECOND_FACTORS)[number]

/** How a session can begin. */
export const SIGN_IN_METHODS = [
  'password',
  'password+totp',
  'password+passkey',
  'password+recovery',
  'passkey',
  'oidc',
  'proxy',
] as const
export type SignInMethod = (typeof SIGN_IN_METHODS)[number]

/** How a signed-in user can prove their identity again. */
export const PROOF_WAYS = ['password', 'totp', 'passkey', 'recovery', 'oidc'] as const
export type ProofWay = (typeof PROOF_WAYS)[number]

/** How long a proof counts as fresh. */
export const PROOF_MS = 15 * 60_000
