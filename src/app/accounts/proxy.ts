import { type Context, Hono, type MiddlewareHandler } from 'hono'
import * as z from 'zod'
import { basePath, type Config } from '../config/config.ts'
import type { ProviderSettings } from '../config/providers.ts'
import type { AppEnv, Ctx } from '../base/context.ts'
import { answers, anyone, describe } from '../http/describe.ts'
import { AppError } from '../http/errors.ts'
import { OIDC_FAILURES, OidcFailure } from './oidc/failure.ts'
import { isSubject } from './oidc/protocol/claims.ts'
import { profileOf } from './oidc/protocol/profile.ts'
import { sitePath } from './oidc/return-to.ts'
import { recordFailure } from './oidc/sign-in.ts'
import { signInIdentity } from './oidc/users.ts'
import { proxyIssuer } from './proxy-issuer.ts'
import { startSession } from './sessions/sessions.ts'

const query = z.object({ returnTo: z.string().optional().describe('Path of this site to which the sign-in returns') })
const documented: MiddlewareHandler = describe((_c, next) => next(), { request: { part: 'query', schema: query } })

/** Hono answers HEAD by GET's handler, and this changes things. */
const getOnly: MiddlewareHandler = describe(
  async (c: Context, next: () => Promise<void>) => {
    if (c.req.method !== 'GET') throw new AppError('method_not_allowed', undefined, { allow: ['GET'] })
    await next()
  },
  { getOnly: true },
)

/** Signs in the user that an authenticating proxy names in PROXY_AUTH_HEADER. */
export const proxyRoutes = new Hono<AppEnv>().get(
  '/login',
  anyone,
  answers('Sign in as the user that the authenticating proxy names', { 302: null }, [
    'proxy_auth_disabled',
    'method_not_allowed',
  ]),
  documented,
  getOnly,
  async (c) => c.redirect(await signInByProxy(c, c.var.ctx)),
)

/** Returns the path to which the browser is redirected. Throws `proxy_auth_disabled`, also if no proxy names a user. */
async function signInByProxy(c: Context<AppEnv>, ctx: Ctx): Promise<string> {
  const issuer = proxyIssuer(ctx.config)
  const subject = ctx.namedByProxy ?? null
  if (issuer === null || subject === null || !isSubject(subject)) throw new AppError('proxy_auth_disabled')
  const base = basePath(ctx.config)
  const identity = {
    issuer,
    subject,
    authenticatedAt: null,
    factors: null,
    groups: 'missing' as const,
    profile: { ...profileOf({ preferred_username: subject }), displayName: null, email: null },
    sid: null,
    idToken: '',
  }
  try {
    const { id, epoch } = await signInIdentity(ctx, settingsOf(ctx.config, issuer), identity, {
      kind: 'keep',
      why: null,
    })
    await startSession(c, ctx, { id, epoch, oidcIssuer: issuer, factors: null })
    return sitePath(c.req.query('returnTo')) ?? `${base}/`
  } catch (error) {
    if (!(error instanceof OidcFailure)) throw error
    await recordFailure(ctx, error, { provider: 'proxy' })
    return `${base}/login?error=${OIDC_FAILURES[error.reason]}`
  }
}

/** The rules for users of a provider hold for those of a proxy, too; it names no groups. */
function settingsOf(config: Config, issuer: string): ProviderSettings {
  return {
    id: 'proxy',
    issuer,
    clientId: '',
    clientSecret: '',
    redirectUri: '',
    scopes: [],
    name: null,
    icon: null,
    usernameClaim: null,
    adminSubject: config.OIDC_ADMIN_SUBJECT,
    autoCreateUsers: config.OIDC_AUTO_CREATE_USERS,
    groupsClaim: null,
    allowedGroups: [],
    adminGroups: [],
    groupPermissions: [],
    groupsMissing: null,
  }
}
