import { AppError } from '../app/http/errors.ts'

// Replaces `src/app/system/restore/restored-access.ts` in the worker: only the Node service restores backups.

/** No row of the settings has such a key. */
export const RESTORED_ACCESS_KEYS = ''

export const [restoredAccessSchema, reapplicationSchema] = [undefined, undefined]

export async function listRestoredAccess() {
  return { backup: null, restoredAccess: [] }
}

export async function acceptRestoredAccess() {}

export async function reapplyRestoredAccess() {
  throw new AppError('not_found', 'Nothing was restored on this runtime')
}
