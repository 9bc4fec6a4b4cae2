import { sql } from 'drizzle-orm'
import type { Ports } from '../../base/context.ts'
import { expireCommands, isTimely } from './commands.ts'

type Needs = Pick<Ports, 'store' | 'now' | 'events' | 'radio'>

/**
 * Reads again if something that was read as waiting has expired. Only where nothing ends it at once: a service with
 * radios has a timer.
 */
export async function readTimely<Found>(
  ctx: Needs,
  read: () => Promise<Found>,
  isWaiting: (found: Found) => boolean,
): Promise<Found> {
  const found = await read()
  if (ctx.radio !== null || !isWaiting(found)) return found
  const [late] = await ctx.store.db.all(
    sql`select 1 from radio_commands c where c.ended_at is null and c.claim is null and not ${isTimely(ctx.now())} limit 1`,
  )
  if (late === undefined) return found
  await expireCommands(ctx)
  return read()
}
