import { eq, sql } from 'drizzle-orm'
import { users } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { isLanguage, type Language } from '../../../shared/languages.ts'
import { UNIT_SYSTEMS, type UnitSystem } from '../../../shared/mesh/unit-systems.ts'
import type { SignedInCtx } from '../../base/context.ts'
import type { Reader } from '../../words/reader.ts'

const queries = prepareOnce((db) => ({
  reader: db
    .select({ language: users.language, ofBrowser: users.browserLanguage, units: users.units })
    .from(users)
    .where(eq(users.id, sql.placeholder('id')))
    .prepare(),
}))

/**
 * How to write to a user: in the language that they chose, else in that of the browser that signed in last, else in
 * `otherwise`; in the units that they chose.
 */
export async function readerOf(store: Store, id: number, otherwise: Language = 'en'): Promise<Reader> {
  const found = await queries(store).reader.get({ id })
  const language = languageIn(found?.language) ?? languageIn(found?.ofBrowser) ?? otherwise
  return { language, units: unitsIn(found?.units) ?? 'metric' }
}

/** A stored language; null: none, or another version knows it. */
export function languageIn(stored: string | null | undefined): Language | null {
  return stored != null && isLanguage(stored) ? stored : null
}

/** Stored units; null: none, or another version knows them. */
export function unitsIn(stored: string | null | undefined): UnitSystem | null {
  return UNIT_SYSTEMS.find((known) => known === stored) ?? null
}

export type Preferences = {
  readonly language?: Language | null | undefined
  readonly units?: UnitSystem | null | undefined
}

/** Changes how the viewer reads pages and messages; what is absent stays. Null: as the browser says, or metric. */
export async function keepPreferences({ store, viewer }: SignedInCtx, { language, units }: Preferences): Promise<void> {
  const changes = { ...(language !== undefined && { language }), ...(units !== undefined && { units }) }
  if (Object.keys(changes).length === 0) return
  await store.db.update(users).set(changes).where(eq(users.id, viewer.user.id)).run()
}
