import Database from 'better-sqlite3'
import * as z from 'zod'
import { parsePublicAccess, PUBLIC_ACCESS_KEY } from '../../../app/accounts/access/public-access.ts'
import { scopeOf } from '../../../app/accounts/users/scope.ts'
import { unpackPermissions } from '../../../app/accounts/users/permissions.ts'
import { type PublicAccess, showsMore } from '../../../shared/access/public-access.ts'
import { isWiderScope, type Scope } from '../../../shared/access/scope.ts'
import { isStillUndone } from '../../../app/system/restore/undone.ts'
import { sqliteStore } from '../../database.ts'
import { type LostWay, lostWays, readWays } from './restored-credentials.ts'
import { RESTORED_ACCESS_KEYS } from '../../../app/system/backup/settings.ts'
import {
  parseRestoredAccess,
  type RestorableAction,
  type StoredRestoredAccess,
} from '../../../app/system/restore/restored-access.ts'
import { ALL_PERMISSIONS, type Permissions, permissionsFrom, RESOURCE_NAMES } from '../../../shared/access/resources.ts'

/** Other audit entries that also end tokens or change permissions. */
const RECORDED_BY: Readonly<Record<RestorableAction, readonly string[]>> = {
  user_deleted: ['user_deleted', 'user_updated'],
  admin_status_changed: ['admin_status_changed'],
  permissions_updated: ['permissions_updated', 'admin_status_changed'],
  password_reset: ['password_reset'],
  password_changed: ['password_changed'],
  token_revoked: ['token_revoked', 'user_deleted', 'user_updated', 'password_reset', 'password_changed'],
  tokens_held: ['tokens_held'],
  second_factor_removed: ['second_factor_removed', 'second_factor_added', 'second_factor_reset'],
  second_factor_added: ['second_factor_added'],
  recovery_codes_created: ['recovery_codes_created', 'login_success', 'second_factor_reset', 'second_factor_removed'],
  account_unlinked: ['account_unlinked'],
  groups_provider_changed: ['groups_provider_changed'],
  user_updated: ['user_updated'],
  email_confirmation_ended: ['password_reset', 'second_factor_reset', 'user_deleted', 'user_updated'],
  alert_destination_updated: ['alert_destination_updated', 'alert_destinations_held'],
  public_access_updated: ['public_access_updated'],
  node_updated: ['node_updated'],
  unknown: [],
}

const accountSchema = z.object({
  id: z.int(),
  username: z.string(),
  createdAt: z.int(),
  passwordHash: z.string().nullable(),
  mustChange: z.int(),
  isAdmin: z.int(),
  isActive: z.int(),
  packed: z.string().nullable(),
  channels: z.string().nullable(),
  directRead: z.int(),
  directWrite: z.int(),
  email: z.string().nullable(),
  authProvider: z.string(),
})
type Account = z.infer<typeof accountSchema>

const tokenSchema = z.object({
  id: z.int(),
  userId: z.int(),
  name: z.string(),
  prefix: z.string(),
  hash: z.string(),
  heldAt: z.int().nullable(),
})
type Token = z.infer<typeof tokenSchema>

const entrySchema = z.object({
  timestamp: z.int(),
  userId: z.int().nullable(),
  username: z.string().nullable(),
  action: z.string(),
  details: z.string(),
})

type State = {
  readonly accounts: ReadonlyMap<number, Account>
  readonly tokens: readonly Token[]
  readonly ways: ReturnType<typeof readWays>
  readonly publicAccess: PublicAccess
  /** Numbers of the hidden nodes, deleted ones too. */
  readonly hidden: readonly number[]
}
type Entry = {
  at: number
  by: string | null
  action: string
  subject: number | null
  tokenId: number | null
  /** Whether the change may have ended the subject's tokens. */
  endsTokens: boolean
  /** The node that was hidden. */
  hiddenNode: number | null
  details: Readonly<Record<string, unknown>>
}

export type RestoredAccessFacts = {
  /** The new database, with the entries of the replaced one's audit log. */
  readonly built: Database.Database
  readonly replacedFile: string
  /** Id of the last entry that is in the backup. */
  readonly lastOfBackup: number
  readonly backup: string
  readonly now: number
}

/**
 * Access that was revoked after the backup, according to the audit log and the replaced database, and undecided access
 * that an earlier restore brought back. Null if the replaced database knows none of the users.
 */
export async function findRestoredAccess(facts: RestoredAccessFacts): Promise<StoredRestoredAccess[] | null> {
  const { built, replacedFile, lastOfBackup, backup, now } = facts
  const replaced = new Database(replacedFile, { readonly: true })
  try {
    if (!hasUsers(replaced)) return null
    const [after, before] = [readState(built, now), readState(replaced, now)]
    const pairs = [...after.accounts.values()].flatMap((account) => {
      const other = before.accounts.get(account.id)
      // In a database with another history the same ids mean other users.
      return other?.createdAt === account.createdAt ? [{ account, other }] : []
    })
    if (pairs.length === 0) return null
    const entries = readEntries(built, lastOfBackup)
    const kept = new Map(before.tokens.map(({ hash, heldAt }) => [hash, heldAt]))
    const found = pairs.flatMap(({ account, other }) => {
      const tokens = after.tokens.filter(({ userId }) => userId === account.id)
      const ended = tokens.filter(({ hash }) => !kept.has(hash))
      const released = tokens.filter(({ hash, heldAt }) => heldAt === null && typeof kept.get(hash) === 'number')
      const { id: userId, username } = account
      const ways = lostWays(userId, { after: account, before: other }, { after: after.ways, before: before.ways }).map(
        ({ action, what, undone, isRecordedBy }) => ({
          ...NOTHING,
          action,
          userId,
          username,
          what,
          undone,
          isRecordedBy,
        }),
      )
      return [
        ...lostByAccount(account, other),
        ...ended.map((token) => lostToken('token_revoked', account, token)),
        ...released.map((token) => lostToken('tokens_held', account, token)),
        ...ways,
      ]
    })
    const recorded = [...found, ...lostByAll(after, before)]
      .flatMap((one) => tell(one, entries))
      .map((one) => ({ ...one, backup }))
    const isKnown = ({ userId }: StoredRestoredAccess) =>
      userId === null || pairs.some(({ account }) => account.id === userId)
    const undecided: StoredRestoredAccess[] = []
    for (const one of readUndecided(replaced).filter(isKnown)) {
      const { userId, undone } = one
      const isThere = userId === null || undone === null || (await isStillUndone(sqliteStore(built), userId, undone))
      if (isThere) undecided.push(one)
    }
    return withUndecided(recorded, undecided, after, backup)
  } finally {
    replaced.close()
  }
}

// False for a database from before there were users, or one that was never opened.
function hasUsers(database: Database.Database): boolean {
  const names = database.prepare("select count(*) from sqlite_schema where name in ('users', 'settings', 'api_tokens')")
  return names.pluck().get() === 3
}

function readState(database: Database.Database, now: number): State {
  // The replaced database may be of an earlier version, in which everybody sees everything.
  const hasScopes = hasColumn(database, 'users', 'direct_read')
  const scope = hasScopes
    ? 'channels, direct_read as directRead, direct_write as directWrite'
    : 'null as channels, 1 as directRead, 1 as directWrite'
  const accounts = database
    .prepare(
      `select ${scope}, id, username, created_at as createdAt, password_hash as passwordHash, must_change_password as mustChange,
        is_admin as isAdmin, is_active as isActive, email, auth_provider as authProvider,
        (select json_group_object(resource, can_read + 2 * can_write)
          from user_permissions where user_id = users.id) as packed from users order by id`,
    )
    .all()
  const tokens = database
    .prepare(
      `select id, user_id as userId, name, prefix, token_hash as hash,
        ${hasColumn(database, 'api_tokens', 'held_at') ? 'held_at' : 'null'} as heldAt from api_tokens
        where expires_at is null or expires_at > ? order by id`,
    )
    .all(now)
  return {
    accounts: new Map(
      z
        .array(accountSchema)
        .parse(accounts)
        .map((account) => [account.id, account]),
    ),
    tokens: z.array(tokenSchema).parse(tokens),
    ways: readWays(database),
    publicAccess: parsePublicAccess(readSetting(database, PUBLIC_ACCESS_KEY)),
    hidden: ['nodes', 'deleted_nodes'].flatMap((table) =>
      hasColumn(database, table, 'is_hidden')
        ? database.prepare<[], number>(`select node_num from ${table} where is_hidden`).pluck().all()
        : [],
    ),
  }
}

function hasColumn(database: Database.Database, table: string, column: string): boolean {
  const found = database.prepare('select count(*) from pragma_table_info(?) where name = ?')
  return found.pluck().get(table, column) === 1
}

function readSetting(database: Database.Database, key: string): string | undefined {
  return database.prepare<[string], string>('select value from settings where key = ?').pluck().get(key)
}

function readEntries(built: Database.Database, lastOfBackup: number): Entry[] {
  const rows = built
    .prepare(
      `select timestamp, user_id as userId, username, action, details from audit_log
        where id > ? and action in (${[...new Set(Object.values(RECORDED_BY).flat())].map((action) => `'${action}'`).join(', ')})
        order by id desc`,
    )
    .all(lastOfBackup)
  return z
    .array(entrySchema)
    .parse(rows)
    .map(({ timestamp, userId, username, action, details }) => {
      const parsed: Record<string, unknown> = Object(JSON.parse(details))
      const recorded = subjectSchema.parse(parsed)
      const endsTokens = action !== 'password_changed' || (recorded.tokensRevoked ?? 0) > 0
      const [subject, tokenId] = [recorded.userId ?? userId, recorded.tokenId ?? null]
      const hiddenNode = recorded.after?.isHidden === true ? (recorded.nodeNum ?? null) : null
      return { at: timestamp, by: username, action, subject, tokenId, endsTokens, hiddenNode, details: parsed }
    })
}
const subjectSchema = z.object({
  userId: z.int().nullish(),
  tokenId: z.int().nullish(),
  tokensRevoked: z.int().nullish(),
  nodeNum: z.int().nullish(),
  after: z.looseObject({ isHidden: z.unknown() }).partial().nullish().catch(null),
})

type Lost = Omit<StoredRestoredAccess, 'backup' | 'at' | 'by'> & { readonly isRecordedBy?: LostWay['isRecordedBy'] }

/** All fields of an item, unset, because most items use only a few. */
const NOTHING = {
  userId: null,
  username: null,
  what: null,
  undone: null,
  token: null,
  permissions: null,
  scope: null,
  publicAccess: null,
  hiddenNode: null,
  password: null,
} as const

function lostByAccount(account: Account, other: Account): Lost[] {
  const lost = (action: RestorableAction, more: Partial<Lost> = {}): Lost => {
    const { id, username } = account
    return { ...NOTHING, action, userId: id, username, ...more }
  }
  const all: Lost[] = []
  const [has, had] = [unpackPermissions(account.packed), unpackPermissions(other.packed)]
  const scope = scopeOfAccount(other)
  if (account.isActive && !other.isActive) all.push(lost('user_deleted'))
  if (account.isAdmin && !other.isAdmin) all.push(lost('admin_status_changed', { permissions: had, scope }))
  if (!account.isAdmin && !other.isAdmin) {
    const permissions = narrowedIn(has, had)
    const narrowed = isWiderScope(scopeOfAccount(account), scope) ? scope : null
    if (permissions !== null || narrowed !== null) {
      all.push(lost('permissions_updated', { permissions, scope: narrowed }))
    }
  }
  if (other.passwordHash !== null && account.passwordHash !== null && other.passwordHash !== account.passwordHash) {
    const password = { hash: other.passwordHash, isTemporary: other.mustChange === 1 }
    all.push(lost('password_reset', { password }), lost('password_changed', { password }))
  }
  return all
}

function scopeOfAccount({ isAdmin, channels, directRead, directWrite }: Account): Scope {
  const parsed = channels === null ? null : channelsSchema.parse(JSON.parse(channels))
  return scopeOf({
    isAdmin: isAdmin === 1,
    channels: parsed,
    directRead: directRead === 1,
    directWrite: directWrite === 1,
  })
}
const channelsSchema = z.object({ read: z.array(z.int()), write: z.array(z.int()) })

/** Changes that are not about one user. */
function lostByAll(after: State, before: State): Lost[] {
  const { publicAccess } = before
  const hidden = before.hidden.filter((nodeNum) => !after.hidden.includes(nodeNum))
  return [
    ...(showsMore(after.publicAccess, publicAccess)
      ? [{ ...NOTHING, action: 'public_access_updated' as const, publicAccess }]
      : []),
    ...hidden.map((hiddenNode) => ({ ...NOTHING, action: 'node_updated' as const, hiddenNode })),
  ]
}

/** The permissions of `had` for resources on which `has` permits more. */
function narrowedIn(has: Permissions, had: Permissions): Partial<Permissions> | null {
  const names = RESOURCE_NAMES.filter(
    (name) => (has[name].read && !had[name].read) || (has[name].write && !had[name].write),
  )
  return names.length === 0 ? null : Object.fromEntries(names.map((name) => [name, had[name]]))
}

function lostToken(
  action: 'token_revoked' | 'tokens_held',
  { id: userId, username }: Account,
  { id, name, prefix }: Token,
): Lost {
  return { ...NOTHING, action, userId, username, token: { id, name, prefix } }
}

/**
 * Adds when and by whom each change was made, if the log has it. A password has one latest change. A node may have been
 * hidden under another number, and ways to sign in are compared row by row.
 */
function tell(
  { isRecordedBy = () => true, ...lost }: Lost,
  entries: readonly Entry[],
): Omit<StoredRestoredAccess, 'backup'>[] {
  const isAbout = ({ subject, tokenId, hiddenNode }: Entry) =>
    lost.userId === null
      ? hiddenNode === lost.hiddenNode
      : subject === lost.userId && (lost.token === null || tokenId === null || tokenId === lost.token.id)
  const all = entries.filter(
    (one) => RECORDED_BY[lost.action].includes(one.action) && isAbout(one) && isRecordedBy(one.details),
  )
  const entry =
    lost.token === null || lost.action === 'tokens_held'
      ? all[0]
      : (all.find(({ tokenId }) => tokenId !== null) ?? all.findLast(({ endsTokens }) => endsTokens))
  if (entry === undefined)
    return lost.hiddenNode === null && lost.undone === null ? [] : [{ ...lost, at: null, by: null }]
  if (lost.password !== null) {
    const latest = entries.find(({ action, subject }) => action.startsWith('password_') && subject === lost.userId)
    if (latest !== entry) return []
  }
  return [{ ...lost, at: entry.at, by: entry.by }]
}

/** The undecided list in a database. */
export function readUndecided(replaced: Database.Database): StoredRestoredAccess[] {
  const values = replaced
    .prepare('select value from settings where key like ? order by key')
    .pluck()
    .all(RESTORED_ACCESS_KEYS)
  return z.array(z.string()).parse(values).map(parseRestoredAccess)
}

/** Adds access that an earlier restore brought back, if this one brings it back too. */
function withUndecided(
  recorded: readonly StoredRestoredAccess[],
  undecided: readonly StoredRestoredAccess[],
  { accounts, tokens, publicAccess: shown, hidden }: State,
  backup: string,
): StoredRestoredAccess[] {
  const key = ({ action, userId, token, hiddenNode, what }: StoredRestoredAccess) =>
    `${action} ${userId} ${token?.id} ${hiddenNode} ${what}`
  const known = new Set(recorded.map(key))
  const isStillSo = (one: StoredRestoredAccess) => {
    const { action, userId, token, permissions, scope, password, publicAccess, hiddenNode, undone } = one
    if (publicAccess !== null) return showsMore(shown, publicAccess)
    if (hiddenNode !== null) return !hidden.includes(hiddenNode)
    if (userId === null) return action === 'unknown'
    const account = accounts.get(userId)
    if (account === undefined) return false
    if (undone !== null) return true
    if (action === 'user_deleted') return account.isActive === 1
    if (action === 'admin_status_changed') return account.isAdmin === 1
    if (token !== null) {
      const restored = tokens.find(({ id, prefix }) => id === token.id && prefix === token.prefix)
      return restored !== undefined && (action !== 'tokens_held' || restored.heldAt === null)
    }
    if (action === 'permissions_updated') {
      const had = permissionsFrom((name) => permissions?.[name] ?? ALL_PERMISSIONS[name])
      const isWider = scope !== null && isWiderScope(scopeOfAccount(account), scope)
      return account.isAdmin === 0 && (isWider || narrowedIn(unpackPermissions(account.packed), had) !== null)
    }
    return password !== null && password.hash !== account.passwordHash
  }
  const more = undecided.filter((one) => !known.has(key(one)) && isStillSo(one)).map((one) => ({ ...one, backup }))
  return [...recorded, ...more].toSorted((a, b) => (a.userId ?? 0) - (b.userId ?? 0))
}
