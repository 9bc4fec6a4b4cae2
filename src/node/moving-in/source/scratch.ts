import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../../app/http/errors.ts'
import { lockExclusively, lockShared } from '../../backup/folder/lock.ts'

const NAME = /^\.import-[A-Za-z0-9]{6}$/
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** Removing what others left may take this long. */
const WAIT_MS = 10_000
/** Only on a terminal. */
const BUSY = 'The copy of a killed import is being removed: start the import again'

/** Shared by imports that have such a directory, exclusive for whoever removes those of killed ones. */
const lockFile = (dataDir: string): string => join(dataDir, '.moving-in-lock')

/** A directory for a copy of what is imported, which has messages, hashes and keys in clear. */
export type Scratch = { readonly dir: string; remove(): void }

/** It is also removed when a signal ends this process. */
export function makeScratch(dataDir: string): Scratch {
  const lock = lockShared(lockFile(dataDir), WAIT_MS)
  if (lock === null) throw new AppError('invalid_request', BUSY)
  const dir = mkdtempSync(join(dataDir, '.import-'))
  const end = (signal: NodeJS.Signals) => {
    remove()
    process.kill(process.pid, signal)
  }
  const remove = () => {
    for (const signal of SIGNALS) process.off(signal, end)
    rmSync(dir, { recursive: true, force: true })
    lock.release()
  }
  for (const signal of SIGNALS) process.on(signal, end)
  return { dir, remove }
}

/** Removes the directories that killed imports left, unless an import that lives has one. */
export function removeLeftScratch(dataDir: string): void {
  const left = () => readdirSync(dataDir).filter((name) => NAME.test(name))
  if (!existsSync(dataDir) || left().length === 0) return
  const lock = lockExclusively(lockFile(dataDir))
  if (lock === null) return
  try {
    for (const name of left()) rmSync(join(dataDir, name), { recursive: true, force: true })
  } finally {
    lock.release()
  }
}
