import { said } from '../../words/words.ts'
import { and, eq, inArray, isNull, like, sql } from 'drizzle-orm'
import * as z from 'zod'
import { apiTokens, settings, users } from '../../../db/schema.ts'
import type { Statement, Store } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'
import { USER_CONFLICTS } from '../../accounts/users/conflicts.ts'
import { AppError, toAppError } from '../../http/errors.ts'
import { nodeNumField } from '../../http/fields.ts'
import { hideNode } from '../../mesh/nodes/nodes.ts'
import { publicAccessSchema, readPublicAccess, updatePublicAccess } from '../../accounts/access/public-access.ts'
import { scopeSchema } from '../../accounts/users/scope.ts'
import { readView } from '../../accounts/access/visible.ts'
import { NO_PERMISSIONS } from '../../../shared/access/resources.ts'
import { NO_SCOPE } from '../../../shared/access/scope.ts'
import { showsMore } from '../../../shared/access/public-access.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { replacePermissions } from '../../accounts/users/grants.ts'
import { permissionsSchema } from '../../accounts/users/permissions.ts'
import { deactivateUser, nextEpoch, setAdmin } from '../../accounts/users/users.ts'
import { isStillUndone, repeatUndone, undoneSchema } from './undone.ts'
import { RESTORED_ACCESS_KEYS, RESTORED_ACCESS_PREFIX } from '../backup/settings.ts'
import { timeField } from '../../http/fields.ts'

/**
 * What a restore can bring back although it was revoked since the backup, for one user or for all; named as in the
 * audit log. `recovery_codes_created`: codes that were used or replaced work again. `user_updated`: an earlier e-mail
 * address is back. `email_confirmation_ended`: the address counts as confirmed again. `groups_provider_changed`: groups
 * at a provider decide about the user again. `unknown`: the replaced database could not be read.
 */
export const RESTORABLE_ACTIONS = [
  'user_deleted',
  'admin_status_changed',
  'permissions_updated',
  'password_reset',
  'password_changed',
  'token_revoked',
  'tokens_held',
  'second_factor_removed',
  'second_factor_added',
  'recovery_codes_created',
  'account_unlinked',
  'groups_provider_changed',
  'user_updated',
  'email_confirmation_ended',
  'alert_destination_updated',
  'public_access_updated',
  'node_updated',
  'unknown',
] as const
export type RestorableAction = (typeof RESTORABLE_ACTIONS)[number]

export const restoredAccessSchema = z
  .object({
    id: z.int(),
    action: z
      .enum(RESTORABLE_ACTIONS)
      .describe('What was done after the backup was made, and is undone by the restore'),
    userId: z.int().nullable().describe('Null: it is not about a user'),
    username: z.string().nullable(),
    what: z
      .string()
      .nullable()
      .describe('Name of the passkey or destination, issuer of the link, e-mail address, or number of recovery codes'),
    token: z.object({ id: z.int(), name: z.string(), prefix: z.string() }).nullable(),
    permissions: permissionsSchema
      .partial()
      .nullable()
      .describe('The permissions after that change, for the resources that the restore gave back'),
    scope: scopeSchema.nullable().describe('The scope after that change, if the restore gave back more'),
    publicAccess: publicAccessSchema
      .nullable()
      .describe('What anonymous callers saw after that change; the restore shows them more'),
    hiddenNode: nodeNumField.nullable().describe('A node that was hidden and no longer is'),
    at: timeField.nullable().describe('When it was done and by whom, according to the audit log; null: unknown'),
    by: z.string().nullable(),
  })
  .meta({ id: 'RestoredAccess', description: 'What the latest restore gave back to a user' })
export type RestoredAccess = z.infer<typeof restoredAccessSchema>

/**
 * As stored until an administrator decides: with the name of the backup, and the password change that the restore
 * undid.
 */
const storedSchema = restoredAccessSchema.omit({ id: true }).extend({
  scope: restoredAccessSchema.shape.scope.default(null),
  publicAccess: restoredAccessSchema.shape.publicAccess.default(null),
  hiddenNode: restoredAccessSchema.shape.hiddenNode.default(null),
  what: restoredAccessSchema.shape.what.default(null),
  backup: z.string(),
  undone: undoneSchema.nullable().default(null),
  password: z.object({ hash: z.string(), isTemporary: z.boolean() }).nullable(),
})
export type StoredRestoredAccess = z.infer<typeof storedSchema>

/** The result of revoking it again. */
export const reapplicationSchema = z.object({
  reapplied: z.array(z.int()),
  refused: z.array(z.object({ id: z.int(), code: z.string(), detail: z.string() })),
})
export type Reapplication = z.infer<typeof reapplicationSchema>

/** The statements that replace the list. */
export function storeRestoredAccess(
  { db }: Store,
  list: readonly StoredRestoredAccess[],
  now: number,
): [Statement, ...Statement[]] {
  const rows = list.map((one, i) => ({
    key: `${RESTORED_ACCESS_PREFIX}${i + 1}`,
    value: JSON.stringify(one),
    updatedAt: now,
  }))
  const forget = db.delete(settings).where(like(settings.key, RESTORED_ACCESS_KEYS))
  return [forget, ...rows.map((row) => db.insert(settings).values(row))]
}

/** A row of the list as another database stores it. */
export function parseRestoredAccess(value: string): StoredRestoredAccess {
  return storedSchema.parse(JSON.parse(value))
}

/** The entry of a list about which nothing is known. */
export function unknownRestoredAccess(backup: string): StoredRestoredAccess {
  return storedSchema.parse({
    action: 'unknown',
    userId: null,
    username: null,
    token: null,
    permissions: null,
    at: null,
    by: null,
    backup,
    password: null,
  })
}

type Pending = { readonly id: number; readonly stored: StoredRestoredAccess }

/** Access that the latest restore brought back and that is not decided yet, in the order of users. */
async function readPending(store: Store): Promise<Pending[]> {
  const { db } = store
  const rows = await db.select().from(settings).where(like(settings.key, RESTORED_ACCESS_KEYS)).all()
  const all = rows.map(({ key, value }) => ({
    id: Number(key.slice(RESTORED_ACCESS_PREFIX.length)),
    stored: parseRestoredAccess(value),
  }))
  const ofUsers = [...new Set(all.flatMap(({ stored }) => stored.userId ?? []))]
  const accounts = await inPages(ofUsers, (ids) =>
    db
      .select({ id: users.id, isActive: users.isActive, isAdmin: users.isAdmin })
      .from(users)
      .where(inArray(users.id, ids))
      .all(),
  )
  const tokens = await inPages(ofUsers, (ids) =>
    db
      .select({ id: apiTokens.id, heldAt: apiTokens.heldAt })
      .from(apiTokens)
      .where(inArray(apiTokens.userId, ids))
      .all(),
  )
  const accountOf = new Map(accounts.map((account) => [account.id, account]))
  const heldSince = new Map(tokens.map(({ id, heldAt }) => [id, heldAt]))
  const shown = await readPublicAccess(store)
  const { hidden } = await readView(store, NO_SCOPE, NO_PERMISSIONS)
  // Somebody may have revoked it again by hand.
  const isOpen = async ({ stored: { action, userId, token, publicAccess, hiddenNode, undone } }: Pending) => {
    if (action === 'unknown') return true
    if (publicAccess !== null) return showsMore(shown, publicAccess)
    if (hiddenNode !== null) return !hidden.has(hiddenNode)
    if (userId === null) return false
    const account = accountOf.get(userId)
    if (account === undefined) return false
    if (undone !== null) return isStillUndone(store, userId, undone)
    if (action === 'user_deleted') return account.isActive
    if (action === 'admin_status_changed') return account.isAdmin
    if (action === 'tokens_held') return token !== null && heldSince.get(token.id) === null
    return action !== 'token_revoked' || (token !== null && heldSince.has(token.id))
  }
  const open: Pending[] = []
  for (const one of all) if (await isOpen(one)) open.push(one)
  return open.toSorted((a, b) => a.id - b.id)
}

// D1 accepts 100 values per query.
async function inPages<T>(ids: readonly number[], read: (ids: number[]) => PromiseLike<T[]> | T[]): Promise<T[]> {
  const found: T[] = []
  for (let i = 0; i < ids.length; i += 90) found.push(...(await read(ids.slice(i, i + 90))))
  return found
}

/** Access that the latest restore brought back, and the name of the backup; null if nothing waits for a decision. */
export async function listRestoredAccess(
  store: Store,
): Promise<{ backup: string | null; restoredAccess: RestoredAccess[] }> {
  const pending = await readPending(store)
  return { backup: pending[0]?.stored.backup ?? null, restoredAccess: pending.map(publicRestoredAccess) }
}

function publicRestoredAccess({ id, stored }: Pending): RestoredAccess {
  const { action, userId, username, what, token, permissions, scope, publicAccess, hiddenNode, at, by } = stored
  return { id, action, userId, username, what, token, permissions, scope, publicAccess, hiddenNode, at, by }
}

/**
 * Revokes the restored access again, item by item. An item that cannot be revoked, such as the last administrator,
 * stays in the list. Throws `not_found` for an id that is not in the list.
 */
export async function reapplyRestoredAccess(ctx: Ctx, ids: readonly number[] | 'all'): Promise<Reapplication> {
  const pending = await readPending(ctx.store)
  const chosen = pending.filter(({ id }) => ids === 'all' || ids.includes(id))
  if (ids !== 'all' && chosen.length !== ids.length) {
    throw new AppError('not_found', 'This entry is not in the list of what the restore gave back; reload the list')
  }
  const done: Pending[] = []
  const refused: Reapplication['refused'] = []
  for (const one of chosen) {
    try {
      await doAgain(ctx, one.stored)
      done.push(one)
    } catch (cause) {
      const { code, message } = toAppError(cause, USER_CONFLICTS)
      if (code === 'internal' || code === 'database_unavailable') throw cause
      refused.push({ id: one.id, code, detail: message })
    }
  }
  if (done.length > 0) await ctx.store.atomic(settle(ctx, 'restore_reapplied', done))
  return { reapplied: done.map(({ id }) => id), refused }
}

/** Accepts the state of the backup, and deletes the list. */
export async function acceptRestoredAccess(ctx: Ctx): Promise<void> {
  const pending = await readPending(ctx.store)
  if (pending.length > 0) await ctx.store.atomic(settle(ctx, 'restore_accepted', pending))
}

function settle(
  ctx: Ctx,
  action: 'restore_reapplied' | 'restore_accepted',
  pending: readonly Pending[],
): [Statement, ...Statement[]] {
  const details = {
    name: pending[0]?.stored.backup,
    restoredAccess: pending.map(({ stored }) => nameRestoredAccess(stored)),
  }
  const forget = pending.map(({ id }) =>
    ctx.store.db.delete(settings).where(eq(settings.key, `${RESTORED_ACCESS_PREFIX}${id}`)),
  )
  return [audit(ctx, action, details, { whole: true }), ...forget]
}

type Named = Pick<StoredRestoredAccess, 'action' | 'username' | 'what' | 'token' | 'hiddenNode'>

/** A name for logs: user and action, and the name of the object if it has one. */
export function nameRestoredAccess({ action, username, what, token, hiddenNode }: Named): Record<string, string> {
  return {
    action,
    ...(username !== null && { username }),
    ...(what !== null && { what }),
    ...(token !== null && { token: `${token.name} (${token.prefix}…)` }),
    ...(hiddenNode !== null && { node: formatNodeId(hiddenNode) }),
  }
}

async function doAgain(ctx: Ctx, stored: StoredRestoredAccess): Promise<void> {
  const { action, userId, publicAccess, hiddenNode } = stored
  if (action === 'unknown') throw new AppError('invalid_request', UNKNOWN)
  if (userId !== null) return doAgainTo(ctx, { ...stored, userId })
  if (publicAccess !== null) await updatePublicAccess(ctx, publicAccess)
  if (hiddenNode !== null) await hideNode(ctx, hiddenNode)
}

const UNKNOWN = said(
  'The replaced database could not be read: check users, passkeys, links, tokens and destinations by hand, then leave everything as restored',
)

type OfUser = StoredRestoredAccess & { readonly userId: number }

async function doAgainTo(ctx: Ctx, stored: OfUser): Promise<void> {
  const { action, userId, username, what, permissions, scope, undone } = stored
  if (undone !== null) return repeatUndone(ctx, { userId, username, what }, undone)
  const held = { permissions: permissions ?? {}, scope: scope ?? undefined }
  switch (action) {
    case 'user_deleted':
      return deactivateUser(ctx, userId)
    case 'admin_status_changed':
      await setAdmin(ctx, userId, false)
      await replacePermissions(ctx, userId, held)
      return
    case 'permissions_updated':
      await replacePermissions(ctx, userId, held)
      return
    case 'password_reset':
    case 'password_changed':
      return takeBackPassword(ctx, stored)
    case 'token_revoked':
      return revokeAgain(ctx, stored)
    case 'tokens_held':
      return holdAgain(ctx, stored)
    // Repeated above, or not about a user.
    case 'second_factor_removed':
    case 'second_factor_added':
    case 'recovery_codes_created':
    case 'account_unlinked':
    case 'groups_provider_changed':
    case 'user_updated':
    case 'email_confirmation_ended':
    case 'alert_destination_updated':
    case 'unknown':
    case 'public_access_updated':
    case 'node_updated':
      return
    default:
      return action satisfies never
  }
}

async function takeBackPassword(ctx: Ctx, { userId, username, password }: OfUser): Promise<void> {
  if (password === null) return
  const { hash, isTemporary } = password
  await ctx.store.atomic([
    ctx.store.db
      .update(users)
      .set({ passwordHash: hash, mustChangePassword: isTemporary, sessionEpoch: nextEpoch })
      .where(and(eq(users.id, userId), sql`${users.passwordHash} is not ${hash}`)),
    audit(ctx, 'password_reset', { userId, username, reapplied: true }, { onlyIfChanged: true }),
  ])
  await ctx.sessions.removeForUser(userId)
}

async function revokeAgain(ctx: Ctx, { userId, username, token }: OfUser): Promise<void> {
  if (token === null) return
  const { id, name, prefix } = token
  await ctx.store.atomic([
    ctx.store.db.delete(apiTokens).where(and(eq(apiTokens.id, id), eq(apiTokens.userId, userId))),
    audit(
      ctx,
      'token_revoked',
      { userId, username, tokenId: id, name, prefix, reapplied: true },
      { onlyIfChanged: true },
    ),
  ])
}

/** Until the owner's next sign-in, as after the refusal that held it. */
async function holdAgain(ctx: Ctx, { userId, username, token }: OfUser): Promise<void> {
  if (token === null) return
  const { id, name, prefix } = token
  const free = and(eq(apiTokens.id, id), eq(apiTokens.userId, userId), isNull(apiTokens.heldAt))
  await ctx.store.atomic([
    ctx.store.db.update(apiTokens).set({ heldAt: ctx.now() }).where(free),
    audit(
      ctx,
      'tokens_held',
      { userId, username, tokenId: id, name, prefix, reapplied: true },
      { onlyIfChanged: true },
    ),
  ])
}
