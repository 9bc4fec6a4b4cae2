import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Cron } from 'croner'
import { afterAll, expect, test } from 'vitest'
// @ts-expect-error -- a script without types
import { workerPlugins } from '../../scripts/worker-plugins.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CRONER = join(ROOT, 'node_modules/croner/dist/croner.js')
const folder = mkdtempSync(join(tmpdir(), 'mesh-croner-'))
afterAll(() => rmSync(folder, { recursive: true }))

const PATTERNS = [
  '*/5 * * * *',
  '30 2 * * *',
  '30 2 * * 0',
  '0 0 L * *',
  '0 2 15W * *',
  '0 9 * * MON-FRI',
  '0 9 * * 1#2',
  '0 9 * * 5L',
  '0 12 31 * *',
  '0 0 29 2 *',
  '5,35 */3 * JAN,MAR *',
]
const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata']
const REFUSED = ['61 * * * *', 'a b c d e', '* * * *', '0 0 0 0 0']

async function loadCut(): Promise<typeof Cron> {
  const plugin = workerPlugins(ROOT).find(({ name }: { name: string }) => name === 'only-next-runs')
  const file = join(folder, 'croner.mjs')
  writeFileSync(file, plugin.transform(readFileSync(CRONER, 'utf8'), CRONER).code)
  return (await import(pathToFileURL(file).href)).Cron
}

function slots(Kind: typeof Cron, pattern: string, timezone: string): unknown {
  try {
    const cron = new Kind(pattern, { timezone, paused: true, mode: '5-part', fixedTimeRule: 'no-wildcard' })
    const found: (number | undefined)[] = []
    for (let at: number | undefined = Date.UTC(2026, 2, 20); at !== undefined && found.length < 20;) {
      at = cron.nextRun(new Date(at))?.getTime()
      found.push(at)
    }
    return found
  } catch (error) {
    return String(error)
  }
}

test('what the worker keeps of croner finds the same times, and refuses the same patterns', async () => {
  const Cut = await loadCut()
  for (const pattern of [...PATTERNS, ...REFUSED])
    for (const zone of ZONES)
      expect([pattern, slots(Cut, pattern, zone)]).toEqual([pattern, slots(Cron, pattern, zone)])
  expect(REFUSED.map((pattern) => typeof slots(Cut, pattern, 'UTC'))).toEqual(REFUSED.map(() => 'string'))
})
