import { AppError } from '../app/http/errors.ts'

// Replaces `src/app/system/restore/staging.ts` in the worker: only the Node service restores backups.

export const [restoreStateSchema, restorePreviewSchema] = [undefined, undefined]

async function refuse(): Promise<never> {
  throw new AppError('unsupported_on_this_runtime', 'This runtime restores no backups')
}

export {
  refuse as cancelRestore,
  refuse as forgetRestoreOutcome,
  refuse as previewRestore,
  refuse as readRestoreState,
  refuse as stageRestore,
}
