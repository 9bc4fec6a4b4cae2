import { and, asc, count, eq, isNull, sql } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { factorResets, passkeys, recoveryCodes, totpFactors, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { holdDestinations } from '../users/hold-destinations.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { timeField } from '../../http/fields.ts'
import { stillAdmin } from '../users/still-admin.ts'
import { getUser, nextEpoch } from '../users/users.ts'
import { endVerifiedEmail } from '../users/verified-email.ts'
import type { SecondFactor } from '../../../shared/access/factors.ts'
import { forgiveCodes } from '../passwords/login-limiter.ts'
import { factorChanged } from './changes.ts'
import { hasFactor, hasSecondFactor } from '../users/has-factor.ts'
import type { Party } from './relying-party.ts'
import { isSeedReadable } from './totp.ts'

const passkeySchema = z
  .object({
    id: z.int(),
    name: z.string(),
    createdAt: timeField,
    lastUsedAt: timeField.nullable(),
    isBackedUp: z.boolean().describe('Whether it is synchronised between devices, e.g. by a password manager'),
    host: z.string().describe('The host name that it belongs to'),
    isUsable: z.boolean().describe('false: the service has another host name now, where browsers refuse the passkey'),
  })
  .meta({ id: 'Passkey' })

export const factorsSchema = z
  .object({
    totp: z
      .object({
        createdAt: timeField,
        lastUsedAt: timeField.nullable(),
        isReadable: z.boolean().describe('false: SESSION_SECRET has changed since it was set up'),
      })
      .nullable(),
    passkeys: z.array(passkeySchema),
    recoveryCodesLeft: z.int(),
  })
  .meta({ id: 'SecondFactors', description: 'A second factor for signing in' })

/** The second factors of a user; `party` is where passkeys would be used. */
export async function listFactors(
  ctx: Ctx,
  userId: number,
  party: Party | null,
): Promise<z.infer<typeof factorsSchema>> {
  const { db } = ctx.store
  const totp = await db.select().from(totpFactors).where(eq(totpFactors.userId, userId)).get()
  const { id, name, createdAt, lastUsedAt, isBackedUp, rpId: host } = passkeys
  const keys = await db
    .select({ id, name, createdAt, lastUsedAt, isBackedUp, host })
    .from(passkeys)
    .where(eq(passkeys.userId, userId))
    .orderBy(asc(passkeys.id))
    .all()
  return {
    totp:
      totp === undefined
        ? null
        : {
            createdAt: totp.createdAt,
            lastUsedAt: totp.lastUsedAt,
            isReadable: await isSeedReadable(ctx, userId, totp.seed),
          },
    passkeys: keys.map((key) => ({ ...key, isUsable: key.host === party?.id })),
    recoveryCodesLeft: await db.$count(
      recoveryCodes,
      and(eq(recoveryCodes.userId, userId), isNull(recoveryCodes.usedBy)),
    ),
  }
}

/** How this user can prove who they are in a second step; empty without a second factor. */
export async function listSecondFactors(ctx: Ctx, userId: number, party: Party | null): Promise<SecondFactor[]> {
  const { totp, passkeys: keys, recoveryCodesLeft } = await listFactors(ctx, userId, party)
  if (totp === null && keys.length === 0) return []
  if (totp?.isReadable === false) {
    ctx.log.warn('A second factor cannot be read: SESSION_SECRET has changed since it was set up', { userId })
  }
  const offered: [isOffered: boolean, factor: SecondFactor][] = [
    [totp?.isReadable === true, 'totp'],
    [keys.some(({ isUsable }) => isUsable), 'passkey'],
    [recoveryCodesLeft > 0, 'recovery'],
  ]
  // A user with an unreadable factor and no codes left must not sign in without one. The command line can reset it.
  const factors = offered.flatMap(([isOffered, factor]) => (isOffered ? [factor] : []))
  return factors.length === 0 ? ['recovery'] : factors
}

/** The recovery codes are deleted with the last second factor. */
export function dropIdleCodes({ store }: Ctx, userId: number): Statement {
  return store.db.delete(recoveryCodes).where(and(eq(recoveryCodes.userId, userId), sql`not ${hasFactor(userId)}`))
}

/** Removes the viewer's authenticator app. Throws `factor_not_found`. */
export async function removeTotp(ctx: SignedInCtx): Promise<void> {
  const { id } = ctx.viewer.user
  const own = eq(totpFactors.userId, id)
  const known = await ctx.store.db.select({ id: totpFactors.userId }).from(totpFactors).where(own).get()
  if (known === undefined) throw new AppError('factor_not_found')
  await ctx.store.atomic([
    ctx.store.db.delete(totpFactors).where(own),
    ...factorChanged(ctx, 'second_factor_removed', { factor: 'totp' }),
    dropIdleCodes(ctx, id),
  ])
}

/**
 * Removes every second factor and recovery code of a user who lost them. Their sessions end, and they are notified at
 * the next sign-in. Throws `user_not_found`, `self_change_forbidden`, `no_second_factor`.
 */
export async function resetSecondFactor(ctx: Ctx, id: number): Promise<void> {
  const user = await getUser(ctx.store, id)
  // Users remove their own factors on their account page.
  if (id === ctx.viewer?.user.id) throw new AppError('self_change_forbidden')
  const { db } = ctx.store
  const has = hasFactor(id)
  const counted = {
    totp: sql`(select count(*) from ${totpFactors} where ${eq(totpFactors.userId, id)})`,
    passkeys: sql`(select count(*) from ${passkeys} where ${eq(passkeys.userId, id)})`,
  }
  const before = await db
    .select({ n: count() })
    .from(users)
    .where(and(eq(users.id, id), hasSecondFactor))
    .get()
  if (before?.n !== 1) throw new AppError('no_second_factor')
  await ctx.store.atomic([
    ...factorChanged(ctx, 'second_factor_reset', { userId: id, username: user.username, ...counted }, has),
    insertSelect(db, factorResets, { userId: id, resetAt: ctx.now() }, sql`where ${has}`).onConflictDoUpdate({
      target: factorResets.userId,
      set: { resetAt: ctx.now() },
    }),
    db
      .update(users)
      .set({ sessionEpoch: nextEpoch })
      .where(and(eq(users.id, id), has)),
    db.delete(totpFactors).where(eq(totpFactors.userId, id)),
    db.delete(passkeys).where(eq(passkeys.userId, id)),
    db.delete(recoveryCodes).where(eq(recoveryCodes.userId, id)),
    ...holdDestinations(ctx, user, 'second_factor_reset'),
    ...endVerifiedEmail(ctx.store, id, ctx.now()),
    ...stillAdmin(ctx),
  ])
  await ctx.sessions.removeForUser(id)
  await forgiveCodes(ctx, id)
}

/** Confirms the notice that an administrator removed the viewer's second factors. */
export async function dismissReset({ store, viewer }: SignedInCtx): Promise<void> {
  await store.db.delete(factorResets).where(eq(factorResets.userId, viewer.user.id)).run()
}
