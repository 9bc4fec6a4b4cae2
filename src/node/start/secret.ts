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
import { randomToken } from '../../app/auth/sessions/session-token.ts'

/** The secret of this data directory: made at the first start, whole or not at all, readable by the service alone. */
export function keptSessionSecret(dataDir: string): string {
  const file = join(dataDir, 'session-secret')
  const known = readSecret(file)
  if (known !== null) return known
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  // A random name: in two containers on one volume the process ids are the same.
  const draft = `${file}.${randomToken()}`
  const fd = openSync(draft, 'wx', 0o600)
  writeSync(fd, `${randomToken()}\n`)
  fsyncSync(fd)
  closeSync(fd)
  chmodSync(draft, 0o600)
  try {
    // A link fails when another instance was first; then its secret counts.
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
