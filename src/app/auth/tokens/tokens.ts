import { and, desc, eq, lt, sql } from 'drizzle-orm'
import * as z from 'zod'
import { apiTokens, users } from '../../../db/schema.ts'
import { audit } from '../../audit/audit.ts'
import type { SignedInCtx, Viewer } from '../../context.ts'
import { AppError } from '../../http/errors.ts'
import {
  type Action,
  ACTIONS,
  type Permissions,
  permissionsFrom,
  type Resource,
  RESOURCE_NAMES,
} from '../../users/permissions.ts'
import { hashToken, randomToken } from '../sessions/session-token.ts'

const PREFIX = 'mm_'
/** Of one user, those that expired among them. */
const MOST_TOKENS = 50

/** Scopes that are no permission of their own, and what the owner of such a token must be able to do. */
const SPECIAL_SCOPES = {
  backup: 'admin',
  metrics: { resource: 'info', action: 'read' },
  /** Delivers in the name of any node, texts among it: for those to whom the radios are entrusted. */
  ingest: { resource: 'configuration', action: 'write' },
} as const satisfies Record<string, 'admin' | { resource: Resource; action: Action }>

/** What a token may be good for. */
export const SCOPES = [
  ...RESOURCE_NAMES.flatMap((resource) => ACTIONS.map((action) => `${resource}:${action}`)),
  ...Object.keys(SPECIAL_SCOPES),
]

export const tokenSchema = z.object({
  id: z.int(),
  name: z.string(),
  prefix: z.string(),
  scopes: z.array(z.string()),
  createdAt: z.int(),
  expiresAt: z.int().nullable(),
  lastUsedAt: z.int().nullable(),
})
type Token = z.infer<typeof tokenSchema>

export const newTokenSchema = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(100)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .max(SCOPES.length)
    .refine((scopes) => new Set(scopes).size === scopes.length, 'each scope once'),
  expiresInDays: z.int().min(1).max(3650).optional(),
})

const columns = {
  id: apiTokens.id,
  name: apiTokens.name,
  prefix: apiTokens.prefix,
  scopes: apiTokens.scopes,
  createdAt: apiTokens.createdAt,
  expiresAt: apiTokens.expiresAt,
  lastUsedAt: apiTokens.lastUsedAt,
}

/** The viewer's own tokens, newest first. */
export async function listTokens(ctx: SignedInCtx): Promise<Token[]> {
  return ctx.store.db
    .select(columns)
    .from(apiTokens)
    .where(eq(apiTokens.userId, ctx.viewer.user.id))
    .orderBy(desc(apiTokens.id))
    .all()
}

/**
 * Makes a token; its text is answered here and never again. Throws `admin_required` and `forbidden` for a scope that
 * needs more than its owner may do, `too_many_tokens`.
 */
export async function createToken(
  ctx: SignedInCtx,
  input: z.infer<typeof newTokenSchema>,
): Promise<Token & { token: string }> {
  demandScopes(ctx.viewer, input.scopes)
  const token = `${PREFIX}${randomToken()}`
  const tokenHash = hashToken(token)
  const now = ctx.now()
  const { name, scopes } = input
  const prefix = token.slice(0, PREFIX.length + 6)
  const expiresAt = input.expiresInDays === undefined ? null : now + input.expiresInDays * 86_400_000
  const { id } = ctx.viewer.user
  const owned = sql`(select count(*) from ${apiTokens} where ${eq(apiTokens.userId, id)})`
  // A deactivation at the same instant wins: it has deleted all tokens, and no later one may be left to come back.
  const values = sql`select null, ${id}, ${name}, ${prefix}, ${tokenHash}, ${JSON.stringify(scopes)}, ${now},
    ${expiresAt}, null from ${users} where ${and(eq(users.id, id), eq(users.isActive, true), lt(owned, MOST_TOKENS))}`
  await ctx.store.atomic([
    ctx.store.db.insert(apiTokens).select(values),
    audit(ctx, 'token_created', { name, prefix, scopes, expiresAt }, { onlyIfChanged: true }),
  ])
  const created = await ctx.store.db.select(columns).from(apiTokens).where(eq(apiTokens.tokenHash, tokenHash)).get()
  if (created === undefined) throw await refusal(ctx)
  return { token, ...created }
}

/** Why the viewer got no token: the account was deactivated meanwhile, or it has as many as it may. */
async function refusal({ store, viewer }: SignedInCtx): Promise<AppError> {
  const owned = await store.db.$count(apiTokens, eq(apiTokens.userId, viewer.user.id))
  if (owned < MOST_TOKENS) return new AppError('unauthenticated')
  return new AppError('too_many_tokens', `At most ${MOST_TOKENS} tokens; revoke one that nothing uses`)
}

/** Revokes one of the viewer's own tokens. Throws `token_not_found`. */
export async function revokeToken(ctx: SignedInCtx, id: number): Promise<void> {
  const own = and(eq(apiTokens.id, id), eq(apiTokens.userId, ctx.viewer.user.id))
  const token = await ctx.store.db.select(columns).from(apiTokens).where(own).get()
  if (token === undefined) throw new AppError('token_not_found')
  await ctx.store.atomic([
    ctx.store.db.delete(apiTokens).where(own),
    audit(ctx, 'token_revoked', { tokenId: id, name: token.name, prefix: token.prefix }, { onlyIfChanged: true }),
  ])
}

function demandScopes({ user, permissions }: Viewer, scopes: readonly string[]): void {
  for (const [scope, needed] of Object.entries(SPECIAL_SCOPES)) {
    if (!scopes.includes(scope) || mayDo(needed, user.isAdmin, permissions)) continue
    if (needed === 'admin')
      throw new AppError('admin_required', `A token with the scope ${scope} needs an administrator`)
    const { resource, action } = needed
    const detail = `A token with the scope ${scope} needs an owner with ${action} access to ${resource}`
    throw new AppError('forbidden', detail, { required: needed })
  }
}

type Needed = (typeof SPECIAL_SCOPES)[keyof typeof SPECIAL_SCOPES]

function mayDo(needed: Needed, isAdmin: boolean, permissions: Permissions): boolean {
  return needed === 'admin' ? isAdmin : permissions[needed.resource][needed.action]
}

/** The scopes that the owner, who may have lost something since, still has a use for. */
export function heldScopes(
  { user, permissions }: Pick<Viewer, 'user' | 'permissions'>,
  scopes: readonly string[],
): string[] {
  const lost = Object.entries(SPECIAL_SCOPES).filter(([, needed]) => !mayDo(needed, user.isAdmin, permissions))
  return scopes.filter((scope) => !lost.some(([name]) => name === scope))
}

/** What is left of the owner's permissions within the scopes. */
export function withinScopes(permissions: Permissions, scopes: readonly string[]): Permissions {
  return permissionsFrom((resource) => ({
    read: permissions[resource].read && scopes.includes(`${resource}:read`),
    write: permissions[resource].write && scopes.includes(`${resource}:write`),
  }))
}
