import { sql } from 'drizzle-orm'
import * as z from 'zod'
import type { Store } from '../../../db/store.ts'
import { stillAdmin } from '../../accounts/users/still-admin.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { timeField } from '../../http/fields.ts'
import { audit } from '../../audit/audit.ts'

const MOST_SHOWN = 20

export const damageSchema = z
  .object({
    id: z.int().describe('ID of the entry `audit_damaged`'),
    timestamp: timeField.describe('When it was found'),
    damage: z.string().describe('What is wrong'),
  })
  .meta({ id: 'AuditDamage', description: 'Damage of the audit log that a start has found' })
type Damage = z.infer<typeof damageSchema>

/** Entries that say that the log is damaged, until an administrator confirms them or a later one. */
const unconfirmed = sql`from audit_log where action = 'audit_damaged' and id > coalesce(
  (select max(details ->> 'entryId') from audit_log where action = 'audit_damage_confirmed'), 0)`

/** What administrators have not confirmed yet: the newest 20, newest first. */
export async function listDamage({ db }: Store): Promise<Damage[]> {
  return db.all<Damage>(
    sql`select id, timestamp, details ->> 'damage' as damage ${unconfirmed} order by id desc limit ${MOST_SHOWN}`,
  )
}

/**
 * An administrator has seen what an entry `audit_damaged` and those before it say; they are not listed any more. Throws
 * `not_found`.
 */
export async function confirmDamage(ctx: SignedInCtx, id: number): Promise<void> {
  const { db } = ctx.store
  const found = await db.all(sql`select id from audit_log where action = 'audit_damaged' and id = ${id}`)
  if (found.length === 0) throw new AppError('not_found')
  const onlyIf = sql`exists (select 1 ${unconfirmed} and id = ${id})`
  await ctx.store.atomic([audit(ctx, 'audit_damage_confirmed', { entryId: id }, { onlyIf }), ...stillAdmin(ctx)])
}
