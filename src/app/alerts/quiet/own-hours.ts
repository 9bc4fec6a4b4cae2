import { eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { users } from '../../../db/schema.ts'
import { audit } from '../../audit/audit.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { timeField } from '../../http/fields.ts'
import { tellOwner } from '../../mesh/live/tell-owner.ts'
import { readQuietHours, releaseHeld } from './hold.ts'
import { quietHoursSchema, quietUntil } from './hours.ts'

export const keptQuietHoursSchema = z.strictObject({
  quietHours: quietHoursSchema.nullable().describe('null: none, messages are always sent at once'),
})

export const ownQuietHoursSchema = z.object({
  ...keptQuietHoursSchema.shape,
  until: timeField.nullable().describe('When those end that apply now; null: messages are sent at once now'),
})

/** The viewer's quiet hours. */
export async function getQuietHours({ store, viewer, now }: SignedInCtx): Promise<z.infer<typeof ownQuietHoursSchema>> {
  const quietHours = await readQuietHours(store, viewer.user.id)
  return { quietHours, until: quietHours === null ? null : quietUntil(quietHours, now()) }
}

/** Changes the viewer's quiet hours. What the previous ones hold is sent, unless the new ones hold it as well. */
export async function keepQuietHours(
  ctx: SignedInCtx,
  { quietHours }: z.infer<typeof keptQuietHoursSchema>,
): Promise<z.infer<typeof ownQuietHoursSchema>> {
  const { store, viewer } = ctx
  const { id } = viewer.user
  const before = await readQuietHours(store, id)
  const stored = quietHours === null ? null : JSON.stringify(quietHours)
  await store.atomic([
    store.db
      .update(users)
      .set({ quietHours: stored })
      .where(sql`${eq(users.id, id)} and quiet_hours is not ${stored}`),
    audit(ctx, 'quiet_hours_updated', { before, after: quietHours }, { onlyIfChanged: true }),
    releaseHeld(store, id, ctx.now()),
  ])
  tellOwner(ctx, id)
  return getQuietHours(ctx)
}
