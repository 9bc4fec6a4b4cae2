import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { BOUNDS, type BoundTable, boundsOf, USUAL_LIMIT_BYTES } from '../../src/app/retention/bounds.ts'
import { RETAINED_TABLES } from '../../src/db/schema.ts'
import { SETTING_OF } from '../../src/app/retention/plan.ts'
import { readSettings } from '../../src/app/settings/settings.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const NAMES: readonly (readonly [BoundTable, string])[] = [
  ['telemetry', 'measurements'],
  ['telemetry_hourly', 'their hourly values'],
  ['telemetry_daily', 'their daily values'],
  ['packets', 'packet log'],
  ['proven_packets', 'proven packets of the edge'],
  ['positions', 'tracks of nodes'],
  ['messages', 'messages'],
  ['receptions', 'their receptions'],
  ['traceroutes', 'traceroutes'],
]

test('the table of what is kept in the documentation matches the bounds and the settings', async () => {
  const settings = await readSettings(openMemoryStore())
  const text = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  const retained = new Map<string, string>(
    RETAINED_TABLES.map((table) => [table, `\`${SETTING_OF[table]}\` | ${settings[SETTING_OF[table]]} days`]),
  )
  const without: Partial<Record<BoundTable, string>> = {
    telemetry_daily: 'none | for ever',
    proven_packets: 'with the packet log | ',
  }
  for (const [table, name] of NAMES) {
    const bound = BOUNDS[table]
    if (!('share' in bound)) throw new Error(`${table} has no share`)
    const kept = retained.get(table) ?? without[table] ?? 'with the messages | '
    const [most, at] = [bound.most, boundsOf(USUAL_LIMIT_BYTES)[table]].map((rows) => rows.toLocaleString('en'))
    expect(text).toContain(
      `| ${name} | ${kept} | ${Math.round(bound.share * 100)} % | ${most} | ${at} |`.replace('  ', ' '),
    )
  }
})
