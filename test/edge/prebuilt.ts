import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The text of wrangler.toml without the command that builds: wrangler would rebuild at each start. */
export function prebuiltConfig(): string {
  const config = readFileSync(join(fileURLToPath(new URL('../..', import.meta.url)), 'wrangler.toml'), 'utf8')
  const [command] = /^\[build\]\ncommand = .*\n/m.exec(config) ?? []
  if (command === undefined) throw new Error('wrangler.toml builds nothing')
  return config.replace(command, '')
}
