import { type AuditEntry, type AuditRow, type StoredRow } from './entry.ts'
import { and, eq, gte, lt, lte, or, sql, type SQL } from 'drizzle-orm'
import { contains } from '../../db/contains.ts'
import { insertSelect } from '../../db/insert-select.ts'
import { auditLog } from '../../db/schema.ts'
import { filtersOf } from '../../db/filters.ts'
import { noteIndexing, prepareShapes, rawRows, type Statement, type Store } from '../../db/store.ts'
import type { Ctx, Viewer } from '../base/context.ts'
import { matching, walkMatches } from '../search/text-index.ts'
import { createBudget, type Range, rangeOf } from '../search/walk.ts'
import { withPreviousHashes } from './chain.ts'
import { boundedJson } from './bounded.ts'
import { AUDIT_ACTIONS, type AuditAction } from '../../shared/access/audit-actions.ts'

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

/** `cursor`: entries with a lower id. `signal`, of the request: the search ends when its reader has gone. */
type Page = {
  readonly limit: number
  readonly cursor?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Up to this number, entries of a time range are read and then sorted. More are found faster by going back from the
 * newest.
 */
const FEW = 2000

/**
 * Newest first, and the next cursor, null at the end. Other requests run between the slices of a search, and a page ends
 * after a bounded amount of work, so it may have fewer entries than `limit` although more follow.
 */
export async function listAudit(
  store: Store,
  filters: AuditFilters,
  page: Page,
): Promise<{ entries: AuditEntry[]; nextCursor: number | null }> {
  const { rows, nextCursor } = await listRows(store, filters, page)
  return { entries: rows.map((row) => ({ ...row, details: parseDetails(row.details) })), nextCursor }
}

/** As `listAudit`, with the details as they are stored. */
export async function listRows(
  store: Store,
  filters: AuditFilters,
  { limit, ...page }: Page,
): Promise<{ rows: AuditRow[]; nextCursor: number | null }> {
  // One more than requested, which shows whether there is a next page.
  const { found, next } = await search(store, filters, { ...page, limit: limit + 1 })
  const rows = await withPreviousHashes(store, found.slice(0, limit), found[limit])
  return { rows, nextCursor: found.length > limit ? (rows.at(-1)?.id ?? null) : next }
}

// No index finds entries of two actions in the order of their IDs.
function isIndexed({ action, resource, from, to, q }: AuditFilters): boolean {
  return action !== 'login_failed' && [resource, from, to, q].every((filter) => filter === undefined)
}

const COLUMNS = ['id', 'timestamp', 'user_id', 'username', 'action', 'resource', 'details', 'ip', 'request_id', 'hash']
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

const value = sql.placeholder

const conditions = filtersOf({
  ids: sql`id in (select value from json_each(${value('ids')}))`,
  before: lt(auditLog.id, value('before')),
  lowest: gte(auditLog.id, value('lowest')),
  userId: eq(auditLog.userId, value('userId')),
  action: eq(auditLog.action, value('action')),
  // A search for failed sign-ins finds those of every sign-in method.
  failed: sql`action in ('login_failed', 'oidc_login_failed')`,
  resource: eq(auditLog.resource, value('resource')),
  from: gte(auditLog.timestamp, value('from')),
  to: lte(auditLog.timestamp, value('to')),
  q: or(
    ...[auditLog.username, auditLog.action, auditLog.details, auditLog.ip].map((text) => contains(text, value('q'))),
  ),
})

/** An index that a query must use, instead of the one that SQLite chooses. */
type Index = '' | 'indexed by audit_log_timestamp'

/** A query for each index and set of conditions. */
const selects = prepareShapes((db, shape) => {
  const [index = '', names = ''] = shape.split(':')
  return db
    .select(Object.fromEntries(COLUMNS.map((column) => [column, sql.raw(column)])))
    .from(sql.raw(`audit_log ${index}`))
    .where(conditions.whereOf(names))
    .orderBy(sql.raw('id desc'))
    .limit(value('limit'))
    .prepare()
})

type Where = {
  readonly limit: number
  readonly before?: number | undefined
  readonly lowest?: number
  /** A JSON array. */
  readonly ids?: string
}

async function readRows(store: Store, filters: AuditFilters, where: Where, index: Index = ''): Promise<StoredRow[]> {
  const isFailed = filters.action === 'login_failed'
  const values: Partial<Record<string, unknown>> = { ...filters, ...where }
  const asked: typeof values = { ...values, ...(isFailed && { action: undefined, failed: true }) }
  const shape = conditions.shapeOf(asked)
  return (await rawRows<RawRow>(selects(store, `${index}:${shape}`), values)).map(storedRow)
}

function storedRow(row: RawRow): StoredRow {
  const [id, timestamp, userId, username, action, resource, details, ip, requestId, hash] = row
  return { id, timestamp, userId, username, action, resource, details, ip, requestId, hash }
}

/** `next`: the id below which to continue if there are fewer than `limit`; null: there are no others. */
type Found = { readonly found: readonly StoredRow[]; readonly next: number | null }

async function search(store: Store, filters: AuditFilters, { limit, cursor, signal }: Page): Promise<Found> {
  if (isIndexed(filters)) return { found: await readRows(store, filters, { before: cursor, limit }), next: null }
  const { from, before } = await rangeOf(store, 'audit_log', cursor)
  if (await isFewAt(store, filters)) {
    const found = await readRows(store, filters, { lowest: from, before, limit }, 'indexed by audit_log_timestamp')
    return { found, next: null }
  }
  const match = filters.q === undefined ? null : matching(filters.q)
  const keep = (ids: string, count: number) => readRows(store, filters, { ids, limit: count })
  const read = (range: Range, count: number) =>
    readRows(store, filters, { lowest: range.from, before: range.before, limit: count })
  const walk = { store, from, before, limit, budget: createBudget(signal), keep, read }
  const { found, seenFrom } = await walkMatches('audit_log', match, walk)
  return { found, next: seenFrom > from ? seenFrom : null }
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
