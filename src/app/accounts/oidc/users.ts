import { languageOf } from '../../words/reader.ts'
import type { Identity } from './provider.ts'
import { NEW_SCOPE_ROW } from '../users/scope.ts'
import { and, eq, inArray, not, sql } from 'drizzle-orm'
import { identities, users } from '../../../db/schema.ts'
import type { Statement, Store } from '../../../db/store.ts'
import { audit, SYSTEM } from '../../audit/audit.ts'
import type { User } from '../users/user.ts'
import type { ProviderSettings } from '../../config/providers.ts'
import type { Ctx } from '../../base/context.ts'
import { writePermissions } from '../users/permissions.ts'
import { isNamed, userIdByName } from '../users/users.ts'
import { hasRealAdmin, isRealAdmin } from '../users/way-in.ts'
import { browserDetails } from '../browser.ts'
import { type GroupVerdict, roleStatements, sentStatements } from './groups.ts'
import { OidcFailure } from './failure.ts'
import { addIdentity, isIdentity } from '../users/identities.ts'
import { suffixed } from './protocol/profile.ts'
import { releaseTokens } from '../tokens/hold.ts'
import { randomId } from '../sessions/session-token.ts'
import { ALL_PERMISSIONS, DEFAULT_PERMISSIONS } from '../../../shared/access/resources.ts'

/** Attempts to find a free name; an attempt fails if somebody else takes the name first. */
const MAX_ROUNDS = 30

type Account = {
  readonly id: number
  readonly username: string
  readonly isActive: boolean
  readonly isAdmin: boolean
  readonly authProvider: User['authProvider']
  /** Issuer of the provider whose groups and profile rule; null: none. */
  readonly ruler: string | null
  readonly epoch: number
}

/**
 * Signs in the user that the provider identified, creating the account if necessary, and records it. A user is found by
 * issuer and subject alone. `knownUsers` signed in before in this browser; it matters for linked accounts. Throws an `OidcFailure`: `user_unknown`, `user_inactive`.
 */
export async function signInIdentity(
  ctx: Ctx,
  settings: ProviderSettings,
  identity: Identity,
  verdict: Exclude<GroupVerdict, { kind: 'refuse' }>,
  knownUsers: readonly number[] = [],
): Promise<{ id: number; epoch: number; isLocal: boolean }> {
  const account = (await findAccount(ctx.store, identity)) ?? (await createAccount(ctx, settings, identity))
  const { id, username, isActive, isAdmin, epoch } = account
  if (!isActive) throw new OidcFailure('user_inactive', { userId: id })
  if (isAdmin) ctx.disk?.makeRoom()
  // Another provider that is linked says who signs in, and nothing else: whoever links one must not gain anything.
  const rules = account.ruler === identity.issuer
  // A local account has its own profile.
  const isProfileTheirs = rules && account.authProvider === 'oidc'
  const { displayName, email } = isProfileTheirs ? identity.profile : { displayName: null, email: null }
  const isLocal = account.authProvider === 'local'
  const isNewBrowser = isLocal && !knownUsers.includes(id)
  const roles = rules ? await roleStatements(ctx, settings, account, verdict) : []
  const signedInAt = ctx.now()
  await ctx.store.atomic([
    ctx.store.db
      .update(users)
      // A claim that is missing today does not delete the known value.
      .set({
        lastLoginAt: signedInAt,
        browserLanguage: languageOf(ctx.acceptLanguage),
        ...(displayName !== null && { displayName }),
        ...(email !== null && { email }),
      })
      .where(and(eq(users.id, id), eq(users.isActive, true))),
    audit(
      ctx,
      'login_success',
      {
        ...signInWay(settings),
        ...(verdict.why !== null && { groups: verdict.why }),
        ...browserDetails(ctx),
        ...(isNewBrowser && { newBrowser: true }),
      },
      { actor: { id, username }, onlyIfChanged: true },
    ),
    ...releaseTokens(ctx, account, signedInAt),
    ...sentStatements(ctx, settings, identity.groups),
    ...roles,
    ...(isFirstAdmin(settings, identity) ? firstAdminStatements(ctx, settings, account) : []),
  ])
  return { id, epoch, isLocal }
}

/** The method of a sign-in, for the audit log. */
export type SignInWay = {
  readonly provider: 'oidc' | 'proxy'
  /** Name of the OpenID provider in the configuration. Absent: it is unknown, or a proxy signed the user in. */
  readonly providerId?: string
}

export function signInWay({ id }: ProviderSettings): SignInWay {
  return id === 'proxy' ? { provider: 'proxy' } : { provider: 'oidc', providerId: id }
}

/** The account of a provider's user, active or not; null: none. */
export async function findAccount(
  store: Store,
  identity: Pick<Identity, 'issuer' | 'subject'>,
): Promise<Account | null> {
  const account = await store.db
    .select({
      id: users.id,
      username: users.username,
      isActive: users.isActive,
      isAdmin: users.isAdmin,
      authProvider: users.authProvider,
      ruler: users.oidcIssuer,
      epoch: users.sessionEpoch,
    })
    .from(identities)
    .innerJoin(users, eq(users.id, identities.userId))
    .where(isIdentity(identity))
    .get()
  return account ?? null
}

async function createAccount(ctx: Ctx, settings: ProviderSettings, identity: Identity): Promise<Account> {
  const mayCreate = settings.autoCreateUsers || (isFirstAdmin(settings, identity) && !(await hasAdmin(ctx)))
  if (!mayCreate) {
    const { issuer, subject } = identity
    throw new OidcFailure('user_unknown', {}, { issuer, subject })
  }
  for (let round = 1; ; round++) {
    const username = await freeUsername(ctx.store, identity.profile.username, round)
    const refusal = await insertAccount(ctx, settings, identity, username).then(
      () => null,
      (error: unknown) => ({ error }),
    )
    const account = await findAccount(ctx.store, identity)
    if (account !== null) return account
    // The account was created neither here nor by another request: either the name was taken meanwhile, or the database
    // failed.
    const mayRetry = round < MAX_ROUNDS && (await isTaken(ctx.store, username))
    if (!mayRetry) throw refusal?.error ?? new Error('the user that was just created is gone')
  }
}

function isFirstAdmin({ adminSubject }: ProviderSettings, { subject }: Identity): boolean {
  return adminSubject === subject
}

async function hasAdmin({ store, config }: Ctx): Promise<boolean> {
  const found = await store.db.select({ id: users.id }).from(users).where(isRealAdmin(config)).limit(1).get()
  return found !== undefined
}

/** Makes the user of OIDC_ADMIN_SUBJECT an administrator while no administrator can sign in. */
function firstAdminStatements(ctx: Ctx, settings: ProviderSettings, { id, username }: Account): Statement[] {
  const still = and(eq(users.id, id), not(hasRealAdmin(ctx.config)))
  return [
    audit(
      ctx,
      'admin_bootstrapped',
      { username, userId: id, by: 'OIDC_ADMIN_SUBJECT', ...signInWay(settings) },
      {
        actor: SYSTEM,
        onlyIf: sql`exists (select 1 from ${users} where ${still})`,
      },
    ),
    writePermissions(ctx.store, still, ALL_PERMISSIONS, { at: ctx.now(), by: null }),
    ctx.store.db.update(users).set({ isAdmin: true }).where(still),
  ]
}

async function insertAccount(
  ctx: Ctx,
  settings: ProviderSettings,
  identity: Identity,
  username: string,
): Promise<void> {
  const { issuer, profile } = identity
  const whom = isNamed(username)
  const id = userIdByName(username)
  await ctx.store.atomic([
    ctx.store.db.insert(users).values({
      username,
      email: profile.email,
      displayName: profile.displayName,
      authProvider: 'oidc',
      oidcIssuer: issuer,
      createdAt: ctx.now(),
      ...NEW_SCOPE_ROW,
    }),
    addIdentity(ctx.store, whom, identity, ctx.now()),
    writePermissions(ctx.store, whom, DEFAULT_PERMISSIONS, { at: ctx.now(), by: null }),
    audit(ctx, 'oidc_user_created', { ...signInWay(settings), username, userId: id }, { actor: { id, username } }),
  ])
}

/** The name itself, or with the lowest free number; with a random one if numbers run out or races continue. */
async function freeUsername(store: Store, username: string, round: number): Promise<string> {
  const numbered = [username, ...Array.from({ length: 19 }, (_, i) => suffixed(username, String(i + 2)))]
  const lower = sql<string>`lower(${users.username})`
  const rows = await store.db
    .select({ name: lower })
    .from(users)
    .where(
      inArray(
        lower,
        numbered.map((name) => name.toLowerCase()),
      ),
    )
    .all()
  const taken = new Set([...rows.map(({ name }) => name), RESERVED])
  const free = numbered.find((name) => !taken.has(name.toLowerCase()))
  return round > 5 || free === undefined ? suffixed(username, String(randomId() % 1_000_000_000)) : free
}

/** In the audit log this name stands for the service itself. */
const RESERVED = 'system'

async function isTaken(store: Store, username: string): Promise<boolean> {
  const found = await store.db
    .select({ id: users.id })
    .from(users)
    .where(sql`lower(${users.username}) = lower(${username})`)
    .get()
  return found !== undefined
}
