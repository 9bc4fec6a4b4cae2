import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { DAY_MS } from '../../../../shared/time.ts'
import { oldestHearing } from '../oldest.ts'
import { aboutHeard, defineRule } from '../rule.ts'

/** CVE-2025-52464: these versions could make the same key on several devices. */
const WEAK_KEYS = { from: [2, 5, 0], to: [2, 6, 10] } as const

/** Firmware that is known to be broken. */
export const firmware = defineRule({
  name: 'firmware',
  evidence: z.object({ version: z.string() }),
  past: { everyMs: DAY_MS, oldest: oldestHearing },
  async look(looking) {
    const { store, now } = looking
    const rows = await aboutHeard(looking, (nums) =>
      store.db.all<{ nodeNum: number; version: string | null }>(
        sql`select n.node_num as nodeNum, coalesce((select c.before from node_changes c where c.node_num = n.node_num
            and c.field = 'firmwareVersion' and c.t > ${now} order by c.id limit 1), n.firmware_version) as version
          from nodes n where n.node_num in (select value from json_each(${nums}))`,
      ),
    )
    return rows
      .flatMap(({ nodeNum, version }) => (version === null ? [] : [{ nodeNum, version }]))
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
