import type { AuditAction } from '../../../shared/access/audit-actions.ts'

/** The audit actions that are reported to the owner of an account, and their texts. */
export const SIGN_IN_ACTIONS = {
  login_success: 'Somebody signed in to your account from an address or a browser not seen before',
  password_changed: 'Your password was changed',
  password_reset: 'An administrator reset your password',
  second_factor_added: 'A second factor was added to your account',
  second_factor_removed: 'A second factor of your account was removed',
  second_factor_reset: 'An administrator removed your second factors',
  token_created: 'An API token was created in your name',
  token_revoked: 'One of your API tokens was revoked',
} as const satisfies Partial<Record<AuditAction, string>>

export type SignInAction = keyof typeof SIGN_IN_ACTIONS

export function signInSentence(action: SignInAction, ip: string | null, browser: string | null): string {
  const by = [ip, browser].filter((part) => part !== null).join(', ')
  return by === '' ? SIGN_IN_ACTIONS[action] : `${SIGN_IN_ACTIONS[action]} (${by})`
}
