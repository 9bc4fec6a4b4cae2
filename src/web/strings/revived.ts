import type { RevivableAction } from '../../app/system/revived.ts'

const WHAT: Readonly<Record<RevivableAction, string>> = {
  user_deleted: 'was deactivated and is active again',
  admin_status_changed: 'was made a regular user and is an administrator again',
  permissions_updated: 'lost permissions and has them again',
  password_reset: 'got a new password and has the old one again',
  password_changed: 'changed the password and has the old one again',
  token_revoked: 'lost an API token that works again',
}

export const revived = {
  title: (backup: string) => `The restore of ${backup} undid what was done after the backup`,
  help: 'Choose what to reapply. Leave what an intruder may have done as it is in the backup.',
  what: (action: RevivableAction, token: string | null) =>
    token === null ? WHAT[action] : `${WHAT[action]}: ${token}`,
  by: (name: string) => `done by ${name}`,
  again: 'Reapply the chosen ones',
  leave: 'Leave everything as restored',
  leaveSure: 'Keep all of this as it is in the backup? The list is then deleted.',
  all: 'All',
  done: 'Done again',
  refused: (name: string, why: string) => `${name}: ${why}`,
} as const
