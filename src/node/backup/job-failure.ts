import { isDiskFull } from '../disk/error-code.ts'
import type { JobMessage } from './jobs.ts'

/** What a thread says about the error that ended its job. */
export function jobFailure(error: unknown): JobMessage {
  return {
    kind: 'failed',
    message: error instanceof Error ? error.message : String(error),
    stack: error instanceof Error ? (error.stack ?? '') : '',
    isDiskFull: isDiskFull(error),
  }
}
