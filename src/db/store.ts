import { fillPlaceholders, type SQL } from 'drizzle-orm'
import type { BatchItem } from 'drizzle-orm/batch'
import type { BaseSQLiteDatabase } from 'drizzle-orm/sqlite-core'
import type * as schema from './schema.ts'

/** One type for synchronous better-sqlite3 and asynchronous D1: always `await` a query. */
export type Db = BaseSQLiteDatabase<'sync' | 'async', unknown, typeof schema>

/** A query that has been built but not run. */
export type Statement = BatchItem<'sqlite'>

/**
 * The code of the error of a change that was made but may not be on the disk: others may see it, and it must not be
 * acknowledged. SQLite's own, whose commits fail in the same way.
 */
export const NOT_FLUSHED = 'SQLITE_IOERR_FSYNC'

/** The database of the service. */
export interface Store {
  readonly db: Db
  /** Whether packets and measurements are written packed, because each written row costs. */
  readonly packs: boolean
  /**
   * Runs the statements in order as one transaction: all or none. A later statement may refer to an earlier insert by a
   * sub-select on a unique column. Throws the database's error. `lazily`: does not wait for the disk. Nothing is lost
   * if the process ends, but a power cut may lose the last half minute.
   */
  atomic(all: readonly [Statement, ...Statement[]], flush?: 'lazily'): Promise<void>
  /** Runs one change without waiting for the disk, as `atomic` does `lazily`. It must begin when it is called. */
  lazily<T>(change: () => T | Promise<T>): T | Promise<T>
  /**
   * Resolves when what others have changed so far is on the disk: before an answer acknowledges what was only read.
   * Absent if a commit is on the disk before others see it.
   */
  settled?(): Promise<void> | null
  /**
   * Returns the rows of several selects at one moment. Absent if queries need no round trip, because then single
   * queries are just as good. See `readTogether`.
   */
  batch?(all: readonly [Statement, ...Statement[]]): Promise<readonly unknown[]>
  /** The size of the database on disk in bytes; null if unknown. */
  sizeBytes(): Promise<number | null>
  /**
   * How much the database uses, without what is free inside it, and the size that it can reach, both in bytes; null if
   * unknown.
   */
  space(): Promise<{ readonly usedBytes: number; readonly limitBytes: number } | null>
  /**
   * Changes with each commit of this or another process; null if only a query could show it. A commit of another
   * process may go unnoticed until the event loop's next turn.
   */
  version(): number | null
}

const indexing = new WeakSet<Statement>()
const counting = new WeakSet<Statement>()

/** Marks an entry of the audit log, which writes to a text index, perhaps only if the statement before it changed a row. */
export function noteIndexing(statement: Statement, isCounting: boolean): Statement {
  indexing.add(statement)
  if (isCounting) counting.add(statement)
  return statement
}

/** Whether `noteIndexing` marked the statement: it writes an entry of the audit log. */
export function isAuditEntry(statement: Statement): boolean {
  return indexing.has(statement)
}

/**
 * Throws if a statement that reads `changes()` follows one that writes to a text index: SQLite writes the index's
 * pending rows before it runs the later one, and `changes()` then counts those rows.
 */
export function refuseMiscount(all: readonly Statement[]): void {
  const first = all.findIndex((statement) => indexing.has(statement))
  if (first !== -1 && all.slice(first + 1).some((statement) => counting.has(statement))) {
    throw new Error('onlyIfChanged comes after another audit entry: use onlyIf, and record before the change')
  }
}

/** A prepared query, in the form of both drivers. */
type Prepared = {
  run(values?: Record<string, unknown>): unknown
  getQuery(): { readonly sql: string; readonly params: unknown[] }
}

/** Binds values to a prepared query: a statement for `atomic` that need not be built. */
export function bind(prepared: Prepared, values: Record<string, unknown>): Statement {
  const filled = () => {
    const query = prepared.getQuery()
    return { ...query, params: fillPlaceholders(query.params, values) }
  }
  const bound: unknown = Object.create(prepared, { getQuery: { value: filled } })
  return asStatement({ run: () => prepared.run(values), _prepare: () => bound })
}

// The drivers need no more of a statement: better-sqlite3 runs it, `D1Session.batch` prepares it and reads its query.
function asStatement(statement: { run(): unknown; _prepare(): unknown }): Statement {
  const any: unknown = statement
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return any as Statement
}

/** A statement that no builder makes, for `atomic`. */
export function built(db: Db, query: SQL): Statement {
  // D1 binds values only to a statement that its session has prepared (drizzle-orm, `D1Session.batch`).
  const { dialect, session } = Object(db)
  const prepare = () => session.prepareQuery(dialect.sqlToQuery(query), undefined, 'run', false)
  return asStatement({ run: () => db.run(query), _prepare: prepare })
}

/** A prepared select of many rows. */
type Select<T> = Prepared & { all(values?: Record<string, unknown>): T | Promise<T> }

/** A prepared select and its values. */
export type Reading<T> = { readonly select: Select<T>; readonly values: Record<string, unknown> }

/**
 * The rows of prepared selects, all with the same values, in one round trip to the database. No two fields of one
 * select may have the same name.
 */
export async function readTogether<const T extends readonly unknown[]>(
  store: Store,
  values: Record<string, unknown>,
  selects: { readonly [K in keyof T]: Select<T[K]> },
): Promise<T> {
  const [first, ...others] = selects.map((select) => bind(select, values))
  if (store.batch !== undefined && first !== undefined) return rowsOf(selects, await store.batch([first, ...others]))
  const found: unknown[] = []
  for (const select of selects) found.push(await select.all(values))
  return rowsOf(selects, found)
}

/** The rows of a prepared select, for each of several values, in one round trip to the database. */
export async function readEach<T>(
  store: Store,
  select: Select<T>,
  each: readonly Record<string, unknown>[],
): Promise<readonly T[]> {
  const [first, ...others] = each.map((values) => bind(select, values))
  if (store.batch !== undefined && first !== undefined) {
    return rowsOf<T[]>(
      each.map(() => select),
      await store.batch([first, ...others]),
    )
  }
  const found: T[] = []
  for (const values of each) found.push(await select.all(values))
  return found
}

/** Runs statements as `atomic` does, and then a prepared select, in one round trip to the database. */
export async function changeAndRead<T>(
  store: Store,
  changes: readonly [Statement, ...Statement[]],
  select: Select<T>,
  values: Record<string, unknown>,
): Promise<T> {
  if (store.batch === undefined) {
    await store.atomic(changes)
    return select.all(values)
  }
  return (await batchWith(store.batch, changes, { select, values })).rows
}

/** Runs statements and then a select in one batch: the answers of the statements, and the rows. */
export async function batchWith<T>(
  batch: NonNullable<Store['batch']>,
  changes: readonly [Statement, ...Statement[]],
  { select, values }: Reading<T>,
): Promise<{ readonly answers: readonly unknown[]; readonly rows: T }> {
  const all = await batch([...changes, bind(select, values)])
  const [rows] = rowsOf([select], all.slice(-1))
  return { answers: all.slice(0, -1), rows }
}

// Both drivers map the rows of a statement as its select defines, even in a batch.
function rowsOf<const T extends readonly unknown[]>(
  _selects: { readonly [K in keyof T]: Select<T[K]> },
  found: readonly unknown[],
): T {
  const any: unknown = found
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return any as T
}

/** Prepares queries once for each database: building one through the ORM costs ten times as much as running it. */
export function prepareOnce<T>(build: (db: Db) => T): (store: Store) => T {
  const prepared = new WeakMap<Db, T>()
  return ({ db }) => {
    const known = prepared.get(db)
    if (known !== undefined) return known
    const built = build(db)
    prepared.set(db, built)
    return built
  }
}

/**
 * Like `prepareOnce`, for a query with several shapes, such as each choice of filters. Each shape is prepared on first
 * use.
 */
export function prepareShapes<T>(build: (db: Db, shape: string) => T): (store: Store, shape: string) => T {
  const prepared = prepareOnce((db) => ({ db, shapes: new Map<string, T>() }))
  return (store, shape) => {
    const { db, shapes } = prepared(store)
    const known = shapes.get(shape)
    if (known !== undefined) return known
    const built = build(db, shape)
    shapes.set(shape, built)
    return built
  }
}

/** A stored value as the drivers return it: flags are 0 and 1, and a mode such as JSON is not applied. */
export type Stored<T> = T extends boolean ? 0 | 1 : T

/**
 * The rows of a prepared select as arrays, in the order of its fields. Drizzle's mapping would cost more than reading
 * them. `Row` must have the type of each field, as in `Stored`.
 */
export async function rawRows<Row extends readonly unknown[]>(
  select: { values(values?: Record<string, unknown>): unknown },
  values: Record<string, unknown> = {},
): Promise<readonly Row[]> {
  const rows: unknown = await select.values(values)
  // Both drivers answer `values` with an array for each row (drizzle-orm, SQLitePreparedQuery).
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return rows as readonly Row[]
}

/**
 * The result of `load` for a key, cached until the database changes. On a store without a version every call loads.
 * Keeps at most `limit` results.
 */
export function rememberUnchanged<K, T>(
  limit: number,
  load: (store: Store, key: K) => Promise<T>,
): (store: Store, key: K) => T | Promise<T> {
  const kept = new WeakMap<Db, { readonly version: number; readonly answers: Map<K, T> }>()
  return (store, key) => {
    // Read before the rows, so that a cached result may be newer than its version but never older.
    const version = store.version()
    if (version === null) return load(store, key)
    const known = kept.get(store.db)
    const answers = known?.version === version ? known.answers : new Map<K, T>()
    if (answers !== known?.answers) kept.set(store.db, { version, answers })
    const answer = answers.get(key)
    if (answer !== undefined) return answer
    return load(store, key).then((loaded) => {
      if (answers.size < limit) answers.set(key, loaded)
      return loaded
    })
  }
}
