import type { Backup, BackupKind } from '../../app/system/backup/backup.ts'
import { type Manifest, renderManifest, signingKey } from '../../app/system/backup/format/manifest.ts'
import { tableHead } from '../../app/system/backup/format/tables.ts'
import type { Ports } from '../../app/base/context.ts'
import { type Bucket, completeBackup, partKey, putWhole } from './bucket.ts'
import { type Cursor, forgetMoment, holdMoment, readSequences, readSlice, stopNoting } from './moment.ts'
import { createPart, type Part } from './part.ts'
import { ResumableHash } from './sha256.ts'
import { type EdgeTable, readTables } from './tables.ts'
import { type Claim, endWork, ownWork, saveWork, startWork, type State } from './work.ts'
import type { Statement } from '../../db/store.ts'

/** Bytes of rows that one query should bring. */
const SLICE_BYTES = 512 * 1024
const MAX_ROWS = 2000
/** Rows of the first query of a table, whose rows may be of a megabyte each. */
const FIRST_ROWS = 16
/** Bytes of tables in one object. A download reads each object, and may read some hundreds. */
const PART_BYTES = 16 * 1024 * 1024

const TABLE_END = ']}\n'

const utf8 = new TextEncoder()

export type MakingNeeds = Pick<Ports, 'store' | 'now' | 'config'> & {
  readonly bucket: Bucket
  /** Tag of the last migration of the database. */
  schema(): Promise<string>
}

type Asked = Pick<State, 'name' | 'createdAt' | 'kind' | 'appVersion' | 'by'> & { readonly kind: BackupKind }

/** Makes this moment the one of a new backup, and claims it. Null: one is being made already. */
export async function beginBackup(needs: MakingNeeds, asked: Asked): Promise<Claim | null> {
  const { store, now } = needs
  const tables = await readTables(store.db)
  const state = {
    ...asked,
    schema: await needs.schema(),
    failures: 0,
    open: null,
    tables: [],
    objects: [],
  }
  const at = now()
  const [first, ...others] = startWork(store.db, state, at)
  if (first === undefined) return null
  try {
    await store.atomic([first, ...others, ...holdMoment(store.db, tables)])
  } catch (error) {
    if (isBegun(error)) return null
    throw error
  }
  return { state, revision: at }
}

const isBegun = (error: unknown): boolean =>
  error instanceof Error && (/backup_work.* already exists/.test(error.message) || isBegun(error.cause))

/**
 * Goes on with a backup for at most `slices` queries. Null: there is more to do. What was made since the last part is made
 * again by the next invocation if this one ends without a word, and is the same then.
 */
export async function goOn(needs: MakingNeeds, claim: Claim, slices: number): Promise<Backup | null> {
  const { store } = needs
  if ((await needs.schema()) !== claim.state.schema) throw new Error('the database was upgraded meanwhile')
  const tables = await readTables(store.db)
  for (let left = slices; claim.state.tables.length < tables.length;) {
    if (left <= 0) {
      await saveWork(needs, claim, { isLast: true })
      return null
    }
    const made = await makePart(needs, claim, tables, left)
    left -= made.queries
    claim.state = { ...made.state, failures: 0 }
    const read = new Set(made.finished)
    await saveWork(needs, claim, {
      more: stopNoting(
        store.db,
        tables.filter(({ name }) => read.has(name)),
      ),
    })
  }
  return completeBackup(needs.bucket, claim.state.name, claim.state, await manifestOf(needs, claim.state))
}

/** The statements with which a backup has ended, well or not. They fail if another invocation has taken over. */
export async function endings({ store }: Pick<Ports, 'store'>, claim: Claim): Promise<Statement[]> {
  const { db } = store
  return [ownWork(db, claim), ...(await forgetMoment(db)), endWork(db)]
}

type Made = { readonly state: State; readonly queries: number; readonly finished: readonly string[] }

/** Reads rows until they fill an object, and stores it. */
async function makePart(needs: MakingNeeds, claim: Claim, tables: readonly EdgeTable[], most: number): Promise<Made> {
  const { state } = claim
  const part = createPart(state.objects.length)
  let { tables: done, open } = state
  const finished: string[] = []
  let queries = 0
  for (let table = tables[done.length]; table !== undefined; table = tables[done.length]) {
    const left = { queries: most - queries, bytes: PART_BYTES - part.read() }
    if (left.queries <= 0 || left.bytes <= 0) break
    const read = await readOn(needs, table, open, part, left)
    queries += read.queries
    open = read.open
    if (read.open !== null) continue
    done = [...done, read.table]
    finished.push(table.name)
  }
  const bytes = part.bytes()
  const key = partKey(state.name, state.objects.length, claim.revision)
  await putWhole(needs.bucket, key, bytes)
  const objects = [...state.objects, { key, bytes: bytes.length }]
  return { state: { ...state, tables: done, open, objects }, queries, finished }
}

type Read = { readonly queries: number } & (
  | { readonly open: NonNullable<State['open']>; readonly table: null }
  | { readonly open: null; readonly table: State['tables'][number] }
)

/** Reads on in a table, into one piece. */
async function readOn(
  { store }: MakingNeeds,
  table: EdgeTable,
  open: State['open'],
  part: Part,
  left: { readonly queries: number; readonly bytes: number },
): Promise<Read> {
  const hash = new ResumableHash(open?.hash)
  const piece = part.begin()
  const put = async (text: string) => {
    const bytes = utf8.encode(text)
    hash.update(bytes)
    await piece.write(bytes)
  }
  let rows = open?.rows ?? 0
  let cursor: Cursor | null = open?.cursor ?? null
  let limit = FIRST_ROWS
  let queries = 0
  if (open === null) await put(tableHead(table))
  for (let length = 0, isEnd = false; ;) {
    if (isEnd) {
      await put(rows === 0 ? TABLE_END : `\n${TABLE_END}`)
      const pieces = [...(open?.pieces ?? []), await piece.end()]
      const { name } = table
      return { queries, open: null, table: { name, rows, bytes: hash.state().bytes, sha256: hash.hex(), pieces } }
    }
    if (cursor !== null && (queries >= left.queries || length >= left.bytes)) {
      const pieces = [...(open?.pieces ?? []), await piece.end()]
      return { queries, open: { cursor: [...cursor], rows, hash: hash.state(), pieces }, table: null }
    }
    const slice = await readSlice(store.db, table, cursor, limit)
    queries++
    isEnd = slice.lines.length < limit
    if (slice.lines.length === 0) continue
    const text = slice.lines.join(',\n')
    await put(rows === 0 ? text : `,\n${text}`)
    length += text.length
    rows += slice.lines.length
    cursor = slice.cursor
    limit = Math.max(1, Math.min(MAX_ROWS, limit * 8, Math.floor((SLICE_BYTES * slice.lines.length) / text.length)))
  }
}

async function manifestOf({ store, config }: MakingNeeds, state: State): Promise<string> {
  const { appVersion, schema, createdAt, kind } = state
  const sequences = await readSequences(store.db)
  const byName = new Map((await readTables(store.db)).map((table) => [table.name, table]))
  const tables = state.tables
    .map(({ name, rows, bytes, sha256 }): Manifest['tables'][number] => {
      const columns = [...(byName.get(name)?.columns ?? [])]
      return { name, file: `${name}.json`, columns, rows, bytes, sha256, sequence: sequences.get(name) ?? null }
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const [secret] = config.SESSION_SECRET
  const key = secret === undefined ? null : signingKey(secret)
  return renderManifest({ formatVersion: 1, appVersion, schema, createdAt, kind, tables }, key)
}
