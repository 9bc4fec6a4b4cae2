import { BACKUP_KINDS, type Backup, type Signature } from '../backup.ts'
import * as z from 'zod'
import { hmacSha256Bytes, isSameText, sha256Hex, toHex } from '../../../base/crypto.ts'
import { BackupDamage, RestoreRefused } from './damage.ts'
import { MANIFEST } from './names.ts'

const FORMAT_VERSION = 1
/** The largest ID: beyond it a double can't tell adjacent numbers apart, and SQLite gives the next row a higher one. */
export const MAX_ID = 2 ** 52
const MAX_TABLE_BYTES = 2 ** 36

const identifier = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/)
const sha256 = z.string().regex(/^[0-9a-f]{64}$/)

const tableSchema = z
  .strictObject({
    name: identifier,
    file: z.string(),
    columns: z.array(identifier).min(1).max(500),
    rows: z.int().min(0),
    bytes: z.int().min(1).max(MAX_TABLE_BYTES),
    sha256,
    /** The table's AUTOINCREMENT counter, so that an ID is never reused; null without one. */
    sequence: z.int().min(0).max(MAX_ID).nullable(),
  })
  .refine(({ name, file }) => file === `${name}.json`, 'a file with the name of its table')
  .refine(({ columns }) => new Set(columns).size === columns.length, 'each column once')

const contentSchema = z.strictObject({
  formatVersion: z.literal(FORMAT_VERSION),
  appVersion: z.string().max(64),
  /** Tag of the last migration of the database. */
  schema: z.string().regex(/^\d{4}_[a-z0-9_]{1,100}$/),
  createdAt: z.int().min(0).max(8_640_000_000_000_000),
  kind: z.enum(BACKUP_KINDS),
  tables: z
    .array(tableSchema)
    .max(500)
    .refine(
      (tables) => new Set(tables.map(({ name }) => name.toLowerCase())).size === tables.length,
      'each table once',
    ),
})

/** Over the content; `key` identifies the secret without revealing it. The field may have been removed. */
const signatureSchema = z.strictObject({ key: z.string().regex(/^[0-9a-f]{16}$/), hmac: sha256 }).nullish()

const manifestSchema = contentSchema.extend({ signature: signatureSchema, sha256 })

export type ManifestContent = z.infer<typeof contentSchema>
export type ManifestTable = z.infer<typeof tableSchema>
export type Manifest = z.infer<typeof manifestSchema>

/** A key that signs manifests, derived from a session secret; the secret cannot be recovered from it. */
export function signingKey(secret: string): Uint8Array {
  return hmacSha256Bytes(secret, 'mesh-monitoring-service backup manifest')
}

/** The text of a manifest file. */
export function renderManifest(content: ManifestContent, key: Uint8Array | null): string {
  const signature = key === null ? null : { key: keyName(key), hmac: hmacOf(content, key) }
  return textOf({ ...content, signature, sha256: digestOf({ ...content, signature }) })
}

function textOf(manifest: Manifest): string {
  return `${JSON.stringify(manifest, null, 2)}\n`
}

function digestOf(unhashed: Omit<Manifest, 'sha256'>): string {
  return sha256Hex(JSON.stringify(unhashed))
}

function hmacOf(content: ManifestContent, key: Uint8Array): string {
  return toHex(hmacSha256Bytes(key, JSON.stringify(content)))
}

function keyName(key: Uint8Array): string {
  return sha256Hex(key).slice(0, 16)
}

/**
 * The manifest in the text of its file. Throws BackupDamage, or RestoreRefused for a format of a later version. Every byte
 * counts: a file with the same content in different bytes is damaged too.
 */
export function parseManifest(text: string): Manifest {
  const value = parseJson(text)
  const version = z.object({ formatVersion: z.int().min(FORMAT_VERSION + 1) }).safeParse(value)
  if (version.success) {
    throw new RestoreRefused(
      `Restore failed: backup format ${version.data.formatVersion} is not known; upgrade the service first`,
    )
  }
  const parsed = manifestSchema.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new BackupDamage(`${MANIFEST}: ${issue?.path.join('.').slice(0, 100)}: ${issue?.message.slice(0, 200)}`)
  }
  const manifest = parsed.data
  const { sha256, ...unhashed } = manifest
  if (digestOf(unhashed) !== sha256 || textOf(manifest) !== text) {
    throw new BackupDamage(`${MANIFEST} does not match its SHA-256`)
  }
  return manifest
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new BackupDamage(`${MANIFEST} is not JSON`, { cause: error })
  }
}

/** Whether one of our keys signed the manifest. Throws BackupDamage for a wrong signature under one of our keys. */
export function checkSignature(manifest: Manifest, keys: readonly Uint8Array[]): Signature {
  const { sha256: _, signature, ...content } = manifest
  if (signature === null || signature === undefined) return 'none'
  const key = keys.find((key) => keyName(key) === signature.key)
  if (key === undefined) return 'foreign'
  if (isSameText(hmacOf(content, key), signature.hmac)) return 'own'
  throw new BackupDamage(`${MANIFEST} does not match its signature: it was changed by somebody without the secret`)
}

/** Whether one of our keys signed the manifest. */
export function isSignedByOneOf(manifest: Manifest, keys: readonly Uint8Array[]): boolean {
  try {
    return checkSignature(manifest, keys) === 'own'
  } catch (error) {
    if (error instanceof BackupDamage) return false
    throw error
  }
}

export function totalRows({ tables }: Pick<Manifest, 'tables'>): number {
  return tables.reduce((sum, { rows }) => sum + rows, 0)
}

/** A backup as the API returns it. */
export function describeBackup(name: string, manifest: Manifest): Backup {
  const { createdAt, kind, appVersion, schema, tables } = manifest
  const bytes = tables.reduce((sum, table) => sum + table.bytes, new TextEncoder().encode(textOf(manifest)).length)
  return {
    name,
    createdAt,
    kind,
    appVersion,
    schema,
    tables: tables.length,
    rows: totalRows(manifest),
    sizeBytes: bytes,
  }
}
