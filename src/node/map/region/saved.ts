import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import * as z from 'zod'
import { areaSchema } from '../../../app/mesh/map/region/area.ts'
import { hasCode } from '../../disk/error-code.ts'
import { PROBLEMS } from './problems.ts'
import { namesOf } from '../../../shared/names.ts'

const count = z.int().min(0)

/** What another process, or this one after a restart, must know of a download. */
const savedSchema = z.strictObject({
  state: z.enum(['loading', 'failed']),
  area: areaSchema,
  /** Null until the planet was opened. */
  from: z
    .strictObject({
      identity: z.strictObject({
        url: z.string(),
        size: count,
        etag: z.string().nullable(),
        modified: z.string().nullable(),
      }),
      fingerprint: z.string(),
      /** Requests whose tiles are on the disk. */
      done: count,
    })
    .nullable(),
  fetchedBytes: count,
  totalBytes: count,
  problem: z.enum(namesOf(PROBLEMS)).nullable(),
})
export type Saved = z.infer<typeof savedSchema>

/** Null if there is none, or one that a crash damaged. */
export async function readSaved(file: string): Promise<Saved | null> {
  try {
    return savedSchema.parse(JSON.parse(await readFile(file, 'utf8')))
  } catch (error) {
    if (hasCode(error, 'ENOENT') || error instanceof SyntaxError || error instanceof z.ZodError) return null
    throw error
  }
}

export async function writeSaved(file: string, saved: Saved): Promise<void> {
  const draft = `${file}.new`
  await writeFile(draft, JSON.stringify(saved), { mode: 0o600, flush: true })
  await rename(draft, file)
}

export async function removeSaved(file: string): Promise<void> {
  await rm(file, { force: true })
}
