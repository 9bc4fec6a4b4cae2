import { readFileSync } from 'node:fs'
import { type ConfigResult, namesOfVariables, parseConfig, secretsOf } from '../../app/config/config.ts'
import { shownValue } from '../../app/config/shown.ts'
import { findUnknown, type UnknownVariable } from '../../app/config/unknown.ts'

const MAX_BYTES = 65_536

/**
 * Reads the environment. Each secret may also be in a file whose path is in `<NAME>_FILE`, as containers and systemd
 * provide secrets. White space at the end of the file does not count. Each problem is one line, as from `parseConfig`.
 */
export function readConfig(env: Readonly<Record<string, string | undefined>>): ConfigResult {
  const problems: string[] = []
  const given = { ...env }
  for (const name of secretsOf(env)) {
    const path = env[`${name}_FILE`] ?? ''
    if (path === '') continue
    const found = `${name}_FILE: found ${shownValue(path)}, expected`
    if ((env[name] ?? '') !== '') problems.push(`${found} nothing because ${name} is set`)
    try {
      const text = readFileSync(path, 'utf8').trimEnd()
      if (text === '') problems.push(`${found} a file that holds the secret; it is empty`)
      else if (text.length > MAX_BYTES) problems.push(`${found} a file of at most ${MAX_BYTES} characters`)
      given[name] = text
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
      problems.push(`${found} a file that this user can read${code}`)
    }
  }
  return problems.length > 0 ? { ok: false, problems } : parseConfig(given)
}

/** The variables that have no effect although they look like ours. */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): UnknownVariable[] {
  return findUnknown(env, namesOfVariables(env))
}
