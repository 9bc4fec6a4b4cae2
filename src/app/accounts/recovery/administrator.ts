import { and, eq, isNull, or, sql } from 'drizzle-orm'
import { insertSelect } from '../../../db/insert-select.ts'
import { apiTokens, factorResets, passkeys, recoveryCodes, sessions, totpFactors, users } from '../../../db/schema.ts'
import type { Statement, Store } from '../../../db/store.ts'
import { holdDestinations } from '../users/hold-destinations.ts'
import { audit } from '../../audit/audit.ts'
import { factorChanged } from '../factors/changes.ts'
import { hasSecondFactor } from '../users/has-factor.ts'
import { forgiveInDatabase } from '../passwords/login-limiter.ts'
import { storedPermissionsJson, writePermissions } from '../users/permissions.ts'
import { nextEpoch, userIdByName } from '../users/users.ts'
import { endVerifiedEmail } from '../users/verified-email.ts'
import { ALL_PERMISSIONS } from '../../../shared/access/resources.ts'

/** The time of the database's own clock, in ms. */
const NOW = sql`cast(unixepoch('subsec') * 1000 as integer)`

/**
 * Statements that make the user with this name an active administrator, or create one, in a database that this process
 * cannot reach. Run in order, they depend only on the content of the database then, and may run twice. A local user
 * gets the temporary password of the hash; a user of OpenID Connect keeps that way to sign in. Second factors, sessions
 * and API tokens end, so does the proof of the e-mail address, and destinations of alerts are held. `store` only builds the statements.
 */
export function statementsForRecovery(
  store: Store,
  { username, passwordHash }: { readonly username: string; readonly passwordHash: string },
): Statement[] {
  const { db } = store
  const ctx = { store, viewer: null, ip: null, requestId: 'console', now: () => NOW }
  const userId = userIdByName(username)
  const named = eq(users.id, userId)
  const isUser = (...also: Parameters<typeof and>) => sql`exists (select 1 from ${users} where ${and(named, ...also)})`
  // The last statement before the deletions raises the epoch. Until then, epoch 0 shows that this run created the user.
  const isNew = and(eq(users.passwordHash, passwordHash), eq(users.sessionEpoch, 0))
  const isOld = or(
    isNull(users.passwordHash),
    sql`${users.passwordHash} <> ${passwordHash}`,
    sql`${users.sessionEpoch} > 0`,
  )
  const isLocal = eq(users.authProvider, 'local')
  const who = { userId, username }
  return [
    insertSelect(
      db,
      users,
      {
        username,
        authProvider: 'local',
        passwordHash,
        mustChangePassword: true,
        isAdmin: true,
        createdAt: NOW,
      },
      sql`where not exists (select 1 from ${users} where lower(${users.username}) = lower(${username}))`,
    ),
    audit(ctx, 'user_created', { ...who, email: null, displayName: null, isAdmin: true }, { onlyIf: isUser(isNew) }),
    audit(
      ctx,
      'user_updated',
      { ...who, before: { isActive: false }, after: { isActive: true } },
      { onlyIf: isUser(eq(users.isActive, false)) },
    ),
    audit(
      ctx,
      'admin_status_changed',
      {
        ...who,
        before: sql`json_object('isAdmin', json('false'), 'permissions', json(${storedPermissionsJson(userId)}))`,
        after: { isAdmin: true, permissions: ALL_PERMISSIONS },
      },
      { onlyIf: isUser(eq(users.isAdmin, false)) },
    ),
    audit(
      ctx,
      'password_reset',
      { ...who, tokensRevoked: sql`(select count(*) from ${apiTokens} where ${apiTokens.userId} = ${userId})` },
      { onlyIf: isUser(isLocal, isOld) },
    ),
    ...factorChanged(
      ctx,
      'second_factor_reset',
      {
        ...who,
        totp: sql`(select count(*) from ${totpFactors} where ${eq(totpFactors.userId, userId)})`,
        passkeys: sql`(select count(*) from ${passkeys} where ${eq(passkeys.userId, userId)})`,
      },
      isUser(hasSecondFactor),
    ),
    insertSelect(db, factorResets, { userId, resetAt: NOW }, sql`where ${isUser(hasSecondFactor)}`).onConflictDoUpdate({
      target: factorResets.userId,
      set: { resetAt: NOW },
    }),
    ...holdDestinations(ctx, { id: userId, username }, 'password_reset', { onlyIf: isUser() }),
    ...endVerifiedEmail(store, userId, NOW),
    writePermissions(store, named, ALL_PERMISSIONS, { at: NOW, by: null }),
    db
      .update(users)
      .set({
        isAdmin: true,
        isActive: true,
        sessionEpoch: nextEpoch,
        passwordHash: sql`iif(${isLocal}, ${passwordHash}, ${users.passwordHash})`,
        mustChangePassword: sql`iif(${isLocal}, 1, ${users.mustChangePassword})`,
      })
      .where(named),
    db.delete(totpFactors).where(eq(totpFactors.userId, userId)),
    db.delete(passkeys).where(eq(passkeys.userId, userId)),
    db.delete(recoveryCodes).where(eq(recoveryCodes.userId, userId)),
    db.delete(apiTokens).where(eq(apiTokens.userId, userId)),
    db.delete(sessions).where(eq(sessions.userId, userId)),
    forgiveInDatabase(store, { username, userId }),
  ]
}
