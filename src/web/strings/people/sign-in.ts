import { catalog } from '../../language.ts'
export const signIn = catalog('signIn', {
  passkey: 'Continue with a passkey',
  title: 'Sign in',
  username: 'Username',
  password: 'Password',
  forgot: 'Forgot your password?',
  submit: 'Sign in',
  working: 'Signing in…',
  oidc: 'Sign in with your organisation',
  oidcNamed: (name: string) => `Sign in with ${name}`,
  invited: 'You have been invited. Sign in with your account at a provider. From then on, it also signs you in here.',
  proxy: (name: string) => `Continue as ${name}`,
  or: 'or',
  oidcOnly: 'Your organisation manages the accounts of this service.',
  cookie:
    'The sign-in worked, but your browser did not keep the session cookie. Allow cookies for this site. If the service is behind a proxy, open it at the address of the proxy.',
  wait: (time: string) => `Too many attempts. You can try again in ${time}.`,
  waitOver: 'You can try again now.',
  ended: 'Your session has ended: you were signed out elsewhere, or it expired. Sign in to continue where you were.',
  show: 'Show the password',
  hide: 'Hide the password',
  errors: {
    oidc_denied:
      'The sign-in was cancelled, or your organisation refused it. Try again, or ask the people who manage your account there.',
    oidc_failed:
      'Your organisation’s answer could not be trusted, so nobody was signed in. Try again; if it fails again, an administrator can find the reason in the audit log.',
    oidc_state_invalid: 'This sign-in took too long or was started in another window. Please start again.',
    oidc_not_allowed: 'Your organisation did not put you in a group that may sign in here. Ask an administrator.',
    oidc_identity_taken: 'This account of your organisation already signs in to another account here.',
    oidc_already_linked: 'You are linked to another account at this provider already. Unlink that one first.',
    oidc_too_many_links: 'You have reached the limit of linked providers. Unlink one first.',
    oidc_ruled_by_groups:
      'Groups at your provider decide what you may do here, so no other one can be linked. An administrator can change that.',
    oidc_invitation_invalid:
      'This link has expired, or somebody has used it already. Ask an administrator for another one.',
    oidc_invitation_ended:
      'This invitation was withdrawn, or the administrator who made it may no longer invite. Ask an administrator for another one.',
    oidc_user_unknown: 'You have no account here yet. Ask an administrator to let you in.',
    oidc_user_inactive: 'Your account here is deactivated. Ask an administrator to reactivate it.',
    oidc_unavailable: 'Your organisation’s sign-in does not respond right now. Try again in a minute.',
  } satisfies Record<string, string>,
  otherError: 'The sign-in failed. Please try again.',
})

export const password = catalog('password', {
  title: 'Choose your own password',
  why: 'You signed in with a temporary password. Choose your own password to continue.',
  current: 'Current password',
  new: 'New password',
  repeat: 'Repeat the new password',
  hint: (minimum: number | null) =>
    `${minimum === null ? '' : `At least ${minimum} characters. `}A long password is better than a complicated one: combine four or five words that only you would choose.`,
  differ: 'The two passwords differ.',
  revokeTokens: 'Also revoke my API tokens',
  submit: 'Change password',
  changed: 'Password changed. Your other sessions have ended.',
  oidc: 'You sign in through your organisation. Change your password there.',
})
