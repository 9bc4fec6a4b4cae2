import type * as z from 'zod'
import type { Ctx } from '../app/base/context.ts'
import type { Change, overviewSchema, sectionSchema } from '../app/device-config/schemas.ts'
import { AppError } from '../app/http/errors.ts'

// Replaces `src/app/device-config/device-config.ts` in the worker: only the service beside a radio stores its settings,
// and they never leave it.

export async function readOverview(_ctx: Ctx, source: string | undefined): Promise<z.infer<typeof overviewSchema>> {
  if (source !== undefined) throw new AppError('source_not_found')
  return { source: null, sources: [], nodeNum: null, editable: false, sections: [], lastChange: null }
}

export async function readSection(): Promise<z.infer<typeof sectionSchema>> {
  throw new AppError('source_not_found')
}

export async function changeSection(): Promise<Change | null> {
  throw new AppError('unsupported_on_this_runtime')
}
