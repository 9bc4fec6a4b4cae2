import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import {
  alertDestinations,
  identities,
  passkeys,
  recoveryCodes,
  totpFactors,
  users,
  verifiedEmails,
} from '../../../db/schema.ts'
import type { Statement, Store } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import { endVerifiedEmail, forgetPreviousEmail } from '../../accounts/users/verified-email.ts'
import { dropIdleCodes } from '../../accounts/factors/factors.ts'
import type { Ctx } from '../../base/context.ts'
import { stillAdmin } from '../../accounts/users/still-admin.ts'
import { providerIdOf } from '../../accounts/users/identities.ts'
import { hasWayBesides, keepRealAdmin } from '../../accounts/users/way-in.ts'
import { nextEpoch } from '../../accounts/users/users.ts'

const totpSchema = z.object({ seed: z.string(), lastStep: z.int(), createdAt: z.int(), lastUsedAt: z.int().nullable() })

const passkeySchema = z.object({
  name: z.string(),
  credentialId: z.string(),
  publicKey: z.string(),
  counter: z.int(),
  isBackupEligible: z.boolean(),
  isBackedUp: z.boolean(),
  transports: z.array(z.string()),
  rpId: z.string(),
  createdAt: z.int(),
  lastUsedAt: z.int().nullable(),
})

const codesSchema = z.array(z.object({ hash: z.string(), usedBy: z.string().nullable() }))

/**
 * How a change that removed access is repeated after a restore undid it. Contains secrets. It refers to things by what
 * stays the same between a database and its backups: credentials and hashes, never a name that a user typed.
 */
export const undoneSchema = z.discriminatedUnion('repeat', [
  z.object({ repeat: z.literal('remove_passkey'), credentialId: z.string() }),
  z.object({ repeat: z.literal('add_passkey'), passkey: passkeySchema, codes: codesSchema }),
  /** `from`: when the app that the restore brought back was set up; null: none. `to`: the newer one. */
  z.object({
    repeat: z.literal('set_totp'),
    from: z.int().nullable(),
    to: totpSchema.nullable(),
    codes: codesSchema,
  }),
  /** `codes`: all codes that the user had; `restoredAccess`: those that work again. */
  z.object({ repeat: z.literal('set_codes'), codes: codesSchema, restoredAccess: z.array(z.string()) }),
  z.object({ repeat: z.literal('cut_link'), issuer: z.string(), subject: z.string() }),
  z.object({ repeat: z.literal('set_groups_provider'), from: z.string(), to: z.string().nullable() }),
  z.object({ repeat: z.literal('set_email'), from: z.string().nullable(), to: z.string().nullable() }),
  z.object({ repeat: z.literal('end_email_confirmation'), email: z.string() }),
  z.object({ repeat: z.literal('end_destination'), uid: z.string(), how: z.enum(['delete', 'hold']) }),
])
export type Undone = z.infer<typeof undoneSchema>

/** A condition: the restore's effect is still there. Somebody may have repeated the change by hand. */
function stillThere(userId: number, undone: Undone): SQL {
  switch (undone.repeat) {
    case 'remove_passkey':
      return sql`exists (select 1 from ${passkeys} where ${ownPasskey(userId, undone.credentialId)})`
    case 'add_passkey':
      return sql`not exists (select 1 from ${passkeys} where ${eq(passkeys.credentialId, undone.passkey.credentialId)})`
    case 'set_totp':
      return sql`(select ${totpFactors.createdAt} from ${totpFactors} where ${eq(totpFactors.userId, userId)}) is ${undone.from}`
    case 'set_codes':
      return sql`exists (select 1 from ${recoveryCodes} where ${and(
        eq(recoveryCodes.userId, userId),
        isNull(recoveryCodes.usedBy),
        sql`code_hash in (select value from json_each(${JSON.stringify(undone.restoredAccess)}))`,
      )})`
    case 'cut_link':
      return sql`exists (select 1 from ${identities} where ${linked(userId, undone)})`
    case 'set_groups_provider':
      return sql`exists (select 1 from ${users} where ${ruledBy(userId, undone.from)})`
    case 'set_email':
      return sql`exists (select 1 from ${users} where ${eq(users.id, userId)} and ${users.email} is ${undone.from})`
    case 'end_email_confirmation':
      return sql`exists (select 1 from ${verifiedEmails} where ${confirmed(userId, undone.email)})`
    case 'end_destination':
      return sql`exists (select 1 from ${alertDestinations} where ${liveDestination(userId, undone)})`
    default:
      return undone satisfies never
  }
}

const ownPasskey = (userId: number, credentialId: string) =>
  and(eq(passkeys.userId, userId), eq(passkeys.credentialId, credentialId))
const linked = (userId: number, { issuer, subject }: { issuer: string; subject: string }) =>
  and(eq(identities.userId, userId), eq(identities.issuer, issuer), eq(identities.subject, subject))
const ruledBy = (userId: number, issuer: string) => and(eq(users.id, userId), eq(users.oidcIssuer, issuer))
const confirmed = (userId: number, email: string) =>
  and(eq(verifiedEmails.userId, userId), eq(verifiedEmails.email, email), isNull(verifiedEmails.endedAt))
const liveDestination = (userId: number, { uid, how }: { uid: string; how: 'delete' | 'hold' }) =>
  and(
    eq(alertDestinations.ownerId, userId),
    eq(alertDestinations.uid, uid),
    how === 'hold' ? isNull(alertDestinations.heldAt) : undefined,
  )

/** Whether the restore's effect is still there. */
export async function isStillUndone({ db }: Store, userId: number, undone: Undone): Promise<boolean> {
  const row = await db.get<{ is: number }>(sql`select ${stillThere(userId, undone)} as "is"`)
  return row?.is === 1
}

type Whose = { readonly userId: number; readonly username: string | null; readonly what: string | null }

/**
 * Repeats the change. If it was about a way to sign in, the user's sessions end, except when users repeat it for
 * themselves. Throws `last_admin`.
 */
export async function repeatUndone(ctx: Ctx, whose: Whose, undone: Undone): Promise<void> {
  const { userId } = whose
  const is = stillThere(userId, undone)
  const isWayIn = undone.repeat !== 'end_destination' && undone.repeat !== 'set_groups_provider'
  const endsSessions = isWayIn && ctx.viewer?.user.id !== userId
  await ctx.store.atomic([
    record(ctx, whose, undone, is),
    ...(undone.repeat === 'cut_link' ? [keepRealAdmin(ctx, userId, hasWayBesides(ctx.config, undone.issuer))] : []),
    ...(endsSessions
      ? [
          ctx.store.db
            .update(users)
            .set({ sessionEpoch: nextEpoch })
            .where(and(eq(users.id, userId), is)),
        ]
      : []),
    ...changes(ctx, whose, undone, is),
    ...stillAdmin(ctx),
  ])
  if (endsSessions) await ctx.sessions.removeForUser(userId)
}

function record(ctx: Ctx, { userId, username, what }: Whose, undone: Undone, onlyIf: SQL): Statement {
  const about = { userId, username, reapplied: true }
  const options = { onlyIf }
  switch (undone.repeat) {
    case 'remove_passkey':
      return audit(ctx, 'second_factor_removed', { ...about, factor: 'passkey', name: what }, options)
    case 'add_passkey':
      return audit(ctx, 'second_factor_added', { ...about, factor: 'passkey', name: what }, options)
    case 'set_totp': {
      const action = undone.to === null ? 'second_factor_removed' : 'second_factor_added'
      return audit(ctx, action, { ...about, factor: 'totp' }, options)
    }
    case 'set_codes':
      return audit(ctx, 'recovery_codes_created', { ...about, codes: undone.codes.length }, options)
    case 'cut_link': {
      const { issuer, subject } = undone
      const providerId = providerIdOf(ctx, issuer)
      return audit(ctx, 'account_unlinked', { ...about, issuer, subject, providerId }, options)
    }
    case 'set_groups_provider': {
      const [before, after] = [{ groupsOf: undone.from }, { groupsOf: undone.to }]
      const providerId = providerIdOf(ctx, undone.to)
      return audit(ctx, 'groups_provider_changed', { ...about, before, after, providerId }, options)
    }
    case 'set_email':
      return audit(
        ctx,
        'user_updated',
        { ...about, before: { email: undone.from }, after: { email: undone.to } },
        options,
      )
    case 'end_email_confirmation': {
      const [before, after] = [{ emailVerified: true }, { emailVerified: false }]
      return audit(ctx, 'user_updated', { ...about, before, after }, options)
    }
    case 'end_destination': {
      const after = undone.how === 'delete' ? null : { held: 'restore' }
      return audit(ctx, 'alert_destination_updated', { ...about, name: what, after }, options)
    }
    default:
      return undone satisfies never
  }
}

function changes(ctx: Ctx, { userId }: Whose, undone: Undone, is: SQL): Statement[] {
  const { db } = ctx.store
  const now = ctx.now()
  switch (undone.repeat) {
    case 'remove_passkey':
      return [db.delete(passkeys).where(ownPasskey(userId, undone.credentialId)), dropIdleCodes(ctx, userId)]
    case 'add_passkey':
      return [
        db
          .insert(passkeys)
          .values({ ...undone.passkey, userId })
          .onConflictDoNothing(),
        insertCodes(ctx, userId, undone.codes, hasNoCodes(userId)),
      ]
    case 'set_totp': {
      const { from, to, codes } = undone
      const old = sql`${totpFactors.createdAt} is ${from}`
      return [
        db.delete(totpFactors).where(and(eq(totpFactors.userId, userId), old)),
        ...(to === null
          ? [dropIdleCodes(ctx, userId)]
          : [
              db
                .insert(totpFactors)
                .values({ ...to, userId })
                .onConflictDoNothing(),
              insertCodes(ctx, userId, codes, hasNoCodes(userId)),
            ]),
      ]
    }
    case 'set_codes':
      return [
        db.delete(recoveryCodes).where(eq(recoveryCodes.userId, userId)),
        insertCodes(ctx, userId, undone.codes, sql`true`),
        dropIdleCodes(ctx, userId),
      ]
    case 'cut_link':
      return [db.delete(identities).where(linked(userId, undone))]
    case 'set_groups_provider':
      return [db.update(users).set({ oidcIssuer: undone.to }).where(ruledBy(userId, undone.from))]
    case 'set_email':
      return [
        db
          .update(users)
          .set({ email: undone.to })
          .where(and(eq(users.id, userId), is)),
        ...forgetPreviousEmail(ctx.store, userId, now),
      ]
    case 'end_email_confirmation':
      return endVerifiedEmail(ctx.store, userId, now)
    case 'end_destination':
      return undone.how === 'delete'
        ? [db.delete(alertDestinations).where(liveDestination(userId, undone))]
        : [db.update(alertDestinations).set({ heldAt: now, heldFor: 'restore' }).where(liveDestination(userId, undone))]
    default:
      return undone satisfies never
  }
}

const hasNoCodes = (userId: number) =>
  sql`not exists (select 1 from ${recoveryCodes} where ${eq(recoveryCodes.userId, userId)})`

function insertCodes({ store }: Ctx, userId: number, codes: z.infer<typeof codesSchema>, onlyIf: SQL): Statement {
  return insertSelect(
    store.db,
    recoveryCodes,
    { userId, codeHash: sql`value ->> 'hash'`, usedBy: sql`value ->> 'usedBy'` },
    sql`from json_each(${JSON.stringify(codes)}) where ${onlyIf}`,
  )
}
