import { catalog } from '../../language.ts'
import type { RestorableAction } from '../../../app/system/restore/restored-access.ts'

const WHAT: Readonly<Record<RestorableAction, string>> = {
  user_deleted: 'was deactivated and is active again',
  admin_status_changed: 'was made a regular user and is an administrator again',
  permissions_updated: 'lost permissions or channels and has them again',
  password_reset: 'got a new password and has the old one again',
  password_changed: 'changed their password and has the old one again',
  token_revoked: 'had an API token revoked, which works again',
  tokens_held: 'had an API token held, which works again',
  second_factor_removed: 'had a second factor removed or replaced, and the earlier one works again',
  second_factor_added: 'had set up a second factor, which is missing now',
  recovery_codes_created: 'had used or replaced recovery codes, which work again',
  account_unlinked: 'was unlinked from an account at a provider, which signs in again',
  groups_provider_changed: 'was no longer ruled by the groups of a provider, which decide again',
  user_updated: 'had got another e-mail address, and has the old one again',
  email_confirmation_ended: 'had an e-mail address whose confirmation ended, and which counts as confirmed again',
  alert_destination_updated: 'had a destination of alerts deleted, held or changed, which gets alerts again',
  unknown: 'could not be read. Check users, passkeys, links, API tokens and destinations of alerts by hand.',
  public_access_updated: 'was narrowed or switched off and shows more again',
  node_updated: 'was hidden and is shown again',
}

export const restoredAccessTexts = catalog('restoredAccessTexts', {
  title: (backup: string) => `The restore of ${backup} undid changes made after the backup`,
  help: 'Choose which changes to reapply. Leave out changes that an intruder may have made.',
  what: (action: RestorableAction, token: string | null) =>
    token === null ? WHAT[action] : `${WHAT[action]}: ${token}`,
  publicAccess: 'Public access',
  replaced: 'The replaced database',
  by: (name: string) => `done by ${name}`,
  again: 'Reapply selected',
  leave: 'Leave everything as restored',
  leaveSure: 'Leave everything as restored? The list is then deleted.',
  all: 'All',
  done: 'Reapplied',
  refused: (name: string, why: string) => `${name}: ${why}`,
})
