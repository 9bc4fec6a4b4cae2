import { eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { settings } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { type Chain, readChain } from '../chain.ts'

const KEY = 'auditAnchor'

const place = z.object({ id: z.int(), hash: z.string() })

const stateSchema = z.object({
  /** A hash of the address. For another address a new state begins. */
  target: z.string(),
  /** The day (UTC) of the latest anchor. */
  day: z.string(),
  /** Anchors that are not delivered yet, the oldest first. */
  pending: z.array(place.extend({ time: z.number() })),
  /** The last delivered entry; null: entries are not delivered. */
  last: place.nullable(),
  failures: z.int(),
  /** When to try next, in milliseconds. */
  nextAt: z.number(),
  deliveredAt: z.number().nullable(),
})
export type AnchorState = z.infer<typeof stateSchema>

/** The state that was read, and its text, which shows whether another process has changed it since. */
export type StoredState = { readonly state: AnchorState | null; readonly text: string | null }

const queries = prepareOnce((db) => ({
  read: db.select({ value: settings.value }).from(settings).where(eq(settings.key, KEY)).prepare(),
}))

/**
 * How far the log has been delivered. A restore brings back an earlier state together with its log. Then some entries
 * are delivered again, and none are left out.
 */
export async function readAnchorState(store: Store): Promise<StoredState> {
  const text = (await queries(store).read.get())?.value ?? null
  const parsed = text === null ? null : stateSchema.safeParse(JSON.parse(text))
  return { state: parsed?.success === true ? parsed.data : null, text }
}

/** Replaces the state that was read; null: another process was faster. */
export async function keepAnchorState(
  { db }: Store,
  before: StoredState,
  state: AnchorState,
  now: number,
): Promise<StoredState | null> {
  const text = JSON.stringify(state)
  const written =
    before.text === null
      ? await db
          .insert(settings)
          .values({ key: KEY, value: text, updatedAt: now })
          .onConflictDoNothing()
          .returning({ key: settings.key })
          .all()
      : await db
          .update(settings)
          .set({ value: text, updatedAt: now })
          .where(sql`${settings.key} = ${KEY} and ${settings.value} = ${before.text}`)
          .returning({ key: settings.key })
          .all()
  return written.length === 0 ? null : { state, text }
}

/** Anchors and sealed entries that wait to be delivered. */
export function countWaiting({ pending, last }: AnchorState, { sealedId }: Chain): number {
  return pending.length + (last === null ? 0 : Math.max(0, sealedId - last.id))
}

/** The progress for the metrics; null: no delivery has run yet. */
export async function readAnchorProgress(
  store: Store,
): Promise<{ waiting: number; failures: number; deliveredAt: number | null } | null> {
  const { state } = await readAnchorState(store)
  if (state === null) return null
  const { failures, deliveredAt } = state
  return { waiting: countWaiting(state, await readChain(store)), failures, deliveredAt }
}
