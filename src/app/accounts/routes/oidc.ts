import type { Provider } from '../oidc/provider.ts'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import * as z from 'zod'
import { requireAdmin, requireSession } from '../access/require.ts'
import { basePath } from '../../config/config.ts'
import type { AppEnv, Ctx } from '../../base/context.ts'
import { answers, anyone, describe } from '../../http/describe.ts'
import { AppError } from '../../http/errors.ts'
import { validate } from '../../http/validate.ts'
import { requireFactorProof, requireFreshProof } from '../fresh-proof.ts'
import { endByProvider } from '../oidc/ending.ts'
import { beginSignIn, finishSignIn, type OidcOutcome } from '../oidc/sign-in.ts'
import { linkQuery, linkSchema, readLinks, refuseLink, unlink } from '../oidc/links.ts'
import { readRegistrations, registrationsSchema, testProvider, testSchema } from '../oidc/provider-state.ts'
import { sitePath } from '../oidc/return-to.ts'

const loginQuery = z.object({
  returnTo: z.string().optional().describe('Path of this site to which the sign-in returns'),
  provider: z
    .string()
    .optional()
    .describe('Which provider, as GET /api/auth/status names them; without it the first one'),
  invitation: z.string().optional().describe('The token of a link by which a user takes over a prepared account'),
  reauthenticate: z
    .literal('true')
    .optional()
    .describe('The provider asks users to sign in again even if they are signed in there'),
})
const linkBody = z.strictObject({
  provider: z.string().max(64).optional().describe('Name as in GET /api/auth/status; default: the first one'),
})
const callbackQuery = z.object({
  state: z.string().optional().describe('As at the start of the sign-in'),
  code: z.string().optional().describe('The code that is exchanged for tokens'),
  iss: z.string().optional().describe('Issuer (RFC 9207)'),
  error: z.string().optional().describe('Why there is no code'),
})

// Documented but not validated: every request is answered with a redirect.
const documented = (schema: z.ZodType): MiddlewareHandler =>
  describe((_c, next) => next(), { request: { part: 'query', schema } })

/** Hono answers HEAD with GET's handler, and these change things. */
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
      const invitation = c.req.query('invitation') ?? null
      const how = c.req.query('reauthenticate') === 'true' ? 'anew' : 'as-usual'
      const provider = chosenProvider(ctx, c.req.query('provider'), how)
      const again = how === 'anew' && provider.issuer === ownIssuer(ctx) ? (ctx.viewer?.user.id ?? null) : null
      return redirect(c, ctx, await beginSignIn(c, ctx, provider, { returnTo, how, again, invitation }))
    },
  )
  .get(
    '/callback',
    anyone,
    answers('The callback to which the first OpenID provider redirects the browser', { 302: null }, [
      'oidc_disabled',
      'method_not_allowed',
    ]),
    documented(callbackQuery),
    getOnly,
    async (c) => comeBack(c, c.var.ctx, null),
  )
  .get(
    '/callback/:provider',
    anyone,
    answers(
      'The callback to which this OpenID provider redirects the browser. An answer to a sign-in at another one is refused',
      { 302: null },
      ['oidc_disabled', 'method_not_allowed'],
    ),
    documented(callbackQuery),
    validate('param', z.object({ provider: z.string().describe('Name as in GET /api/auth/status') })),
    getOnly,
    async (c) => comeBack(c, c.var.ctx, c.req.valid('param').provider),
  )
  .get(
    '/providers',
    requireAdmin,
    answers('The configured OpenID providers: the addresses to register there, and what failed last', {
      200: registrationsSchema,
    }),
    async (c) => c.json(await readRegistrations(c.var.ctx)),
  )
  .post(
    '/providers/:provider/test',
    requireAdmin,
    answers(
      'Ask an OpenID provider for its description and keys, without a sign-in: about five times a minute',
      { 200: testSchema },
      ['not_found'],
    ),
    validate('param', z.object({ provider: z.string().describe('Name as in GET /api/auth/status') })),
    async (c) => c.json(await testProvider(c.var.ctx, c.req.valid('param').provider)),
  )
  .get(
    '/link',
    requireSession,
    answers('The accounts at OpenID providers that are linked to yours', {
      200: z.object({
        link: linkSchema.nullable().describe('The first of `links`; null: none'),
        links: z.array(linkSchema).describe('First the one of the provider that your account is of'),
      }),
    }),
    async (c) => {
      const links = await readLinks(c.var.ctx, c.var.ctx.viewer.user.id)
      return c.json({ link: links[0] ?? null, links })
    },
  )
  .post(
    '/link',
    requireSession,
    requireFactorProof,
    answers(
      'Start linking your account to one at an OpenID provider: one account at each, at most eight. Open the location in this browser and sign in there',
      { 200: z.object({ location: z.string() }) },
      ['oidc_disabled', 'already_linked', 'too_many_links', 'ruled_by_groups'],
    ),
    validate('json', linkBody),
    async (c) => {
      const { ctx } = c.var
      const returnTo = `${basePath(ctx.config)}/account?linked=1`
      const provider = chosenProvider(ctx, c.req.valid('json').provider, 'as-usual')
      await refuseLink(ctx, provider)
      const begun = await beginSignIn(c, ctx, provider, { returnTo, how: 'as-usual', link: ctx.viewer.user.id })
      return c.json({ location: begun.ok ? begun.location : failureAt(ctx, begun) })
    },
  )
  .delete(
    '/link',
    requireSession,
    requireFreshProof,
    answers(
      'Unlink your account from one at an OpenID provider. Sessions that began there end. The last way to sign in stays',
      { 204: null },
      ['not_found', 'last_way_in'],
    ),
    validate('query', linkQuery),
    async (c) => {
      await unlink(c.var.ctx, c.req.valid('query'))
      return c.body(null, 204)
    },
  )
  .post(
    '/backchannel-logout',
    anyone,
    answers(
      'For OpenID providers, to end sessions. The body is a form with a logout_token (OpenID Connect Back-Channel Logout 1.0)',
      { 200: null },
      ['invalid_request', 'payload_too_large', 'unsupported_media_type', 'oidc_disabled'],
    ),
    async (c) => {
      const tokens = new URLSearchParams(await c.req.text()).getAll('logout_token')
      const [token] = tokens
      if (token === undefined || tokens.length > 1) throw new AppError('invalid_request', 'Expected one logout_token')
      await endByProvider(c.var.ctx, token)
      return c.body(null, 200)
    },
  )

/**
 * A user proves their identity again at the provider where they signed in. Throws `oidc_disabled`, also for an unknown
 * provider.
 */
function chosenProvider(ctx: Ctx, wanted: string | undefined, how: 'as-usual' | 'anew'): Provider {
  const { providers } = ctx
  const own = how === 'anew' ? ownIssuer(ctx) : null
  const provider =
    wanted === undefined
      ? (providers.find(({ issuer }) => issuer === own) ?? providers[0])
      : providers.find(({ settings }) => settings.id === wanted)
  if (provider === undefined) throw new AppError('oidc_disabled')
  return provider
}

/** The provider where the session of this request began; null: none. */
function ownIssuer({ viewer }: Ctx): string | null {
  return viewer?.credential.kind === 'session' ? viewer.credential.session.oidcIssuer : null
}

/** Throws `oidc_disabled`. */
async function comeBack(c: Context, ctx: Ctx, at: string | null): Promise<Response> {
  if (ctx.providers.length === 0) throw new AppError('oidc_disabled')
  return redirect(c, ctx, await finishSignIn(c, ctx, { at, query: c.req.queries() }))
}

function failureAt({ config }: Ctx, { page, error }: OidcOutcome & { ok: false }): string {
  return `${basePath(config)}${page}?error=${error}`
}

function redirect(c: Context, ctx: Ctx, outcome: OidcOutcome): Response {
  return c.redirect(outcome.ok ? outcome.location : failureAt(ctx, outcome))
}
