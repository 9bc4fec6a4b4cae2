import { accessSync, constants, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Config } from '../app/config/config.ts'
import { hasCode } from './backup/error-code.ts'

/** The machine is not what the configuration says. The message is one line of the form that `parseConfig` gives. */
export class StartRefused extends Error {
  override name = 'StartRefused'
}

/** Makes the data directory unless it is there. Throws StartRefused when it can't be made, read or written. */
export function prepareDataDir(directory: string): void {
  try {
    makeDirectory(resolve(directory))
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    refuse(`DATA_DIR: found ${JSON.stringify(directory)}, expected a directory that can be made and written`, error)
  }
}

// Not by `recursive: true`: that never ends where a directory exists and takes no other one, as /proc does.
function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (hasCode(error, 'EEXIST') && statSync(path).isDirectory()) return
    if (!hasCode(error, 'ENOENT') || dirname(path) === path) throw error
    makeDirectory(dirname(path))
    mkdirSync(path, { mode: 0o700 })
  }
}

/** Says what is wrong with the address that can't be listened on. Throws StartRefused, or the error that it doesn't know. */
export function refuseAddress({ PORT, HOST }: Pick<Config, 'PORT' | 'HOST'>, error: unknown): never {
  const found = `found ${PORT} on ${JSON.stringify(HOST)}`
  if (hasCode(error, 'EADDRINUSE')) refuse(`PORT: ${found}, expected a port that nobody else listens on`, error)
  if (hasCode(error, 'EACCES')) refuse(`PORT: ${found}, expected a port that this user may listen on`, error)
  if (hasCode(error, 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAFNOSUPPORT')) {
    refuse(`HOST: found ${JSON.stringify(HOST)}, expected an address of this machine`, error)
  }
  throw error
}

function refuse(line: string, cause: unknown): never {
  const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : ''
  throw new StartRefused(`${line}${code}`, { cause })
}
