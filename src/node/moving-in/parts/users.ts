import { eq, sql } from 'drizzle-orm'
import { seedLabel } from '../../../app/accounts/factors/totp.ts'
import { addIdentity, isIdentity } from '../../../app/accounts/users/identities.ts'
import { writePermissions } from '../../../app/accounts/users/permissions.ts'
import { NEW_SCOPE_ROW, scopeRow } from '../../../app/accounts/users/scope.ts'
import { displayNameSchema, emailSchema, findUserByName, usernameSchema } from '../../../app/accounts/users/users.ts'
import { verifyPassword } from '../../../app/accounts/passwords/passwords.ts'
import { audit } from '../../../app/audit/audit.ts'
import { seal } from '../../../app/base/sealing.ts'
import { toHex } from '../../../app/base/crypto.ts'
import { type ImportReport, MAX_USERS } from '../../../app/system/moving-in/report.ts'
import { identities, totpFactors, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { ALL_PERMISSIONS } from '../../../shared/access/resources.ts'
import { MAX_SUBJECT } from '../../../shared/limits.ts'
import type { UserOutcome } from '../../../shared/moving-in.ts'
import { MAX_BCRYPT_COST } from '../../../app/system/backup/format/rows.ts'
import { type Job, plausibleTime } from '../job.ts'
import { flagIn, integerIn, type Row, textIn } from '../source/row.ts'
import type { Places } from './places.ts'
import { ADMINISTRATOR, readRights, type Rights } from './rights.ts'

const COLUMNS = [
  'id',
  'username',
  'password_hash',
  'email',
  'display_name',
  'auth_provider',
  'oidc_subject',
  'is_admin',
  'is_active',
  'mfa_enabled',
  'mfa_secret',
  'created_at',
  'last_login_at',
]
/** Lines of a user's rights in a report, and characters of each. */
const MAX_PLACES = 10
const MAX_LINE = 500
const ANONYMOUS = 'anonymous'
/** Everybody knows the password with which the program starts. */
const FIRST_PASSWORD = 'changeme'
const BCRYPT = /^\$2[aby]\$(\d{2})\$[./A-Za-z0-9]{53}$/
const MIN_BCRYPT_COST = 4

type Options = { readonly oidcIssuer: string | null; readonly units: string | null }

/** Adds the users that are missing here, each in one step; returns what became of each. */
export async function importUsers(job: Job, places: Places, options: Options): Promise<ImportReport['users']> {
  const { source, tally } = job
  const rightsOf = readRights(job, places)
  const listed: ImportReport['users'] = []
  const ours = new Map<number, number>()
  for (const row of source.rows('users', COLUMNS, 'order by id')) {
    const id = integerIn(row, 'id')
    const username = textIn(row, 'username')
    if (id === null || username === null) continue
    tally.found('users')
    const rights = rightsOf(id)
    const isAdmin = flagIn(row, 'is_admin')
    const outcome = await importUser(job, { row, username, rights, isAdmin, ours, options })
    const found = job.writer.isDry ? null : await findUserByName(job.ctx.store, username)
    if (found !== null) ours.set(id, found.id)
    if (listed.length === MAX_USERS) continue
    const given = isAdmin ? ADMINISTRATOR : rights.after
    const isGiven = outcome === 'added' || outcome === 'proposal'
    listed.push({
      username: username.replaceAll(/\p{C}/gu, '').slice(0, 100),
      outcome,
      before: isAdmin ? [...ADMINISTRATOR] : rights.before.slice(0, MAX_PLACES).map((text) => text.slice(0, MAX_LINE)),
      after: isGiven ? [...given] : [],
    })
  }
  return listed
}

type Candidate = {
  readonly row: Row
  readonly username: string
  readonly rights: Rights
  readonly isAdmin: boolean
  /** Our id by that of the file. */
  readonly ours: ReadonlyMap<number, number>
  readonly options: Options
}

async function importUser(job: Job, candidate: Candidate): Promise<UserOutcome> {
  const { ctx, tally, writer } = job
  const { row, username, options } = candidate
  if (username === ANONYMOUS) return 'proposal'
  if (!usernameSchema.safeParse(username).success) {
    tally.lost('users_bad_name', username)
    return 'left_out'
  }
  if ((await findUserByName(ctx.store, username)) !== null) {
    tally.lost('users_present', username)
    return 'present'
  }
  const provider = textIn(row, 'auth_provider') ?? 'local'
  const subject = textIn(row, 'oidc_subject')
  if (provider === 'oidc') {
    if (options.oidcIssuer === null || subject === null || subject.length > MAX_SUBJECT) {
      tally.lost('users_without_issuer', username)
      return 'left_out'
    }
    const identity = { issuer: options.oidcIssuer, subject }
    const taken = await ctx.store.db.select({ id: identities.id }).from(identities).where(isIdentity(identity)).get()
    if (taken !== undefined) {
      tally.lost('users_present', username)
      return 'present'
    }
    await addUser(job, candidate, { identity, passwordHash: null })
  } else if (provider === 'local') {
    const passwordHash = await usableHash(job, textIn(row, 'password_hash') ?? '')
    if (passwordHash === null) tally.lost('users_without_password', username)
    await addUser(job, candidate, { identity: null, passwordHash })
  } else {
    tally.lost('users_other_sign_in', username)
    return 'left_out'
  }
  if (textIn(row, 'mfa_secret') !== null && flagIn(row, 'mfa_enabled')) tally.lost('recovery_codes', username)
  if (!writer.isDry) tally.added('users')
  return 'added'
}

type Way = {
  readonly identity: { readonly issuer: string; readonly subject: string } | null
  readonly passwordHash: string | null
}

/** Adds a user with permissions, second factor and audit entry in one step: never without one of them. */
async function addUser(job: Job, candidate: Candidate, { identity, passwordHash }: Way): Promise<void> {
  const { ctx, writer, now } = job
  const { row, username, rights, isAdmin, ours, options } = candidate
  if (writer.isDry) return
  const { db } = ctx.store
  const id = await nextId(job)
  const email = emailSchema.safeParse(textIn(row, 'email')).data ?? null
  const displayName = displayNameSchema.safeParse(textIn(row, 'display_name')).data ?? null
  const seed = identity === null && flagIn(row, 'mfa_enabled') ? readSeed(textIn(row, 'mfa_secret')) : null
  const values = {
    id,
    username,
    email,
    displayName,
    authProvider: identity === null ? ('local' as const) : ('oidc' as const),
    oidcIssuer: identity?.issuer ?? null,
    passwordHash,
    isAdmin,
    isActive: flagIn(row, 'is_active'),
    createdAt: plausibleTime(job, integerIn(row, 'created_at')) ?? now,
    lastLoginAt: plausibleTime(job, integerIn(row, 'last_login_at')),
    units: options.units,
    ...(isAdmin ? NEW_SCOPE_ROW : scopeRow(rights.scope)),
  }
  const which = eq(users.id, id)
  const at = plausibleTime(job, rights.grantedAt) ?? now
  const by = rights.grantedBy === null ? null : (ours.get(rights.grantedBy) ?? null)
  const statements: Statement[] = [
    db.insert(users).values(values),
    writePermissions(ctx.store, which, isAdmin ? ALL_PERMISSIONS : rights.permissions, { at, by }),
    ...(identity === null ? [] : [addIdentity(ctx.store, which, identity, now)]),
    audit(ctx, 'user_created', { username, userId: id, isAdmin, from: 'meshmonitor' }),
  ]
  if (seed !== null) {
    const sealed = await seal(ctx.config.SESSION_SECRET, seedLabel(id), toHex(seed))
    statements.push(db.insert(totpFactors).values({ userId: id, seed: sealed, lastStep: 0, createdAt: now }))
  }
  await writer.atomic(statements)
}

// The seed is sealed for this id, so it must be known before the row is written.
async function nextId({ ctx }: Job): Promise<number> {
  const [row] = await ctx.store.db.all<{ id: number }>(
    sql`select coalesce((select seq from sqlite_sequence where name = 'users'), 0) + 1 as id`,
  )
  return row?.id ?? 1
}

/** Null for what is no hash, for one that takes too long to check, and for that of the password that everybody knows: whoever comes first would be the user. */
async function usableHash({ ctx }: Job, hash: string): Promise<string | null> {
  const cost = Number(BCRYPT.exec(hash)?.[1] ?? 0)
  if (cost < MIN_BCRYPT_COST || cost > MAX_BCRYPT_COST) return null
  const isFirst = await verifyPassword(ctx.passwords, { password: FIRST_PASSWORD, turn: 'known' }, hash)
  return isFirst ? null : hash
}

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The bytes of a seed in Base32 (RFC 4648, section 6); null for anything else. */
function readSeed(text: string | null): Uint8Array | null {
  const letters = (text ?? '').toUpperCase().replaceAll(/[\s=]/g, '')
  if (!/^[A-Z2-7]{16,200}$/.test(letters)) return null
  const bits = [...letters].map((letter) => BASE32.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return Uint8Array.from({ length: Math.floor(bits.length / 8) }, (_, at) =>
    Number.parseInt(bits.slice(at * 8, at * 8 + 8), 2),
  )
}
