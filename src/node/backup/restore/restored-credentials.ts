import type Database from 'better-sqlite3'
import * as z from 'zod'
import { hostOf } from '../../../app/alerts/destinations/host.ts'
import type { RestorableAction } from '../../../app/system/restore/restored-access.ts'
import type { Undone } from '../../../app/system/restore/undone.ts'
import { DESTINATION_KIND_NAMES } from '../../../shared/alerts/destination-kinds.ts'

const flag = z.int().transform((value) => value !== 0)
const whose = { user_id: z.int() }

const SCHEMAS = {
  passkeys: z.object({
    ...whose,
    name: z.string(),
    credential_id: z.string(),
    public_key: z.string(),
    counter: z.int(),
    is_backup_eligible: flag,
    is_backed_up: flag,
    transports: z.string(),
    rp_id: z.string(),
    created_at: z.int(),
    last_used_at: z.int().nullable(),
  }),
  totp_factors: z.object({
    ...whose,
    seed: z.string(),
    last_step: z.int(),
    created_at: z.int(),
    last_used_at: z.int().nullable(),
  }),
  recovery_codes: z.object({ ...whose, code_hash: z.string(), used_by: z.string().nullable() }),
  alert_destinations: z.object({
    owner_id: z.int(),
    uid: z.string(),
    name: z.string(),
    kind: z.enum(DESTINATION_KIND_NAMES),
    settings: z.string(),
    held_at: z.int().nullable().default(null),
  }),
} as const

const identitySchema = z.object({ ...whose, issuer: z.string(), subject: z.string() })
type IdentityRow = z.output<typeof identitySchema>

type Tables = { readonly [T in keyof typeof SCHEMAS]: readonly z.output<(typeof SCHEMAS)[T]>[] } & {
  readonly identities: readonly IdentityRow[]
  /** The issuer whose groups decide about each user; null: a version in which every linked one did. */
  readonly rulers: ReadonlyMap<number, string | null> | null
  /** The confirmed e-mail address of each user; null: a version without them. */
  readonly confirmed: ReadonlyMap<number, string> | null
}

/** The users' ways to sign in, and their alert destinations, in a database. An older version has only some of them. */
export function readWays(database: Database.Database): Tables {
  return {
    passkeys: readAll(database, 'passkeys', SCHEMAS.passkeys),
    totp_factors: readAll(database, 'totp_factors', SCHEMAS.totp_factors),
    recovery_codes: readAll(database, 'recovery_codes', SCHEMAS.recovery_codes),
    alert_destinations: readAll(database, 'alert_destinations', SCHEMAS.alert_destinations),
    identities: readIdentities(database),
    rulers: readRulers(database),
    confirmed: readConfirmed(database),
  }
}

/** Earlier versions have one identity for each user, in columns of `users`. */
function readIdentities(database: Database.Database): IdentityRow[] {
  if (!hasSubjects(database)) return readAll(database, 'identities', identitySchema)
  const rows = database.prepare(
    `select id as user_id, oidc_issuer as issuer, oidc_subject as subject from users
      where oidc_issuer is not null and oidc_subject is not null`,
  )
  return z.array(identitySchema).parse(rows.all())
}

function readRulers(database: Database.Database): Tables['rulers'] {
  if (hasSubjects(database)) return null
  const rows = database.prepare<[], { id: number; issuer: string | null }>(
    'select id, oidc_issuer as issuer from users',
  )
  return new Map(rows.all().map(({ id, issuer }) => [id, issuer]))
}

function readConfirmed(database: Database.Database): Tables['confirmed'] {
  if (!hasTable(database, 'verified_emails')) return null
  const rows = database.prepare<[], { userId: number; email: string }>(
    'select user_id as userId, email from verified_emails where ended_at is null',
  )
  return new Map(rows.all().map(({ userId, email }) => [userId, email]))
}

function hasTable(database: Database.Database, table: string): boolean {
  const exists = database.prepare("select count(*) from sqlite_schema where type = 'table' and name = ?").pluck()
  return exists.get(table) === 1
}

function hasSubjects(database: Database.Database): boolean {
  const columns = database.prepare("select count(*) from pragma_table_info('users') where name = 'oidc_subject'")
  return columns.pluck().get() === 1
}

function readAll<S extends z.ZodType>(database: Database.Database, table: string, schema: S): z.output<S>[] {
  if (!hasTable(database, table)) return []
  return z.array(schema).parse(database.prepare(`select * from "${table}"`).all())
}

/** The columns of `users` that are ways to sign in. */
export type WayColumns = {
  readonly email: string | null
  readonly authProvider: string
}

/** A way to sign in that the restore brought back, or a protection that it removed. */
export type LostWay = {
  readonly action: RestorableAction
  /** Its name: of a passkey or a destination, or an address. */
  readonly what: string | null
  readonly undone: Undone
  /** Whether an audit entry with these details may be about it. */
  isRecordedBy(details: Readonly<Record<string, unknown>>): boolean
}

type Both<T> = { readonly after: T; readonly before: T }

/** What the restore changed for one user. `after`: the restored database; `before`: the replaced one. */
export function lostWays(userId: number, users: Both<WayColumns>, tables: Both<Tables>): LostWay[] {
  const own = <T extends { readonly user_id: number }>(rows: readonly T[]) =>
    rows.filter((row) => row.user_id === userId)
  const { after, before } = tables
  const codes = own(before.recovery_codes).map(({ code_hash: hash, used_by: usedBy }) => ({ hash, usedBy }))
  const keys = { after: own(after.passkeys), before: own(before.passkeys) }
  const apps = { after: own(after.totp_factors)[0] ?? null, before: own(before.totp_factors)[0] ?? null }
  return [
    ...lostPasskeys(keys, codes),
    ...lostApps(apps, codes),
    ...lostCodes(own(after.recovery_codes), codes),
    ...lostLinks(own(after.identities), own(before.identities)),
    ...lostRuler({ after: after.rulers?.get(userId) ?? null, before: before.rulers?.get(userId) }),
    ...lostEmail(users),
    ...lostConfirmation(userId, users, { after: after.confirmed, before: before.confirmed }),
    ...lostDestinations(
      after.alert_destinations.filter(({ owner_id: owner }) => owner === userId),
      before.alert_destinations,
    ),
  ]
}

type Codes = { hash: string; usedBy: string | null }[]

/** Entries name the factor, and a passkey also by its name, except for a reset by an administrator. */
const tellsFactor = (factor: string, name?: string) => (details: Readonly<Record<string, unknown>>) =>
  details['factor'] === undefined ||
  (details['factor'] === factor && (name === undefined || details['name'] === undefined || details['name'] === name))

function lostPasskeys({ after, before }: Both<Tables['passkeys']>, codes: Codes): LostWay[] {
  const has = (rows: Tables['passkeys'], id: string) => rows.some(({ credential_id: other }) => other === id)
  const removed = after.filter(({ credential_id: id }) => !has(before, id))
  const added = before.filter(({ credential_id: id }) => !has(after, id))
  return [
    ...removed.map(({ name, credential_id: credentialId }): LostWay => ({
      action: 'second_factor_removed',
      what: name,
      undone: { repeat: 'remove_passkey', credentialId },
      isRecordedBy: tellsFactor('passkey', name),
    })),
    ...added.map((row): LostWay => ({
      action: 'second_factor_added',
      what: row.name,
      undone: {
        repeat: 'add_passkey',
        codes,
        passkey: {
          name: row.name,
          credentialId: row.credential_id,
          publicKey: row.public_key,
          counter: row.counter,
          isBackupEligible: row.is_backup_eligible,
          isBackedUp: row.is_backed_up,
          transports: z.array(z.string()).parse(JSON.parse(row.transports)),
          rpId: row.rp_id,
          createdAt: row.created_at,
          lastUsedAt: row.last_used_at,
        },
      },
      isRecordedBy: tellsFactor('passkey'),
    })),
  ]
}

// Apps are compared by the time of their setup, because a seed may have been sealed again under another secret.
function lostApps({ after, before }: Both<Tables['totp_factors'][number] | null>, codes: Codes): LostWay[] {
  const from = after?.created_at ?? null
  if (from === (before?.created_at ?? null)) return []
  const to =
    before === null
      ? null
      : {
          seed: before.seed,
          lastStep: before.last_step,
          createdAt: before.created_at,
          lastUsedAt: before.last_used_at,
        }
  return [
    {
      action: from === null ? 'second_factor_added' : 'second_factor_removed',
      what: null,
      undone: { repeat: 'set_totp', from, to, codes },
      isRecordedBy: tellsFactor('totp'),
    },
  ]
}

function lostCodes(after: Tables['recovery_codes'], codes: Codes): LostWay[] {
  const good = new Set(codes.filter(({ usedBy }) => usedBy === null).map(({ hash }) => hash))
  const open = after.filter(({ used_by: usedBy }) => usedBy === null).map(({ code_hash: hash }) => hash)
  const restoredAccess = open.filter((hash) => !good.has(hash))
  if (restoredAccess.length === 0) return []
  return [
    {
      action: 'recovery_codes_created',
      what: String(restoredAccess.length),
      undone: { repeat: 'set_codes', codes, restoredAccess },
      // A sign-in entry means that a code was used; an entry without a factor, that all were replaced or removed.
      isRecordedBy: ({ factor }) => factor === undefined || factor === 'recovery',
    },
  ]
}

function lostLinks(after: readonly IdentityRow[], before: readonly IdentityRow[]): LostWay[] {
  const isKept = (row: IdentityRow) =>
    before.some(({ issuer, subject }) => issuer === row.issuer && subject === row.subject)
  return after
    .filter((row) => !isKept(row))
    .map(({ issuer, subject }): LostWay => ({
      action: 'account_unlinked',
      what: issuer,
      undone: { repeat: 'cut_link', issuer, subject },
      isRecordedBy: ({ issuer: recorded }) => recorded === undefined || recorded === issuer,
    }))
}

/** `before` is undefined if the replaced database does not say. */
function lostRuler({ after, before }: { after: string | null; before: string | null | undefined }): LostWay[] {
  if (after === null || before === undefined || before === after) return []
  return [
    {
      action: 'groups_provider_changed',
      what: after,
      undone: { repeat: 'set_groups_provider', from: after, to: before },
      isRecordedBy: () => true,
    },
  ]
}

// The address of a user of a provider is set again at each sign-in.
function lostEmail({ after, before }: Both<WayColumns>): LostWay[] {
  if (after.authProvider !== 'local' || after.email === null || after.email === before.email) return []
  return [
    {
      action: 'user_updated',
      what: after.email,
      undone: { repeat: 'set_email', from: after.email, to: before.email },
      isRecordedBy: (details) => Object(details['after']).email !== undefined,
    },
  ]
}

/** An intruder may have confirmed an address of their own, whose confirmation ended when the account was taken back. */
function lostConfirmation(
  userId: number,
  users: Both<WayColumns>,
  { after, before }: Both<Tables['confirmed']>,
): LostWay[] {
  const { authProvider, email } = users.after
  const isRestored = authProvider === 'local' && email !== null && after?.get(userId) === email
  // Another address is listed already, and has to be confirmed again.
  if (!isRestored || users.before.email !== email || before === null || before.get(userId) === email) return []
  return [
    {
      action: 'email_confirmation_ended',
      what: email,
      undone: { repeat: 'end_email_confirmation', email },
      isRecordedBy: () => true,
    },
  ]
}

function lostDestinations(after: Tables['alert_destinations'], before: Tables['alert_destinations']): LostWay[] {
  return after.flatMap((row): LostWay[] => {
    const { uid, name, kind, settings } = row
    const other = before.find((one) => one.uid === uid)
    const isSame = other !== undefined && other.settings === settings
    if (isSame && (other.held_at === null || row.held_at !== null)) return []
    const host = hostOf(kind, z.record(z.string(), z.string()).catch({}).parse(JSON.parse(settings)))
    return [
      {
        action: 'alert_destination_updated',
        what: `${name} (${[kind, host].filter((part) => part !== null).join(', ')})`,
        undone: { repeat: 'end_destination', uid, how: other === undefined ? 'delete' : 'hold' },
        isRecordedBy: (details) => details['name'] === undefined || details['name'] === name,
      },
    ]
  })
}
