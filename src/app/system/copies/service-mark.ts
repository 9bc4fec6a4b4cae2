import { eq } from 'drizzle-orm'
import * as z from 'zod'
import { settings } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import { toHex } from '../../base/crypto.ts'

/** With the prefix of the other settings of backups, which the general list leaves out. */
export const SERVICE_MARK_KEY = 'backup.copiesMark'
const markSchema = z.string().regex(/^[\da-f]{16}$/)

/**
 * What the places of this service bear, 16 hexadecimal digits: the names of copies are only times, so two services at
 * one place would replace and delete each other's. Made when it is first needed; a restored service has the same.
 */
export async function readServiceMark({ db }: Store, now: number): Promise<string> {
  const read = async () => {
    const row = await db
      .select({ value: settings.value })
      .from(settings)
      .where(eq(settings.key, SERVICE_MARK_KEY))
      .get()
    return row === undefined ? null : markSchema.parse(JSON.parse(row.value))
  }
  const known = await read()
  if (known !== null) return known
  const made = toHex(crypto.getRandomValues(new Uint8Array(8)))
  await db
    .insert(settings)
    .values({ key: SERVICE_MARK_KEY, value: JSON.stringify(made), updatedAt: now })
    .onConflictDoNothing()
    .run()
  return (await read()) ?? made
}
