import { AppError } from '../app/http/errors.ts'

// In the place of `src/app/system/revived.ts`: a restore is done by the Node service alone, so nothing was revived here.

export const [revivedSchema, reapplicationSchema] = [undefined, undefined]

export async function listRevived() {
  return { backup: null, revived: [] }
}

export async function acceptRevived() {}

export async function reapplyRevived() {
  throw new AppError('not_found', 'Nothing was restored on this runtime')
}
