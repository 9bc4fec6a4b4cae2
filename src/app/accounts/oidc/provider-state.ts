import { desc, eq } from 'drizzle-orm'
import * as z from 'zod'
import { auditLog } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { signedOutPage } from '../../config/callback.ts'
import { AppError } from '../../http/errors.ts'
import { namesOf } from '../../../shared/names.ts'
import { OIDC_FAILURES, OidcFailure, type OidcReason } from './failure.ts'
import type { Provider } from './provider.ts'
import { STRAY } from './sign-in.ts'

/** How many of the latest failed sign-ins are searched for one of each provider. */
const MAX_SEARCHED = 200

const failureSchema = z
  .object({
    reason: z.enum(namesOf(OIDC_FAILURES)).describe('As in the audit log'),
    details: z.record(z.string(), z.union([z.string(), z.number()])).describe('Words and numbers from fixed lists'),
  })
  .meta({ id: 'ProviderFailure', description: 'Why an OpenID provider could not be used' })
type Failure = z.infer<typeof failureSchema>

const registrationSchema = z
  .object({
    id: z.string().describe('Name as in GET /api/auth/status'),
    name: z.string().nullable().describe('Its name for people'),
    issuer: z.string(),
    redirectUri: z.string().describe('Register exactly this one, without a wildcard'),
    signedOutUri: z.string().describe('The post-logout redirect URI'),
    lastFailure: failureSchema
      .extend({ at: z.int().describe('ms since the Unix epoch') })
      .nullable()
      .describe(
        'The last sign-in or discovery that failed, of what this process and the latest entries of the audit log know',
      ),
  })
  .meta({ id: 'ProviderRegistration', description: 'What to register at an OpenID provider, and its state' })

export const registrationsSchema = z.object({ providers: z.array(registrationSchema) })

export const testSchema = z
  .object({
    at: z.int().describe('ms since the Unix epoch'),
    failure: failureSchema.nullable().describe('null: sign-ins can begin'),
    found: z
      .object({
        authorizationEndpoint: z.string(),
        tokenEndpoint: z.string(),
        userinfoEndpoint: z.string().nullable(),
        endSessionEndpoint: z.string().nullable().describe('null: signing out ends only the session here'),
        keys: z.int().describe('How many of its keys can verify an ID token'),
      })
      .nullable()
      .describe('What the provider says of itself; null after a failure'),
  })
  .meta({ id: 'ProviderTest', description: 'Whether discovery works and the keys can be used. Nobody signs in' })

const queries = prepareOnce((db) => ({
  failures: db
    .select({ at: auditLog.timestamp, details: auditLog.details })
    .from(auditLog)
    .where(eq(auditLog.action, 'oidc_login_failed'))
    .orderBy(desc(auditLog.id))
    .limit(MAX_SEARCHED)
    .prepare(),
}))

/** The configured providers: what to register there, and how it goes. */
export async function readRegistrations({
  providers,
  store,
}: SignedInCtx): Promise<z.infer<typeof registrationsSchema>> {
  const rows = await queries(store).failures.all()
  const failures = rows.flatMap(({ at, details }) => {
    const { provider: _kind, providerId, reason, ...rest }: Record<string, unknown> = JSON.parse(details)
    // Anybody can cause the others without having been at the provider.
    return isReason(reason) && !STRAY.has(reason)
      ? [{ providerId, failure: { at, reason, details: readDetails(rest) } }]
      : []
  })
  return {
    providers: providers.map((provider) => {
      const { id, name, issuer, redirectUri } = provider.settings
      const signIn = failures.find(({ providerId }) => providerId === id)?.failure ?? null
      const discovery = provider.discoveryFailure()
      const isNewer = discovery !== null && discovery.at >= (signIn?.at ?? 0)
      const lastFailure = isNewer ? { at: discovery.at, ...describeFailure(discovery.failure) } : signIn
      return { id, name, issuer, redirectUri, signedOutUri: signedOutPage(redirectUri), lastFailure }
    }),
  }
}

/** Tries a provider without a sign-in, and records that. Throws `not_found`. */
export async function testProvider(ctx: SignedInCtx, id: string): Promise<z.infer<typeof testSchema>> {
  const provider = ctx.providers.find(({ settings }) => settings.id === id)
  if (provider === undefined) throw new AppError('not_found')
  const tested = await attempt(provider)
  const entry = { providerId: id, ...(tested.failure === null ? { ok: true } : { ok: false, ...tested.failure }) }
  await ctx.store.atomic([audit(ctx, 'oidc_provider_tested', entry)])
  return { at: ctx.now(), ...tested }
}

async function attempt(provider: Provider): Promise<Omit<z.infer<typeof testSchema>, 'at'>> {
  try {
    return { failure: null, found: await provider.test() }
  } catch (error) {
    if (!(error instanceof OidcFailure)) throw error
    return { failure: describeFailure(error), found: null }
  }
}

function describeFailure({ reason, details }: OidcFailure): Failure {
  return { reason, details: { ...details } }
}

/** Without the identity of who was refused. */
function readDetails({ issuer: _issuer, subject: _subject, ...rest }: Record<string, unknown>): Failure['details'] {
  return failureSchema.shape.details.safeParse(rest).data ?? {}
}

function isReason(reason: unknown): reason is OidcReason {
  return typeof reason === 'string' && Object.hasOwn(OIDC_FAILURES, reason)
}
