import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { DAY_MS } from '../../../../shared/time.ts'
import { defineRule } from '../rule.ts'

/** CVE-2025-52464: these versions could make the same key on several devices. */
const WEAK_KEYS = { from: [2, 5, 0], to: [2, 6, 10] } as const

/** Firmware that is known to be broken. */
export const firmware = defineRule({
  name: 'firmware',
  evidence: z.object({ version: z.string() }),
  async look({ store, now }) {
    const rows = await store.db.all<{ nodeNum: number; version: string }>(
      sql`select node_num as nodeNum, firmware_version as version from nodes
        where not is_hidden and firmware_version is not null and last_heard >= ${now - 7 * DAY_MS}`,
    )
    return rows
      .filter(({ version }) => isWithin(version))
      .map(({ nodeNum, version }) => ({ nodes: [nodeNum], channels: [], isLikely: true, evidence: { version } }))
  },
})

function isWithin(version: string): boolean {
  const parts = version.split('.').slice(0, 3).map(Number)
  return parts.length === 3 && compare(parts, WEAK_KEYS.from) >= 0 && compare(parts, WEAK_KEYS.to) <= 0
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((part, index) => part !== b[index])
  return at === -1 ? 0 : (a[at] ?? 0) - (b[at] ?? 0)
}
