import type { Conflict } from '../../http/errors.ts'

/** What the index, the triggers and the conditions on users report: `stillAdmin`, `keepRealAdmin`, `users_username`. */
export const USER_CONFLICTS: readonly Conflict[] = [
  [/\blast_admin\b/, 'last_admin'],
  [/\bviewer_ended\b/, 'unauthenticated'],
  [/\bviewer_demoted\b/, 'admin_required'],
  [/UNIQUE.*users_username/, 'username_taken'],
]
