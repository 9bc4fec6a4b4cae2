import { and, asc, count, eq, or, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { contains } from '../../db/contains.ts'
import { differs } from '../../db/differs.ts'
import { apiTokens, users } from '../../db/schema.ts'
import type { Store } from '../../db/store.ts'
import { audit, SYSTEM } from '../audit/audit.ts'
import { hashNewPassword, randomPassword } from '../auth/local/passwords.ts'
import type { Ctx } from '../context.ts'
import { AppError } from '../http/errors.ts'
import { ALL_PERMISSIONS, DEFAULT_PERMISSIONS, writePermissions } from './permissions.ts'

export const AUTH_PROVIDERS = ['local', 'oidc'] as const

export const userSchema = z.object({
  id: z.int(),
  username: z.string(),
  email: z.string().nullable(),
  displayName: z.string().nullable(),
  authProvider: z.enum(AUTH_PROVIDERS),
  oidcSubject: z.string().nullable(),
  isAdmin: z.boolean(),
  isActive: z.boolean(),
  createdAt: z.int(),
  lastLoginAt: z.int().nullable(),
  createdBy: z.int().nullable(),
})
export type User = z.infer<typeof userSchema>

/** The columns of a `User`: nothing else of the row ever leaves the database by this way. */
export const userColumns = {
  id: users.id,
  username: users.username,
  email: users.email,
  displayName: users.displayName,
  authProvider: users.authProvider,
  oidcSubject: users.oidcSubject,
  isAdmin: users.isAdmin,
  isActive: users.isActive,
  createdAt: users.createdAt,
  lastLoginAt: users.lastLoginAt,
  createdBy: users.createdBy,
}

export function publicUser(row: User): User {
  const { id, username, email, displayName, authProvider, oidcSubject } = row
  const { isAdmin, isActive, createdAt, lastLoginAt, createdBy } = row
  return {
    id,
    username,
    email,
    displayName,
    authProvider,
    oidcSubject,
    isAdmin,
    isActive,
    createdAt,
    lastLoginAt,
    createdBy,
  }
}

const printable = (max: number) =>
  z
    .string()
    .max(max)
    // No control characters and no lone surrogates.
    .regex(/^[^\p{Cc}\p{Cs}]*$/u)

/** ASCII on purpose: two usernames that look alike are alike. */
export const usernameSchema = z
  .string()
  .regex(/^[A-Za-z0-9._@-]{1,64}$/, '1–64 letters, digits and . _ - @')
  .refine((name) => name.toLowerCase() !== SYSTEM.username, 'not the name by which the audit log calls the service')
export const emailSchema = printable(254).pipe(z.email())
export const displayNameSchema = printable(100).min(1)

export const newUserSchema = z.strictObject({
  username: usernameSchema,
  password: z.string(),
  email: emailSchema.nullish(),
  displayName: displayNameSchema.nullish(),
  isAdmin: z.boolean().optional(),
})

export const userChangesSchema = z.strictObject({
  username: usernameSchema.optional(),
  email: emailSchema.nullish(),
  displayName: displayNameSchema.nullish(),
  isActive: z.literal(true).optional(),
})

/** The id of a user inserted earlier in the same atomic step. */
export function userIdByName(username: string): SQL {
  return sql`(select ${users.id} from ${users} where lower(${users.username}) = lower(${username}))`
}

/** Throws `user_not_found`. */
export async function getUser(store: Store, id: number): Promise<User> {
  const user = await store.db.select(userColumns).from(users).where(eq(users.id, id)).get()
  if (user === undefined) throw new AppError('user_not_found')
  return user
}

/** Users in the order of their names. `q` finds a part of username, display name or e-mail. */
export async function listUsers(
  store: Store,
  page: { q?: string | undefined; limit: number; offset: number },
): Promise<{ users: User[]; total: number }> {
  const { q } = page
  const found = q
    ? or(contains(users.username, q), contains(users.displayName, q), contains(users.email, q))
    : undefined
  const rows = await store.db
    .select(userColumns)
    .from(users)
    .where(found)
    .orderBy(asc(sql`lower(${users.username})`))
    .limit(page.limit)
    .offset(page.offset)
    .all()
  const total = await store.db.select({ n: count() }).from(users).where(found).get()
  return { users: rows, total: total?.n ?? 0 }
}

/**
 * Makes a local account; a `temporary` password must be changed at the first sign-in.
 * Throws `local_auth_disabled`, `weak_password`, `username_taken`.
 */
export async function createUser(ctx: Ctx, input: z.infer<typeof newUserSchema>, temporary = false): Promise<User> {
  if (ctx.config.DISABLE_LOCAL_AUTH) throw new AppError('local_auth_disabled')
  const { username, isAdmin = false } = input
  if ((await findUserByName(ctx.store, username)) !== null) throw new AppError('username_taken')
  const passwordHash = await hashNewPassword(ctx, input.password, username)
  const row = {
    username,
    email: input.email ?? null,
    displayName: input.displayName ?? null,
    authProvider: 'local' as const,
    passwordHash,
    mustChangePassword: temporary,
    isAdmin,
    createdAt: ctx.now(),
    createdBy: ctx.viewer?.user.id ?? null,
  }
  await ctx.store.atomic([
    ctx.store.db.insert(users).values(row),
    ...writePermissions(ctx.store, userIdByName(username), isAdmin ? ALL_PERMISSIONS : DEFAULT_PERMISSIONS),
    audit(ctx, 'user_created', {
      username,
      userId: userIdByName(username),
      email: row.email,
      displayName: row.displayName,
      isAdmin,
    }),
  ])
  const created = await findUserByName(ctx.store, username)
  if (created === null) throw new Error('a user that was just made is gone')
  return created
}

/** By name, without regard to case. */
export async function findUserByName(store: Store, username: string): Promise<User | null> {
  const found = await store.db
    .select(userColumns)
    .from(users)
    .where(sql`lower(${users.username}) = lower(${username})`)
    .get()
  return found ?? null
}

/** Changes profile fields; `isActive: true` reactivates. Throws `user_not_found`, `username_taken`, `invalid_request`. */
export async function updateUser(ctx: Ctx, id: number, changes: z.infer<typeof userChangesSchema>): Promise<User> {
  const before = await getUser(ctx.store, id)
  if (before.authProvider === 'oidc' && (changes.email !== undefined || changes.displayName !== undefined)) {
    throw new AppError('invalid_request', 'E-mail and display name of this user belong to the OpenID provider')
  }
  const after = {
    username: changes.username ?? before.username,
    email: changes.email === undefined ? before.email : changes.email,
    displayName: changes.displayName === undefined ? before.displayName : changes.displayName,
    isActive: changes.isActive ?? before.isActive,
  }
  const fields = (['username', 'email', 'displayName', 'isActive'] as const).filter((key) => after[key] !== before[key])
  if (fields.length === 0) return before
  const pick = (from: typeof after) => Object.fromEntries(fields.map((key) => [key, from[key]]))
  await ctx.store.atomic([
    // Only what changes: the rest may have been changed by somebody else since it was read.
    ctx.store.db
      .update(users)
      .set(pick(after))
      .where(and(eq(users.id, id), differs(users, fields, after))),
    audit(
      ctx,
      'user_updated',
      { userId: id, username: before.username, before: pick(before), after: pick(after) },
      { onlyIfChanged: true },
    ),
  ])
  return getUser(ctx.store, id)
}

/**
 * Ends an account: sessions and tokens die at once and for good. Deactivating twice is no error.
 * Throws `user_not_found`, `self_change_forbidden`, `last_admin`.
 */
export async function deactivateUser(ctx: Ctx, id: number): Promise<void> {
  const user = await getUser(ctx.store, id)
  if (id === ctx.viewer?.user.id) throw new AppError('self_change_forbidden')
  const { db } = ctx.store
  await ctx.store.atomic([
    db
      .update(users)
      .set({ isActive: false, sessionEpoch: nextEpoch })
      .where(and(eq(users.id, id), eq(users.isActive, true))),
    audit(ctx, 'user_deleted', activeChange(user, false), { onlyIfChanged: true }),
    db.delete(apiTokens).where(eq(apiTokens.userId, id)),
  ])
  await ctx.sessions.removeForUser(id)
}

function activeChange(user: User, isActive: boolean): Record<string, unknown> {
  return { userId: user.id, username: user.username, before: { isActive: !isActive }, after: { isActive } }
}

/** Every session of the user is of an older epoch from here on. */
export const nextEpoch = sql`${users.sessionEpoch} + 1`

/**
 * Makes a user an administrator or a regular user, with the permissions that go with it; without `isAdmin` it toggles.
 * Throws `user_not_found`, `self_change_forbidden`, `user_inactive`, `last_admin`.
 */
export async function setAdmin(ctx: Ctx, id: number, isAdmin: boolean | undefined): Promise<User> {
  const user = await getUser(ctx.store, id)
  const wanted = isAdmin ?? !user.isAdmin
  if (id === ctx.viewer?.user.id && wanted !== user.isAdmin) throw new AppError('self_change_forbidden')
  if (wanted === user.isAdmin) return user
  if (!user.isActive) throw new AppError('user_inactive')
  await ctx.store.atomic([
    ctx.store.db
      .update(users)
      .set({ isAdmin: wanted })
      .where(and(eq(users.id, id), eq(users.isAdmin, !wanted))),
    audit(ctx, 'admin_status_changed', adminChange(user, wanted), { onlyIfChanged: true }),
    ...writePermissions(ctx.store, id, wanted ? ALL_PERMISSIONS : DEFAULT_PERMISSIONS),
  ])
  return getUser(ctx.store, id)
}

function adminChange(user: User, isAdmin: boolean): Record<string, unknown> {
  return { userId: user.id, username: user.username, before: { isAdmin: user.isAdmin }, after: { isAdmin } }
}

/** Gives a local user a random, temporary password and ends the sessions. Answers it in clear, once. */
export async function resetPassword(ctx: Ctx, id: number): Promise<string> {
  if (ctx.config.DISABLE_LOCAL_AUTH) throw new AppError('local_auth_disabled')
  const user = await getUser(ctx.store, id)
  if (user.authProvider !== 'local') throw new AppError('not_a_local_user')
  if (!user.isActive) throw new AppError('user_inactive')
  const password = randomPassword()
  const passwordHash = await ctx.passwords.hash(password)
  await ctx.store.atomic([
    ctx.store.db
      .update(users)
      .set({ passwordHash, mustChangePassword: true, sessionEpoch: nextEpoch })
      .where(eq(users.id, id)),
    audit(ctx, 'password_reset', { userId: id, username: user.username }),
  ])
  await ctx.sessions.removeForUser(id)
  return password
}
