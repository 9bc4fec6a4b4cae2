import { and, desc, eq, lt } from 'drizzle-orm'
import * as z from 'zod'
import { auditLog } from '../../db/schema.ts'
import type { SignedInCtx } from '../base/context.ts'
import { timeField } from '../http/fields.ts'
import { SECOND_FACTORS, SIGN_IN_METHODS, type SignInMethod } from '../../shared/access/factors.ts'

export const signInSchema = z
  .object({
    id: z.int(),
    at: timeField,
    method: z.enum(SIGN_IN_METHODS),
    provider: z.string().nullable().describe('Of `oidc`: its name as in GET /api/auth/status; null: unknown'),
    ip: z.string().nullable(),
    browser: z.string().nullable().describe('Browser and system, such as `Firefox on Linux`'),
  })
  .meta({ id: 'SignIn', description: 'A successful sign-in' })

const detailsSchema = z.object({
  provider: z.enum(['local', 'oidc', 'proxy']).catch('local'),
  providerId: z.string().nullable().catch(null),
  factor: z.enum(SECOND_FACTORS).nullable().catch(null),
  alone: z.boolean().catch(false),
  browser: z.string().nullable().catch(null),
})

/** The viewer's own sign-ins as the audit log has them, newest first; `before` is an ID. */
export async function listSignIns(
  { store, viewer }: SignedInCtx,
  { limit, before }: { readonly limit: number; readonly before?: number | undefined },
): Promise<{ signIns: z.infer<typeof signInSchema>[]; nextBefore: number | null }> {
  const { id, timestamp, details, ip } = auditLog
  const own = and(
    eq(auditLog.userId, viewer.user.id),
    eq(auditLog.action, 'login_success'),
    before === undefined ? undefined : lt(id, before),
  )
  const rows = await store.db
    .select({ id, timestamp, details, ip })
    .from(auditLog)
    .where(own)
    .orderBy(desc(id))
    .limit(limit + 1)
    .all()
  const shown = rows.slice(0, limit).map((row) => {
    const found = detailsSchema.parse(JSON.parse(row.details))
    const { providerId: provider, browser } = found
    return { id: row.id, at: row.timestamp, method: methodOf(found), provider, ip: row.ip, browser }
  })
  return { signIns: shown, nextBefore: rows.length > limit ? (shown.at(-1)?.id ?? null) : null }
}

function methodOf({ provider, factor, alone }: z.infer<typeof detailsSchema>): SignInMethod {
  if (provider !== 'local') return provider
  if (factor === null) return 'password'
  return factor === 'passkey' && alone ? 'passkey' : `password+${factor}`
}
