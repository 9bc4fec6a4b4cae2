import type { Provider } from './provider.ts'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import * as z from 'zod'
import { anyone } from '../../http/access.ts'
import { basePath } from '../../config/config.ts'
import type { AppEnv, Ctx } from '../../context.ts'
import { answers, describe } from '../../http/describe.ts'
import { AppError } from '../../http/errors.ts'
import { beginSignIn, finishSignIn, type OidcOutcome } from './sign-in.ts'
import { sitePath } from './return-to.ts'

const loginQuery = z.object({
  returnTo: z.string().optional().describe('Path of this site to which the sign-in returns'),
  provider: z
    .string()
    .optional()
    .describe('Which provider, as GET /api/auth/status names them; without it the first one'),
  reauthenticate: z.literal('true').optional().describe('Asks also whoever is signed in there already'),
})
const callbackQuery = z.object({
  state: z.string().optional().describe('As the sign-in began'),
  code: z.string().optional().describe('The code that is exchanged for tokens'),
  iss: z.string().optional().describe('Issuer (RFC 9207)'),
  error: z.string().optional().describe('Why there is no code'),
})

// Documented but not validated: every request is answered with a redirect.
const documented = (schema: z.ZodType): MiddlewareHandler =>
  describe((_c, next) => next(), { request: { part: 'query', schema } })

/** Hono answers HEAD by GET's handler, and these change things. */
const refuseHead: MiddlewareHandler = async (c, next) => {
  if (c.req.method !== 'GET') throw new AppError('method_not_allowed', undefined, { allow: ['GET'] })
  await next()
}
const getOnly = describe(refuseHead, { getOnly: true })

export const oidcRoutes = new Hono<AppEnv>()
  .get(
    '/login',
    anyone,
    answers('Sign in at the OpenID provider', { 302: null }, ['oidc_disabled', 'method_not_allowed']),
    documented(loginQuery),
    getOnly,
    async (c) => {
      const { ctx } = c.var
      const returnTo = sitePath(c.req.query('returnTo')) ?? `${basePath(ctx.config)}/`
      const how = c.req.query('reauthenticate') === 'true' ? 'anew' : 'as-usual'
      return redirect(
        c,
        ctx,
        await beginSignIn(c, ctx, chosenProvider(ctx, c.req.query('provider'), how), { returnTo, how }),
      )
    },
  )
  .get(
    '/callback',
    anyone,
    answers('The callback to which the OpenID provider redirects the browser', { 302: null }, [
      'oidc_disabled',
      'method_not_allowed',
    ]),
    documented(callbackQuery),
    getOnly,
    async (c) => {
      const { ctx } = c.var
      if (ctx.providers.length === 0) throw new AppError('oidc_disabled')
      return redirect(c, ctx, await finishSignIn(c, ctx, c.req.queries()))
    },
  )

/** Whoever proves again who they are does so where they signed in. Throws `oidc_disabled`, also for an unknown one. */
function chosenProvider({ providers, viewer }: Ctx, wanted: string | undefined, how: 'as-usual' | 'anew'): Provider {
  const credential = viewer?.credential
  const own = how === 'anew' && credential?.kind === 'session' ? credential.session.oidcIssuer : null
  const provider =
    wanted === undefined
      ? (providers.find(({ issuer }) => issuer === own) ?? providers[0])
      : providers.find(({ settings }) => settings.id === wanted)
  if (provider === undefined) throw new AppError('oidc_disabled')
  return provider
}

function redirect(c: Context, ctx: Ctx, outcome: OidcOutcome): Response {
  return c.redirect(outcome.ok ? outcome.location : `${basePath(ctx.config)}/login?error=${outcome.error}`)
}
