import type { Identity } from './provider.ts'
import { NEW_SCOPE_ROW } from '../../sharing/scope.ts'
import { and, eq, inArray, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import { users } from '../../../db/schema.ts'
import type { Statement, Store } from '../../../db/store.ts'
import { audit, SYSTEM } from '../../audit/audit.ts'
import type { User } from '../../users/user.ts'
import type { ProviderSettings } from '../../config/providers.ts'
import type { Ctx } from '../../context.ts'
import { writePermissions } from '../../users/permissions.ts'
import { browserDetails } from '../browser.ts'
import { roleStatements } from './groups.ts'
import { OidcFailure } from './failure.ts'
import { suffixed } from './protocol/profile.ts'
import { randomId } from '../sessions/session-token.ts'
import { ALL_PERMISSIONS, DEFAULT_PERMISSIONS } from '../../../shared/access/resources.ts'

/** Attempts to find a free name; an attempt fails if somebody else takes the name first. */
const MOST_ROUNDS = 30

type Account = {
  readonly id: number
  readonly username: string
  readonly isActive: boolean
  readonly isAdmin: boolean
  readonly authProvider: User['authProvider']
  readonly epoch: number
}

/**
 * Signs in the user that the provider identified, creating the account if necessary, and records it. A user is found by
 * issuer and subject alone. Throws an `OidcFailure`: `user_unknown`, `user_inactive`.
 */
export async function signInIdentity(
  ctx: Ctx,
  settings: ProviderSettings,
  identity: Identity,
): Promise<{ id: number; epoch: number }> {
  const account = (await findAccount(ctx.store, identity)) ?? (await createAccount(ctx, settings, identity))
  const { id, username, isActive, isAdmin, epoch } = account
  if (!isActive) throw new OidcFailure('user_inactive', { userId: id })
  if (isAdmin) ctx.disk?.makeRoom()
  // A linked local account has its own profile.
  const { displayName, email } = account.authProvider === 'oidc' ? identity.profile : { displayName: null, email: null }
  const roles = await roleStatements(ctx, settings, account, identity.groups)
  await ctx.store.atomic([
    ctx.store.db
      .update(users)
      // A claim that is missing today does not delete the known value.
      .set({ lastLoginAt: ctx.now(), ...(displayName !== null && { displayName }), ...(email !== null && { email }) })
      .where(and(eq(users.id, id), eq(users.isActive, true))),
    audit(
      ctx,
      'login_success',
      { provider: settings.id === 'proxy' ? 'proxy' : 'oidc', ...browserDetails(ctx) },
      { actor: { id, username }, onlyIfChanged: true },
    ),
    ...roles,
    ...(isFirstAdmin(settings, identity) ? firstAdminStatements(ctx, account) : []),
  ])
  return { id, epoch }
}

/** The account of a provider's user, active or not; null: none. */
export async function findAccount(
  store: Store,
  { issuer, subject }: Pick<Identity, 'issuer' | 'subject'>,
): Promise<Account | null> {
  const account = await store.db
    .select({
      id: users.id,
      username: users.username,
      isActive: users.isActive,
      isAdmin: users.isAdmin,
      authProvider: users.authProvider,
      epoch: users.sessionEpoch,
    })
    .from(users)
    .where(and(eq(users.oidcIssuer, issuer), eq(users.oidcSubject, subject)))
    .get()
  return account ?? null
}

async function createAccount(ctx: Ctx, settings: ProviderSettings, identity: Identity): Promise<Account> {
  const mayCreate = settings.autoCreateUsers || (isFirstAdmin(settings, identity) && !(await hasAdmin(ctx.store)))
  if (!mayCreate) {
    const { issuer, subject } = identity
    throw new OidcFailure('user_unknown', {}, { issuer, subject })
  }
  for (let round = 1; ; round++) {
    const username = await freeUsername(ctx.store, identity.profile.username, round)
    const refusal = await insertAccount(ctx, identity, username).then(
      () => null,
      (error: unknown) => ({ error }),
    )
    const account = await findAccount(ctx.store, identity)
    if (account !== null) return account
    // Not created, and not by anybody else: either the name was taken meanwhile, or the database failed.
    const mayRetry = round < MOST_ROUNDS && (await isTaken(ctx.store, username))
    if (!mayRetry) throw refusal?.error ?? new Error('the user that was just created is gone')
  }
}

function isFirstAdmin({ adminSubject }: ProviderSettings, { subject }: Identity): boolean {
  return adminSubject === subject
}

const otherUsers = alias(users, 'others')
const activeAdmins = and(eq(otherUsers.isAdmin, true), eq(otherUsers.isActive, true))

async function hasAdmin({ db }: Store): Promise<boolean> {
  return (await db.select({ id: otherUsers.id }).from(otherUsers).where(activeAdmins).limit(1).get()) !== undefined
}

/** Makes the user of OIDC_ADMIN_SUBJECT an administrator while there is no active one. */
function firstAdminStatements(ctx: Ctx, { id, username }: Account): Statement[] {
  const still = and(eq(users.id, id), sql`not exists (select 1 from ${users} as "others" where ${activeAdmins})`)
  return [
    audit(
      ctx,
      'admin_bootstrapped',
      { username, userId: id },
      {
        actor: SYSTEM,
        onlyIf: sql`exists (select 1 from ${users} where ${still})`,
      },
    ),
    writePermissions(ctx.store, still, ALL_PERMISSIONS, { at: ctx.now(), by: null }),
    ctx.store.db.update(users).set({ isAdmin: true }).where(still),
  ]
}

async function insertAccount(ctx: Ctx, identity: Identity, username: string): Promise<void> {
  const { issuer, subject, profile } = identity
  const whom = and(eq(users.oidcIssuer, issuer), eq(users.oidcSubject, subject))
  const id = sql`(select ${users.id} from ${users} where ${whom})`
  await ctx.store.atomic([
    ctx.store.db.insert(users).values({
      username,
      email: profile.email,
      displayName: profile.displayName,
      authProvider: 'oidc',
      oidcIssuer: issuer,
      oidcSubject: subject,
      createdAt: ctx.now(),
      ...NEW_SCOPE_ROW,
    }),
    writePermissions(ctx.store, whom, DEFAULT_PERMISSIONS, { at: ctx.now(), by: null }),
    audit(ctx, 'oidc_user_created', { username, userId: id }, { actor: { id, username } }),
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
