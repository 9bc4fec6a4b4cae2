import { sql } from 'drizzle-orm'
import type { Verification } from '../../app/system/backup/backup.ts'
import { type Declared, declaredColumns, type Rules, rulesOf } from '../../app/system/backup/format/column-rules.ts'
import { BackupDamage, RestoreRefused } from '../../app/system/backup/format/damage.ts'
import {
  checkSignature,
  type Manifest,
  parseManifest,
  signingKey,
  totalRows,
} from '../../app/system/backup/format/manifest.ts'
import { rowReader } from '../../app/system/backup/format/rows.ts'
import { checkShape } from '../../app/system/backup/format/shape.ts'
import { backupTables } from '../../app/system/backup/format/tables.ts'
import { type Bucket, demandParts, readContents, readManifestText } from './bucket.ts'
import type { MakingNeeds } from './making.ts'
import { piecesOf } from './reading.ts'
import { ResumableHash } from './sha256.ts'
import type { Contents } from './work.ts'
import { AppError } from '../../app/http/errors.ts'

// D1 refuses a look at its own tables.
const NAMES = `select value as name from json_each('${JSON.stringify(backupTables().map(({ name }) => name))}')`

const MAX_PROBLEMS = 100
/** Bytes of tables that a request can check within 30 s of processor time: 35 ms each megabyte. */
const MAX_BYTES = 400 * 2 ** 20

/**
 * Reads every row of a backup and returns the first problem of each table. Throws `backup_not_found`, and
 * `unsupported_on_this_runtime` if that takes more than a request has.
 */
export async function verifyBackup(needs: MakingNeeds, name: string): Promise<Verification> {
  const { bucket, config } = needs
  const text = await readManifestText(bucket, name)
  if (text === null) throw new AppError('backup_not_found')
  const problems: string[] = []
  const note = async <T>(check: () => T | Promise<T>): Promise<T | null> => {
    try {
      return await check()
    } catch (error) {
      if (!(error instanceof BackupDamage || error instanceof RestoreRefused)) throw error
      if (problems.length < MAX_PROBLEMS) problems.push(error.message)
      return null
    }
  }
  const manifest = await note(() => parseManifest(text))
  if (manifest === null) return { ok: false, tables: 0, rows: 0, problems, signature: 'none' }
  if (manifest.tables.reduce((sum, { bytes }) => sum + bytes, 0) > MAX_BYTES) {
    throw new AppError(
      'unsupported_on_this_runtime',
      'This backup is too large for one request: download it, and verify it with the command of a service on Node',
    )
  }
  // A backup that claims our secret without matching it comes from somebody else.
  const signature = (await note(() => checkSignature(manifest, config.SESSION_SECRET.map(signingKey)))) ?? 'foreign'
  const contents = await note(() => readContents(bucket, name))
  if (contents !== null) await note(() => demandParts(bucket, name, contents.objects))
  const rules = await note(() => rulesFor(needs, manifest))
  for (const table of contents === null ? [] : manifest.tables) {
    if (contents !== null) await note(() => checkTable(bucket, contents, table, rules?.get(table.name)))
  }
  const { length } = manifest.tables
  return { ok: problems.length === 0, tables: length, rows: totalRows(manifest), problems, signature }
}

/** The rules of the database itself. For a backup of an earlier version these say too much: its restore checks it. */
async function rulesFor({ store, schema }: MakingNeeds, manifest: Manifest): Promise<Rules> {
  if (manifest.schema !== (await schema())) return new Map()
  const columns = await store.db.all<Declared>(sql.raw(declaredColumns(NAMES)))
  const known = Map.groupBy(columns, ({ table }) => table)
  const listed = [...known].map(([table, of]) => [table, of.map(({ column }) => column)] as const)
  checkShape(manifest, new Map(listed))
  return rulesOf(columns)
}

async function checkTable(
  bucket: Bucket,
  contents: Contents,
  table: Manifest['tables'][number],
  rules: Parameters<typeof rowReader>[1] = new Map(),
): Promise<void> {
  const hash = new ResumableHash()
  const rows = rowReader(table, rules, () => {})
  let bytes = 0
  for await (const piece of piecesOf(bucket, contents, table.name)) {
    for await (const chunk of inflated(piece, table.file)) {
      bytes += chunk.length
      // A part may inflate to anything.
      if (bytes > table.bytes) throw new BackupDamage(`${table.file} has more than ${table.bytes} bytes`)
      hash.update(chunk)
      rows.feed(chunk)
    }
  }
  if (bytes !== table.bytes)
    throw new BackupDamage(`${table.file} has ${bytes} bytes, the manifest says ${table.bytes}`)
  if (hash.hex() !== table.sha256) throw new BackupDamage(`${table.file} does not match its SHA-256`)
  rows.end()
}

async function* inflated(piece: ReadableStream<Uint8Array>, file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* piece.pipeThrough(new DecompressionStream('gzip'))
  } catch (error) {
    if (error instanceof TypeError) throw new BackupDamage(`${file} is not whole gzip`, { cause: error })
    throw error
  }
}
