import { and, desc, eq, lt, sql } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { apiTokens, users } from '../../../db/schema.ts'
import { audit } from '../../audit/audit.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { createOnce, type Keyed, type Remember } from '../../http/idempotency.ts'
import { getUser, otherOwner } from '../users/users.ts'
import {
  isSpecialScope,
  mayUseScope,
  SCOPES,
  type ScopeOwner,
  SPECIAL_SCOPES,
  type SpecialScope,
} from '../../../shared/access/token-scopes.ts'
import { type Permissions, permissionsFrom } from '../../../shared/access/resources.ts'
import { hashToken, randomToken } from '../sessions/session-token.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { timeField } from '../../http/fields.ts'
import { MAX_TOKEN_NAME } from '../../../shared/limits.ts'
import { said } from '../../words/words.ts'

const PREFIX = 'mm_'
/**
 * The maximum per user, including expired ones. Decision:
 * docs/decisions/short-decisions.md#a-user-has-at-most-50-tokens-and-100-sessions
 */
const MAX_TOKENS = 50

/** For a token without a given expiry; *never* must be explicit. */
const DEFAULT_EXPIRY_DAYS = 90

/** Why a token of this owner can't use a scope that is not a permission; null: it can. */
export function ownerRefusal(owner: ScopeOwner, scope: SpecialScope): AppError | null {
  if (mayUseScope(owner, scope)) return null
  const required = SPECIAL_SCOPES[scope]
  if (required === 'admin') {
    return new AppError('admin_required', said('A token with the scope {scope} needs an administrator', { scope }))
  }
  const { resource, action } = required
  const detail = said('A token with the scope {scope} needs an owner with {action} access to {resource}', {
    scope,
    action,
    resource,
  })
  return new AppError('forbidden', detail, { required })
}

/** The scopes that are usable now: a token can never do more than its owner. */
export function heldScopes(owner: ScopeOwner, scopes: readonly string[]): string[] {
  return scopes.filter((scope) => !isSpecialScope(scope) || ownerRefusal(owner, scope) === null)
}

export const tokenSchema = z
  .object({
    id: z.int(),
    name: z.string(),
    prefix: z.string().describe('The first characters of its text, to tell tokens apart'),
    scopes: z.array(z.string()),
    createdAt: timeField,
    expiresAt: timeField.nullable().describe('null: never'),
    lastUsedAt: timeField.nullable(),
    heldAt: timeField
      .nullable()
      .describe(
        'Since when it is refused, because the OpenID provider refused its owner; a sign-in releases it. null: it is not',
      ),
  })
  .meta({ id: 'Token', description: 'An API token, without its text' })
type Token = z.infer<typeof tokenSchema>

export const newTokenSchema = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(MAX_TOKEN_NAME)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .max(SCOPES.length)
    .refine((scopes) => new Set(scopes).size === scopes.length, 'each scope once'),
  expiresInDays: z.int().min(1).max(3650).nullable().default(DEFAULT_EXPIRY_DAYS).describe('null: it never expires'),
})

const columns = {
  id: apiTokens.id,
  name: apiTokens.name,
  prefix: apiTokens.prefix,
  scopes: apiTokens.scopes,
  createdAt: apiTokens.createdAt,
  expiresAt: apiTokens.expiresAt,
  lastUsedAt: apiTokens.lastUsedAt,
  heldAt: apiTokens.heldAt,
}

/** The tokens of a user, newest first. Throws `user_not_found`. */
export async function listTokens({ store }: SignedInCtx, userId: number): Promise<Token[]> {
  await getUser(store, userId)
  return store.db.select(columns).from(apiTokens).where(eq(apiTokens.userId, userId)).orderBy(desc(apiTokens.id)).all()
}

/** A token; null instead of its text in a repeat. */
type NewToken = Token & { readonly token: string | null }

/**
 * Creates a token; its text is returned only here. A repeat with the same key gets the token without its text. Throws
 * `admin_required` or `forbidden` for a scope beyond the viewer's permissions, `too_many_tokens`,
 * `idempotency_key_reused`, `token_not_found` for a repeat whose token was revoked.
 */
export async function createToken(
  ctx: SignedInCtx,
  input: z.infer<typeof newTokenSchema>,
  keyed: Keyed | null,
): Promise<NewToken> {
  return createOnce(ctx, keyed, {
    create: (remember) => insertToken(ctx, input, remember),
    repeat: async (id) => ({ ...(await findToken(ctx, ctx.viewer.user.id, id)), token: null }),
  })
}

async function insertToken(
  ctx: SignedInCtx,
  input: z.infer<typeof newTokenSchema>,
  remember: Remember,
): Promise<NewToken> {
  const { user, permissions, credential } = ctx.viewer
  if (credential.kind !== 'session') throw new AppError('forbidden', 'A token cannot create another token')
  for (const scope of input.scopes.filter(isSpecialScope)) {
    const reason = ownerRefusal({ isAdmin: user.isAdmin, permissions }, scope)
    if (reason !== null) throw reason
  }
  const token = `${PREFIX}${randomToken()}`
  const tokenHash = hashToken(token)
  const now = ctx.now()
  const { name, scopes } = input
  const prefix = token.slice(0, PREFIX.length + 6)
  const expiresAt = input.expiresInDays === null ? null : now + input.expiresInDays * DAY_MS
  const { id } = user
  const owned = sql`(select count(*) from ${apiTokens} where ${eq(apiTokens.userId, id)})`
  // A simultaneous deactivation or new password wins: it has deleted the tokens, and none may be added after it.
  const unchanged = and(eq(users.id, id), eq(users.isActive, true), eq(users.sessionEpoch, credential.session.epoch))
  const values = { userId: id, name, prefix, tokenHash, scopes, createdAt: now, expiresAt }
  await ctx.store.atomic([
    insertSelect(ctx.store.db, apiTokens, values, sql`from ${users} where ${and(unchanged, lt(owned, MAX_TOKENS))}`),
    audit(ctx, 'token_created', { name, prefix, scopes, expiresAt }, { onlyIfChanged: true }),
    ...remember(sql`(select ${apiTokens.id} from ${apiTokens} where ${eq(apiTokens.tokenHash, tokenHash)})`),
  ])
  const created = await ctx.store.db.select(columns).from(apiTokens).where(eq(apiTokens.tokenHash, tokenHash)).get()
  if (created === undefined) throw await refusal(ctx)
  return { token, ...created }
}

/** Why the viewer got no token: the account was deactivated meanwhile, or it has the maximum number. */
async function refusal({ store, viewer }: SignedInCtx): Promise<AppError> {
  const owned = await store.db.$count(apiTokens, eq(apiTokens.userId, viewer.user.id))
  if (owned < MAX_TOKENS) return new AppError('unauthenticated')
  return new AppError(
    'too_many_tokens',
    said('At most {most} tokens; revoke one that you do not use', { most: MAX_TOKENS }),
  )
}

/** Revokes one token of a user. Throws `user_not_found`, `token_not_found`. */
export async function revokeToken(ctx: SignedInCtx, userId: number, id: number): Promise<void> {
  await revoke(ctx, userId, [await findToken(ctx, userId, id)])
}

async function findToken(ctx: SignedInCtx, userId: number, id: number): Promise<Token> {
  const token = (await listTokens(ctx, userId)).find((owned) => owned.id === id)
  if (token === undefined) throw new AppError('token_not_found')
  return token
}

/** Revokes every token of a user, with an entry for each. Throws `user_not_found`. */
export async function revokeTokens(ctx: SignedInCtx, userId: number): Promise<void> {
  await revoke(ctx, userId, await listTokens(ctx, userId))
}

async function revoke(ctx: SignedInCtx, userId: number, tokens: readonly Token[]): Promise<void> {
  const owner = await otherOwner(ctx, userId)
  const [first, ...rest] = tokens.flatMap(({ id, name, prefix }) => [
    audit(
      ctx,
      'token_revoked',
      { ...owner, tokenId: id, name, prefix },
      { onlyIf: sql`exists (select 1 from ${apiTokens} where ${eq(apiTokens.id, id)})` },
    ),
    ctx.store.db.delete(apiTokens).where(eq(apiTokens.id, id)),
  ])
  if (first !== undefined) await ctx.store.atomic([first, ...rest])
}

/** The owner's permissions, limited to the scopes. */
export function withinScopes(permissions: Permissions, scopes: readonly string[]): Permissions {
  return permissionsFrom((resource) => ({
    read: permissions[resource].read && scopes.includes(`${resource}:read`),
    write: permissions[resource].write && scopes.includes(`${resource}:write`),
  }))
}
