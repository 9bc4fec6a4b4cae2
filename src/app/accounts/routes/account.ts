import { userSchema } from '../users/user.ts'
import { Hono } from 'hono'
import * as z from 'zod'
import { requireAnySession, requireEnrollingSession, requireLocalAuth, requireSession } from '../access/require.ts'
import { LANGUAGES } from '../../../shared/languages.ts'
import { UNIT_SYSTEMS } from '../../../shared/mesh/unit-systems.ts'
import { namesOf } from '../../../shared/names.ts'
import { keepPreferences } from '../users/reader.ts'
import { countToReview } from '../to-review.ts'
import type { AppEnv, Ctx, SignedInCtx } from '../../base/context.ts'
import { answers, anyone } from '../../http/describe.ts'
import { AppError } from '../../http/errors.ts'
import { NO_SCOPE } from '../../../shared/access/scope.ts'
import { scopeSchema } from '../users/scope.ts'
import { viewOfAnonymous } from '../access/shared.ts'
import { permissionsSchema } from '../users/permissions.ts'
import { idParam, integerQuery, validate } from '../../http/validate.ts'
import { requireFreshProof } from '../fresh-proof.ts'
import { handOutAttempt } from '../factors/attempts.ts'
import { askForPasskey, optionsSchema } from '../factors/passkeys.ts'
import { relyingParty } from '../factors/relying-party.ts'
import { isFactorMissing } from '../factors/required.ts'
import { factorRoutes } from './factors.ts'
import { factorSignInRoutes } from './factor-sign-in.ts'
import { oidcRoutes } from './oidc.ts'
import { providerLogoutUrl } from '../oidc/ending.ts'
import { siteOfMail } from '../mail/account-mail.ts'
import { mailRoutes } from './mail.ts'
import { proxyRoutes } from '../proxy.ts'
import { continueSession } from '../oidc/continue.ts'
import {
  listSessions,
  revokeOtherSessions,
  revokeSession,
  sessionSchema,
  signOut,
  startSession,
} from '../sessions/sessions.ts'
import { findKnownBrowser, rememberBrowser } from '../sessions/known-browser.ts'
import { changePassword, signIn } from '../local/sign-in.ts'
import { readMeshName } from '../../settings/settings.ts'
import { proofSchema, reauthenticate } from '../reauthenticate.ts'
import { listSignIns, signInSchema } from '../sign-ins.ts'
import { signedInSchema } from '../access/viewer.ts'
import { SECOND_FACTORS } from '../../../shared/access/factors.ts'
import { timeField } from '../../http/fields.ts'
import { NO_PERMISSIONS } from '../../../shared/access/resources.ts'
import { MAX_SIGN_IN_NAME, MAX_TYPED_PASSWORD } from '../../../shared/limits.ts'

const languageSchema = z.enum(namesOf(LANGUAGES))
const preferencesSchema = z.strictObject({
  language: languageSchema.nullable().optional().describe('null: that of the browser; absent: as before'),
  units: z.enum(UNIT_SYSTEMS).nullable().optional().describe('null: metric; absent: as before'),
})

const statusSchema = z.object({
  authenticated: z.boolean(),
  user: userSchema.nullable(),
  permissions: permissionsSchema,
  scope: scopeSchema,
  mustChangePassword: z.boolean(),
  language: languageSchema.nullable().describe('The language that you chose; null: that of your browser'),
  units: z.enum(UNIT_SYSTEMS).nullable().describe('The units that you chose; null: metric'),
  meshName: z.string().nullable().describe('The name of the mesh, as in GET /api/settings'),
  oidcEnabled: z.boolean(),
  providers: z
    .array(z.object({ id: z.string(), name: z.string().nullable(), icon: z.string().nullable() }))
    .describe('The OpenID providers, in the order of their buttons'),
  proxyUser: z
    .string()
    .nullable()
    .describe('The user that an authenticating proxy names; GET /api/auth/proxy/login signs them in'),
  autoLogin: z.boolean().describe('OIDC_AUTO_LOGIN: the sign-in page goes straight to the first provider'),
  localAuthDisabled: z.boolean(),
  accountMail: z
    .boolean()
    .describe('Whether this service sends e-mails about accounts: password reset, invitations, notices'),
  passwordMinLength: z.int().describe('Minimum number of characters of a new password'),
  passkeysPossible: z.boolean().describe('Over https, or on localhost, and not at an IP address'),
  destinationsToReview: z
    .int()
    .describe('Destinations of your alerts that are held or new, until you have looked at them'),
  secondFactor: z.object({
    isSetUp: z.boolean(),
    isMissing: z.boolean().describe('REQUIRE_SECOND_FACTOR asks you to set one up before anything else'),
    resetAt: timeField
      .nullable()
      .describe('When an administrator removed your second factors; null after you have confirmed the notice'),
  }),
})
const loginAnswer = z.union([signedInSchema, z.object({ secondFactor: z.array(z.enum(SECOND_FACTORS)) })]).meta({
  type: 'object',
  description:
    'The signed-in user; or only secondFactor: the password was right, and one of these must follow within 5 minutes',
})
const credentialsSchema = z.strictObject({
  username: z.string().min(1).max(MAX_SIGN_IN_NAME),
  password: z.string().min(1).max(MAX_TYPED_PASSWORD),
})
const passwordChangeSchema = z.strictObject({
  currentPassword: z.string().min(1).max(MAX_TYPED_PASSWORD),
  newPassword: z.string().max(MAX_TYPED_PASSWORD),
  revokeTokens: z.boolean().optional().describe('true also ends your API tokens'),
})

const STATUS_SUMMARY =
  'Your account and permissions, or what public access shows without a sign-in. The header X-Unsupported lists what this runtime lacks for you: backups, events, radio'

/** Features that answer 501 here to this caller, so that clients need not try them. */
function unsupportedBy(ctx: Ctx): Record<string, string> {
  const isOnlyForUsers = ctx.viewer === null && ctx.events?.elsewhere !== undefined
  const missing = (['backups', 'events', 'radio'] as const).filter(
    (port) => ctx[port] === null || (port === 'events' && isOnlyForUsers),
  )
  return missing.length === 0 ? {} : { 'X-Unsupported': missing.join(', ') }
}

/**
 * What proving a password or factor of this service changes in the session. A user of a provider proves their identity
 * there.
 */
function provedLocally({ viewer: { credential }, now }: SignedInCtx): { authenticatedAt?: number } {
  return credential.kind === 'session' && credential.session.oidcIssuer === null ? { authenticatedAt: now() } : {}
}

export const authRoutes = new Hono<AppEnv>()
  .get('/status', anyone, answers(STATUS_SUMMARY, { 200: statusSchema }), async (c) => {
    const ctx = c.get('ctx')
    const { viewer, config, providers } = ctx
    const shown = await viewOfAnonymous(c, ctx)
    const status = {
      authenticated: viewer !== null,
      user: viewer?.user ?? null,
      permissions: viewer?.permissions ?? shown?.permissions ?? NO_PERMISSIONS,
      scope: viewer?.scope ?? shown?.scope ?? NO_SCOPE,
      mustChangePassword: viewer?.mustChangePassword ?? false,
      language: viewer?.language ?? null,
      units: viewer?.units ?? null,
      meshName: await readMeshName(ctx),
      oidcEnabled: providers.length > 0,
      providers: providers.map(({ settings: { id, name, icon } }) => ({ id, name, icon })),
      proxyUser: ctx.namedByProxy ?? null,
      autoLogin: config.OIDC_AUTO_LOGIN && providers.length > 0,
      localAuthDisabled: config.DISABLE_LOCAL_AUTH,
      accountMail: siteOfMail(ctx) !== null,
      passwordMinLength: config.PASSWORD_MIN_LENGTH,
      passkeysPossible: !config.DISABLE_LOCAL_AUTH && relyingParty(c, ctx) !== null,
      destinationsToReview: await countToReview(ctx),
      secondFactor: {
        isSetUp: viewer?.secondFactor.isSetUp ?? false,
        isMissing: viewer !== null && isFactorMissing(ctx, viewer),
        resetAt: viewer?.secondFactor.resetAt ?? null,
      },
    }
    return c.json(status, 200, unsupportedBy(ctx))
  })
  .post(
    '/login',
    anyone,
    requireLocalAuth,
    answers('Sign in with a local account', { 200: loginAnswer }, [
      'invalid_credentials',
      'local_auth_disabled',
      'rate_limited',
    ]),
    validate('json', credentialsSchema),
    async (c) => {
      const { ctx } = c.var
      const credentials = c.req.valid('json')
      const result = await signIn(ctx, credentials, {
        browser: await findKnownBrowser(c, ctx, credentials.username),
        party: relyingParty(c, ctx),
      })
      if (result.kind === 'refused') throw new AppError('invalid_credentials')
      let answer: z.output<typeof loginAnswer>
      if (result.kind === 'half') {
        await handOutAttempt(c, ctx, result)
        answer = { secondFactor: result.factors }
      } else {
        await startSession(c, ctx, { id: result.userId, epoch: result.epoch, oidcIssuer: null, factors: 1 })
        await rememberBrowser(c, ctx, result.userId)
        answer = result.answer
      }
      return c.json(answer)
    },
  )
  .route('/login', factorSignInRoutes)
  .post('/logout', anyone, answers('Sign out', { 200: z.object({ logoutUrl: z.string().nullable() }) }), async (c) => {
    await signOut(c, c.var.ctx)
    return c.json({ logoutUrl: await providerLogoutUrl(c.var.ctx) })
  })
  .post(
    '/change-password',
    requireAnySession,
    requireLocalAuth,
    answers('Change your own password. Your other sessions end', { 204: null }, [
      'wrong_password',
      'weak_password',
      'local_auth_disabled',
      'not_a_local_user',
      'rate_limited',
    ]),
    validate('json', passwordChangeSchema),
    async (c) => {
      const { ctx } = c.var
      const { epoch } = await changePassword(ctx, c.req.valid('json'))
      await continueSession(c, ctx, { epoch, ...provedLocally(ctx) })
      await rememberBrowser(c, ctx, ctx.viewer.user.id)
      return c.body(null, 204)
    },
  )
  .get(
    '/reauthenticate',
    requireEnrollingSession,
    requireFreshProof,
    answers('Whether your sign-in is recent enough for the changes that need it', { 204: null }),
    (c) => c.body(null, 204),
  )
  .post(
    '/reauthenticate',
    requireEnrollingSession,
    answers(
      'Prove again who you are. Some changes need a sign-in within the last 15 minutes, and changes of second factors need one of yours. The session continues under another cookie',
      { 204: null },
      [
        'wrong_password',
        'wrong_code',
        'passkey_refused',
        'passkeys_unavailable',
        'not_a_local_user',
        'local_auth_disabled',
        'rate_limited',
      ],
    ),
    validate('json', proofSchema),
    async (c) => {
      const { ctx } = c.var
      const way = await reauthenticate(c, ctx, c.req.valid('json'))
      await continueSession(c, ctx, { ...provedLocally(ctx), ...(way !== 'password' && { factorAt: ctx.now() }) })
      return c.body(null, 204)
    },
  )
  .post(
    '/reauthenticate/options',
    requireEnrollingSession,
    answers('Passkey options for proving who you are', { 200: optionsSchema }, ['passkeys_unavailable']),
    async (c) => {
      const { ctx } = c.var
      return c.json({ options: await askForPasskey(c, ctx, 'again', ctx.viewer.user.id) })
    },
  )
  .get(
    '/sessions',
    requireSession,
    answers('Your sessions', { 200: z.object({ sessions: z.array(sessionSchema) }) }),
    async (c) => c.json({ sessions: await listSessions(c.var.ctx, c.var.ctx.viewer.user.id) }),
  )
  .get(
    '/sign-ins',
    requireSession,
    answers('Your own sign-ins, newest first, as far back as the audit log', {
      200: z.object({
        signIns: z.array(signInSchema),
        nextBefore: z.int().nullable().describe('`before` of the next page; null: this is the last one'),
      }),
    }),
    validate(
      'query',
      z.object({
        limit: integerQuery(1, 100).default(20).describe('Maximum number of entries in the response'),
        before: integerQuery(1, Number.MAX_SAFE_INTEGER).optional().describe('Only entries with a lower ID'),
      }),
    ),
    async (c) => c.json(await listSignIns(c.var.ctx, c.req.valid('query'))),
  )
  .delete('/sessions', requireSession, answers('End your other sessions', { 204: null }), async (c) => {
    await revokeOtherSessions(c.var.ctx)
    return c.body(null, 204)
  })
  .delete(
    '/sessions/:id',
    requireSession,
    answers('End one of your sessions', { 204: null }, ['not_found']),
    validate('param', idParam),
    async (c) => {
      await revokeSession(c.var.ctx, c.var.ctx.viewer.user.id, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
  .put(
    '/preferences',
    requireSession,
    answers('Choose the language and the units of the pages, and of messages to you', { 204: null }),
    validate('json', preferencesSchema),
    async (c) => {
      await keepPreferences(c.var.ctx, c.req.valid('json'))
      return c.body(null, 204)
    },
  )
  .route('/factors', factorRoutes)
  .route('/oidc', oidcRoutes)
  .route('/', mailRoutes)
  .route('/proxy', proxyRoutes)
