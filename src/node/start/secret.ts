import {
  chmodSync,
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { randomToken } from '../../app/accounts/sessions/session-token.ts'

/**
 * The secret of this data directory: created at the first start, completely or not at all, and readable by the service
 * alone.
 */
export function keptSessionSecret(dataDir: string): string {
  const file = join(dataDir, 'session-secret')
  const known = readSecret(file)
  if (known !== null) return known
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  // The name is random, because two containers on one volume may have the same process id.
  const draft = `${file}.${randomToken()}`
  const fd = openSync(draft, 'wx', 0o600)
  writeSync(fd, `${randomToken()}\n`)
  fsyncSync(fd)
  closeSync(fd)
  chmodSync(draft, 0o600)
  try {
    // The link fails if another instance was first; then this one uses the secret of the other.
    linkSync(draft, file)
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
  } finally {
    rmSync(draft)
  }
  const made = readSecret(file)
  if (made === null) throw new Error(`${file} can't be read`)
  return made
}

function readSecret(file: string): string | null {
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null
    throw error
  }
  if (text.length < 32) throw new Error(`${file} does not hold a secret of at least 32 characters`)
  return text
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
