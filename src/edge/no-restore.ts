import { AppError } from '../app/http/errors.ts'

// Replaces `src/app/system/revived.ts` in the worker: only the Node service restores backups.

export const [revivedSchema, reapplicationSchema] = [undefined, undefined]

export async function listRevived() {
  return { backup: null, revived: [] }
}

export async function acceptRevived() {}

export async function reapplyRevived() {
  throw new AppError('not_found', 'Nothing was restored on this runtime')
}
