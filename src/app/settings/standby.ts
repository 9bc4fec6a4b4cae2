import { eq, sql } from 'drizzle-orm'
import { settings } from '../../db/schema.ts'
import type { Statement, Store } from '../../db/store.ts'

/** Beside the settings that users can change: only the command line writes it. */
const KEY = 'standby'

/** As SQL: this service stores what another one with radios delivers, until it takes that one's place. */
export const IS_STANDBY = sql.raw(`exists (select 1 from settings where key = '${KEY}' and value = 'true')`)

/** `promoted`: it was a standby. */
export async function readStandby({ db }: Store): Promise<'standby' | 'promoted' | 'never'> {
  const row = await db.select({ value: settings.value }).from(settings).where(eq(settings.key, KEY)).get()
  if (row === undefined) return 'never'
  return row.value === 'true' ? 'standby' : 'promoted'
}

export function writeStandby({ db }: Store, isStandby: boolean, now: number): Statement {
  const row = { key: KEY, value: JSON.stringify(isStandby), updatedAt: now }
  return db
    .insert(settings)
    .values(row)
    .onConflictDoUpdate({ target: settings.key, set: { value: row.value, updatedAt: row.updatedAt } })
}
