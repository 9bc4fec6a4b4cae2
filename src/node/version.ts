import { readFileSync } from 'node:fs'
import * as z from 'zod'

/** The version in package.json, as far from `src/node` as from `dist/node`. */
export function readAppVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version
}
