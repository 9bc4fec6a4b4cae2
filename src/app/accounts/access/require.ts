import type { User } from '../users/user.ts'
import type { Context, MiddlewareHandler } from 'hono'
import { ownerRefusal } from '../tokens/tokens.ts'
import { demandViewer, resolveViewer } from './viewer.ts'
import { SEE_AS, seeAs } from './see-as.ts'
import { isFactorMissing } from '../factors/required.ts'
import type { AppEnv, Ctx, SignedIn, SignedInCtx, Viewer } from '../../base/context.ts'
import { describe, type Rule } from '../../http/describe.ts'
import { AppError } from '../../http/errors.ts'
import { SAFE_METHODS } from '../../http/security.ts'
import type { Action, Resource } from '../../../shared/access/resources.ts'
import type { SpecialScope } from '../../../shared/access/token-scopes.ts'
import { type Said, said } from '../../words/words.ts'

/** Identifies the client, once per request. Refuses no client. */
export const optionalAuth: MiddlewareHandler<AppEnv> = async (c, next) => {
  const ctx = c.get('ctx')
  const isNamed = (header: string) => c.req.header(header) !== undefined
  const hasCredentials = isNamed('cookie') || isNamed('authorization') || isNamed(SEE_AS)
  if (hasCredentials) {
    await bodyArrived(c)
    const found = await seeAs(c, ctx, await resolveViewer(c, ctx))
    const { viewer } = found
    if (viewer?.user.isAdmin === true && !SAFE_METHODS.has(c.req.method)) ctx.disk?.makeRoom()
    c.set('ctx', { ...ctx, ...found })
  }
  return next()
}

/**
 * Waits for the whole body before the access check. Otherwise a client could send the rest after its session or
 * permissions have ended.
 */
async function bodyArrived({ req }: Context<AppEnv>): Promise<void> {
  if (SAFE_METHODS.has(req.method) || (req.header('content-length') ?? '0') === '0') return
  // A body that ends early is refused where it is read.
  await req.arrayBuffer().catch(() => null)
}

/** Requires local accounts to be enabled, before the input is validated. Throws `local_auth_disabled`. */
export const requireLocalAuth: MiddlewareHandler<AppEnv> = (c, next) => {
  refuseClosedWay(c.var.ctx)
  return next()
}

/** Throws `local_auth_disabled` if local accounts are disabled. */
export function refuseClosedWay({ config }: Pick<Ctx, 'config'>): void {
  if (config.DISABLE_LOCAL_AUTH) throw new AppError('local_auth_disabled')
}

/** Signed in by session or token, with a password that is not temporary. */
export const requireAuth = rule({ kind: 'signed-in', tokens: true, temporaryPassword: false })

/**
 * Signed in by session: a token can't manage credentials.
 * Decision: docs/decisions/short-decisions.md#a-token-manages-no-credentials
 */
export const requireSession = rule({ kind: 'signed-in', tokens: false, temporaryPassword: false })

/** As `requireSession`, but a temporary password is enough. */
export const requireAnySession = rule({ kind: 'signed-in', tokens: false, temporaryPassword: true })

/** As `requireSession`, but also for users who must set up a second factor first. */
export const requireEnrollingSession = rule({
  kind: 'signed-in',
  tokens: false,
  temporaryPassword: false,
  enrolling: true,
})

export const requireAdmin = rule({ kind: 'admin', scope: null })

/** An administrator's session, or an administrator's token with this scope. */
export const requireAdminOrScope = (scope: SpecialScope) => rule({ kind: 'admin', scope })

export const requirePermission = (resource: Resource, action: Action) => rule({ kind: 'permission', resource, action })

/** A bearer token with the scope: for machines, so a session is not enough. */
export const requireToken = (scope: SpecialScope) => rule({ kind: 'token', scope })

function rule(required: Rule): MiddlewareHandler<SignedIn> {
  const guard: MiddlewareHandler<SignedIn> = (c, next) => {
    c.set('ctx', signedIn(c.get('ctx'), required))
    return next()
  }
  return describe(guard, { rule: required })
}

function signedIn(ctx: Ctx, required: Rule): SignedInCtx {
  const viewer = demandViewer(ctx)
  const mayBeTemporary = required.kind === 'signed-in' && required.temporaryPassword
  if (viewer.mustChangePassword && !mayBeTemporary) throw new AppError('password_change_required')
  const mayLackFactor = mayBeTemporary || (required.kind === 'signed-in' && required.enrolling === true)
  if (!mayLackFactor && isFactorMissing(ctx, viewer)) throw new AppError('second_factor_required')
  refuse(viewer, required)
  return { ...ctx, viewer }
}

function refuse(viewer: Viewer, required: Rule): void {
  const { credential, user } = viewer
  switch (required.kind) {
    case 'anyone':
      return
    case 'signed-in':
      if (credential.kind === 'session' && credential.isSeenAs) {
        throw new AppError('see_as_refused', 'This is private data of the user')
      }
      if (credential.kind === 'token' && !required.tokens) {
        throw new AppError('forbidden', 'This needs a session; an API token is not enough')
      }
      return
    case 'token': {
      const { scope } = required
      if (credential.kind !== 'token')
        throw new AppError('forbidden', said('This needs an API token with the scope {scope}', { scope }))
      demandScope(user, credential, scope)
      return
    }
    case 'permission': {
      const { resource, action } = required
      if (viewer.permissions[resource][action]) return
      const isScopeMissing = credential.kind === 'token' && credential.held[resource][action]
      const detail = isScopeMissing
        ? missingScope(`${resource}:${action}`)
        : said('This needs {action} access to {resource}', { action, resource })
      throw new AppError('forbidden', detail, { required: { resource, action } })
    }
    case 'admin': {
      const { scope } = required
      if (credential.kind === 'session') {
        if (!user.isAdmin) throw new AppError('admin_required')
      } else if (scope === null) {
        throw new AppError('admin_required', "This needs an administrator's session; an API token is not enough")
      } else {
        demandScope(user, credential, scope)
      }
      return
    }
    default:
      return required satisfies never
  }
}

type TokenCredential = Extract<Viewer['credential'], { kind: 'token' }>

/** Names the missing part: the scope, or the owner's permission. */
function demandScope({ isAdmin }: User, { scopes, held }: TokenCredential, scope: SpecialScope): void {
  if (scopes.includes(scope)) return
  throw ownerRefusal({ isAdmin, permissions: held }, scope) ?? new AppError('forbidden', missingScope(scope))
}

function missingScope(scope: string): Said {
  return said('This API token lacks the scope {scope}', { scope })
}
