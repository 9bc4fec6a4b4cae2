import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { randomToken } from '../../../app/accounts/sessions/session-token.ts'
import { hasCode } from '../../disk/error-code.ts'
import { BackupDamage } from '../../../app/system/backup/format/damage.ts'
import type { Files } from '../folder/files.ts'
import { readSmallFile } from '../folder/safe-read.ts'

/** What a start shall restore. `manifest`: SHA-256 of the manifest that was verified. */
const stageSchema = z.object({
  id: z.string(),
  name: z.string(),
  manifest: z.string(),
  stagedAt: z.int(),
  by: z.string(),
  /** Why it failed, once that is known. */
  error: z.string().optional(),
})
export type Stage = z.infer<typeof stageSchema>

/** The restore that the next start performs. */
export const stagedFile = (dataDir: string) => join(dataDir, '.restore-staged')
/** The one that a start has taken from there, until its result is recorded. So none is ever begun twice. */
export const begunFile = (dataDir: string) => join(dataDir, '.restore-begun')

const DRAFT = /^\.restore-draft\./
export const draftIn = (dataDir: string) => join(dataDir, `.restore-draft.${randomToken()}`)

/** The staged restore; null: none, or one that cannot be read. */
export function readStage(dataDir: string): Stage | null {
  return readStageFile(stagedFile(dataDir))
}

/** Null for a file that is missing or is no stage. */
export function readStageFile(file: string): Stage | null {
  try {
    const stage = stageSchema.safeParse(JSON.parse(readSmallFile(file, file, 64 * 1024)))
    return stage.success ? stage.data : null
  } catch (error) {
    if (error instanceof BackupDamage || error instanceof SyntaxError) return null
    throw error
  }
}

/** Stages a restore, completely or not at all. Returns false if there is one already. */
export function writeStage(files: Files, dataDir: string, stage: Omit<Stage, 'id'>): boolean {
  const draft = draftIn(dataDir)
  try {
    writeDurably(files, draft, { ...stage, id: randomToken() })
    // A name that exists already is an error: of two administrators the first one counts.
    files.duplicate(draft, stagedFile(dataDir))
    files.sync(dataDir)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  } finally {
    files.remove(draft)
  }
}

export function writeDurably(files: Files, path: string, stage: Stage): void {
  const fd = files.create(path)
  try {
    files.write(fd, Buffer.from(`${JSON.stringify(stage)}\n`))
  } catch (error) {
    files.close(fd)
    throw error
  }
  files.finish(fd)
}

/** Takes the staged restore back while `record` runs, and for good if it does not throw. False: there is none. */
export async function withdrawStage(files: Files, dataDir: string, record: () => Promise<void>): Promise<boolean> {
  const draft = draftIn(dataDir)
  try {
    files.rename(stagedFile(dataDir), draft)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
  try {
    files.sync(dataDir)
    await record()
  } catch (error) {
    files.rename(draft, stagedFile(dataDir))
    throw error
  }
  files.remove(draft)
  return true
}

/** Deletes what a crash left of staging one. */
export function sweepDrafts(files: Files, dataDir: string): void {
  if (!existsSync(dataDir)) return
  for (const name of readdirSync(dataDir)) if (DRAFT.test(name)) files.remove(join(dataDir, name))
}
