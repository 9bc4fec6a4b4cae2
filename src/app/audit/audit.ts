import { type AuditEntry, type AuditRow, type StoredRow } from './entry.ts'
import { and, desc, eq, gte, inArray, lt, lte, or, sql, type SQL } from 'drizzle-orm'
import { contains } from '../../db/contains.ts'
import { insertSelect } from '../../db/insert-select.ts'
import { auditLog } from '../../db/schema.ts'
import { noteIndexing, prepareShapes, rawRows, type Statement, type Store } from '../../db/store.ts'
import type { Ctx, Viewer } from '../base/context.ts'
import { matching, walkMatches } from '../search/text-index.ts'
import { type Range as Ids, rangeOf } from '../search/walk.ts'
import { withPreviousHashes } from './chain.ts'
import { boundedJson } from './bounded.ts'
import { AUDIT_ACTIONS, type AuditAction } from '../../shared/access/audit-actions.ts'
import { namesOf } from '../../shared/names.ts'

export type Actor = { readonly id: number | SQL | null; readonly username: string | null }
/** The service itself, or somebody on its command line. */
export const SYSTEM: Actor = { id: null, username: 'system' }

/** What `audit` needs from a request. Outside of one, `ip` and `requestId` are null. */
export type AuditContext = Pick<Ctx, 'store' | 'ip'> & {
  now(): number
  readonly requestId: string | null
  readonly viewer: Viewer | null
}

/** A value that is only known within the same atomic step, such as the id of an inserted row. */
type Details = Record<string, unknown>

/**
 * The statement that records an action. Run it in the same atomic step as the change. `onlyIfChanged`: records nothing
 * if the statement just before it changed no row, and must be the first entry of its step; `onlyIf`: records nothing if this condition is false. Details never
 * contain a password, hash, token, secret or cookie. They are cut at a limit unless they are marked `whole`, which is
 * for lists by the service itself.
 */
export function audit(
  ctx: Omit<AuditContext, 'now'> & { now(): number | SQL },
  action: AuditAction,
  details: Details,
  options: { actor?: Actor; onlyIfChanged?: boolean; onlyIf?: SQL | undefined; whole?: true } = {},
): Statement {
  const actor = options.actor ?? (ctx.viewer ? ctx.viewer.user : SYSTEM)
  const values = {
    timestamp: ctx.now(),
    userId: actor.id,
    username: actor.username,
    action,
    resource: AUDIT_ACTIONS[action],
    details: detailsJson(details, options.whole ? JSON.stringify : boundedJson),
    ip: ctx.ip,
    requestId: ctx.requestId,
  }
  const changed = options.onlyIfChanged ? sql`changes() > 0` : undefined
  const condition = and(changed, options.onlyIf) ?? sql`true`
  const entry = insertSelect(ctx.store.db, auditLog, values, sql`where ${condition}`)
  return noteIndexing(entry, changed !== undefined)
}

// Details are JSON; SQLite's json_set inserts the values of sub-selects.
function detailsJson(details: Details, write: (plain: Details) => string): SQL {
  const plain = Object.entries(details).filter(([, value]) => !(value instanceof Object && 'queryChunks' in value))
  const text = write(Object.fromEntries(plain))
  return Object.entries(details)
    .filter((entry): entry is [string, SQL] => entry[1] instanceof Object && 'queryChunks' in entry[1])
    .reduce((json, [key, value]) => sql`json_set(${json}, ${`$.${key}`}, ${value})`, sql`${text}`)
}

export type AuditFilters = {
  userId?: number | undefined
  action?: string | undefined
  resource?: string | undefined
  /** Inclusive, ms. */
  from?: number | undefined
  /** Inclusive, ms. */
  to?: number | undefined
  q?: string | undefined
}

/**
 * Up to this number, entries of a time range are read and then sorted. More are found faster by going back from the
 * newest.
 */
const FEW = 2000

/**
 * Newest first: the entries with an id below `cursor`, and the next cursor, null at the end. Other requests run between
 * the slices of a search.
 */
export async function listAudit(
  store: Store,
  filters: AuditFilters,
  page: { limit: number; cursor?: number | undefined },
): Promise<{ entries: AuditEntry[]; nextCursor: number | null }> {
  const { rows, nextCursor } = await listRows(store, filters, page)
  return { entries: rows.map((row) => ({ ...row, details: parseDetails(row.details) })), nextCursor }
}

/** As `listAudit`, with the details as they are stored. */
export async function listRows(
  store: Store,
  filters: AuditFilters,
  { limit, cursor }: { limit: number; cursor?: number | undefined },
): Promise<{ rows: AuditRow[]; nextCursor: number | null }> {
  const range = { before: cursor, limit: limit + 1 }
  const found = await (isIndexed(filters) ? readPage : searchRows)(store, filters, range)
  const rows = await withPreviousHashes(store, found.slice(0, limit), found[limit])
  return { rows, nextCursor: found.length > limit ? (rows.at(-1)?.id ?? null) : null }
}

// No index finds entries of two actions in the order of their IDs.
function isIndexed({ action, resource, from, to, q }: AuditFilters): boolean {
  return action !== 'login_failed' && [resource, from, to, q].every((filter) => filter === undefined)
}

type Range = { readonly before: number | undefined; readonly from?: number; readonly limit: number }

const pageColumns = {
  id: auditLog.id,
  timestamp: auditLog.timestamp,
  userId: auditLog.userId,
  username: auditLog.username,
  action: auditLog.action,
  resource: auditLog.resource,
  details: auditLog.details,
  ip: auditLog.ip,
  requestId: auditLog.requestId,
  hash: auditLog.hash,
}
type RawRow = readonly [
  id: number,
  timestamp: number,
  userId: number | null,
  username: string | null,
  action: string,
  resource: string,
  details: string,
  ip: string | null,
  requestId: string | null,
  hash: string | null,
]

const PAGE_CONDITIONS = {
  before: lt(auditLog.id, sql.placeholder('before')),
  userId: eq(auditLog.userId, sql.placeholder('userId')),
  action: eq(auditLog.action, sql.placeholder('action')),
} as const
const PAGE_FILTERS = namesOf(PAGE_CONDITIONS)

/** A query for each set of filters. */
const pages = prepareShapes((db, shape) => {
  const asked = shape.split(' ')
  const conditions = PAGE_FILTERS.filter((name) => asked.includes(name)).map((name) => PAGE_CONDITIONS[name])
  return db
    .select(pageColumns)
    .from(auditLog)
    .where(and(...conditions))
    .orderBy(desc(auditLog.id))
    .limit(sql.placeholder('limit'))
    .prepare()
})

/** A page in the order of an index. */
async function readPage(store: Store, filters: AuditFilters, { before, limit }: Range): Promise<StoredRow[]> {
  const values = { before, userId: filters.userId, action: filters.action }
  const shape = PAGE_FILTERS.filter((name) => values[name] !== undefined).join(' ')
  return (await rawRows<RawRow>(pages(store, shape), { ...values, limit })).map(storedRow)
}

function storedRow(row: RawRow): StoredRow {
  const [id, timestamp, userId, username, action, resource, details, ip, requestId, hash] = row
  return { id, timestamp, userId, username, action, resource, details, ip, requestId, hash }
}

async function readRows(
  store: Store,
  filters: AuditFilters,
  { before, from, limit }: Range,
  table = sql`${auditLog}`,
): Promise<StoredRow[]> {
  const range = [
    before === undefined ? undefined : lt(auditLog.id, before),
    from === undefined ? undefined : gte(auditLog.id, from),
  ]
  // Rows as the driver returns them: mapping each would cost more than reading it in an export of a long log.
  const where = and(sql`true`, ...conditions(filters), ...range)
  return store.db.all<StoredRow>(
    sql`select ${COLUMNS} from ${table} where ${where} order by ${auditLog.id} desc limit ${limit}`,
  )
}

const COLUMNS = sql.raw(
  'id, timestamp, user_id as userId, username, action, resource, details, ip, request_id as requestId, hash',
)

async function searchRows(store: Store, filters: AuditFilters, { before, limit }: Range): Promise<StoredRow[]> {
  const whole = await rangeOf(store, 'audit_log', before)
  if (await isFewAt(store, filters)) {
    return readRows(store, filters, { ...whole, limit }, sql.raw('audit_log indexed by audit_log_timestamp'))
  }
  const match = filters.q === undefined ? null : matching(filters.q)
  const keep = (ids: string, count: number) => findRows(store, filters, ids, count)
  const read = (range: Ids, count: number) => readRows(store, filters, { ...range, limit: count })
  return (await walkMatches('audit_log', match, { store, ...whole, limit, keep, read })).found
}

/** Selects from the entries that the text index has found: a JSON array of ids. */
async function findRows({ db }: Store, filters: AuditFilters, ids: string, limit: number): Promise<StoredRow[]> {
  const where = and(sql`id in (select value from json_each(${ids}))`, ...conditions(filters))
  return db.all<StoredRow>(sql`select ${COLUMNS} from audit_log where ${where} order by id desc limit ${limit}`)
}

async function isFewAt({ db }: Store, { from, to }: AuditFilters): Promise<boolean> {
  if (from === undefined && to === undefined) return false
  const range = sql`timestamp >= ${from ?? 0} and timestamp <= ${to ?? Number.MAX_SAFE_INTEGER}`
  const first = sql`select 1 from audit_log indexed by audit_log_timestamp where ${range} limit ${FEW + 1}`
  const [row] = await db.all<{ n: number }>(sql`select count(*) as n from (${first})`)
  return row !== undefined && row.n <= FEW
}

function parseDetails(text: string): Record<string, unknown> {
  const details: unknown = JSON.parse(text)
  return isRecord(details) ? details : { details }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A search for failed sign-ins finds those of every sign-in method. */
function isAction(action: string): SQL {
  const { action: column } = auditLog
  return action === 'login_failed' ? inArray(column, ['login_failed', 'oidc_login_failed']) : eq(column, action)
}

function conditions(filters: AuditFilters): (SQL | undefined)[] {
  const { userId, action, resource, from, to, q } = filters
  return [
    userId === undefined ? undefined : eq(auditLog.userId, userId),
    action === undefined ? undefined : isAction(action),
    resource === undefined ? undefined : eq(auditLog.resource, resource),
    from === undefined ? undefined : gte(auditLog.timestamp, from),
    to === undefined ? undefined : lte(auditLog.timestamp, to),
    q === undefined
      ? undefined
      : or(...[auditLog.username, auditLog.action, auditLog.details, auditLog.ip].map((column) => contains(column, q))),
  ]
}
