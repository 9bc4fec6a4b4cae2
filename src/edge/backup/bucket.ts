import { type Backup, backupSchema } from '../../app/system/backup/backup.ts'
import { BackupDamage } from '../../app/system/backup/format/damage.ts'
import { describeBackup, parseManifest } from '../../app/system/backup/format/manifest.ts'
import { isBackupName } from '../../app/system/backup/format/names.ts'
import type { Log } from '../../app/base/log.ts'
import { type Contents, contentsSchema } from './work.ts'

/** What backups use of R2. */
export type Bucket = Pick<R2Bucket, 'put' | 'get' | 'head' | 'list' | 'delete'>

// A backup is its manifest, which is written last and deleted first; the rest of it counts for nothing without one.
const MANIFESTS = 'manifests/'
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024
const PARTS = 'parts/'
/** Objects that R2 deletes at once. */
const MAX_DELETED = 1000
const manifestKey = (name: string) => `${MANIFESTS}${name}.json`
const contentsKey = (name: string) => `${PARTS}${name}/contents.json`

/** Where part number `number` of a backup is. `revision`: no other invocation writes to the same place. */
export const partKey = (name: string, number: number, revision: number) =>
  `${PARTS}${name}/${String(number).padStart(5, '0')}-${revision}`

/** Newest first. */
export async function listManifests(bucket: Bucket): Promise<Backup[]> {
  const backups: Backup[] = []
  await eachPage(bucket, { prefix: MANIFESTS, include: ['customMetadata'] }, ({ objects }) => {
    for (const { customMetadata } of objects) {
      const found = backupSchema.safeParse(jsonOf(customMetadata?.['backup'] ?? 'null'))
      if (found.success && isBackupName(found.data.name)) backups.push(found.data)
    }
  })
  return backups.toSorted((a, b) => b.createdAt - a.createdAt || (a.name < b.name ? 1 : -1))
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

export async function hasManifest(bucket: Bucket, name: string): Promise<boolean> {
  return isBackupName(name) && (await bucket.head(manifestKey(name))) !== null
}

/** The text of a manifest; null: there is no such backup. */
export async function readManifestText(bucket: Bucket, name: string): Promise<string | null> {
  if (!isBackupName(name)) return null
  const found = await bucket.get(manifestKey(name))
  return found === null || found.size > MAX_MANIFEST_BYTES ? null : found.text()
}

/** Throws BackupDamage. */
export async function readContents(bucket: Bucket, name: string): Promise<Contents> {
  const text = await (await bucket.get(contentsKey(name)))?.text()
  const found = contentsSchema.safeParse(text === undefined ? null : jsonOf(text))
  if (!found.success) throw new BackupDamage(`the list of the parts of ${name} is missing or damaged`)
  return found.data
}

/**
 * Stores an object and makes sure that all of it is there. A locked bucket refuses to store it again, which is no failure if
 * it is the same.
 */
export async function putWhole(bucket: Bucket, key: string, bytes: Uint8Array, options?: R2PutOptions): Promise<void> {
  let stored: R2Object | null
  try {
    stored = await bucket.put(key, bytes, options)
  } catch (error) {
    if (await hasAlready(bucket, key, bytes)) return
    throw error
  }
  if (stored?.size === bytes.length) return
  throw new Error(`the bucket stored ${stored?.size ?? 'none'} of ${bytes.length} bytes of ${key}`)
}

async function hasAlready(bucket: Bucket, key: string, bytes: Uint8Array): Promise<boolean> {
  const found = await bucket.get(key).catch(() => null)
  if (found?.size !== bytes.length) return false
  const kept = new Uint8Array(await found.arrayBuffer())
  return kept.every((byte, i) => byte === bytes[i])
}

const utf8 = new TextEncoder()

/** Makes a backup of parts that are all in the bucket, which is checked. */
export async function completeBackup(
  bucket: Bucket,
  name: string,
  { tables, objects }: Contents,
  manifest: string,
): Promise<Backup> {
  await demandParts(bucket, name, objects)
  await putWhole(bucket, contentsKey(name), utf8.encode(JSON.stringify({ tables, objects })))
  const backup = describeBackup(name, parseManifest(manifest))
  await putManifest(bucket, name, utf8.encode(manifest), { backup: JSON.stringify(backup) })
  return backup
}

async function putManifest(
  bucket: Bucket,
  name: string,
  bytes: Uint8Array,
  customMetadata: Record<string, string>,
): Promise<void> {
  await putWhole(bucket, manifestKey(name), bytes, {
    customMetadata,
    httpMetadata: { contentType: 'application/json' },
  })
}

/** Throws BackupDamage if a part is not in the bucket, or has another size. */
export async function demandParts(bucket: Bucket, name: string, objects: Contents['objects']): Promise<void> {
  const sizes = new Map<string, number>()
  await eachPage(bucket, { prefix: `${PARTS}${name}/` }, (page) => {
    for (const { key, size } of page.objects) sizes.set(key, size)
  })
  const missing = objects.find(({ key, bytes }) => sizes.get(key) !== bytes)
  if (missing !== undefined) throw new BackupDamage(`${missing.key} is missing in the bucket, or has another size`)
}

/** Takes a backup out of the list while `record` runs, and puts it back if that throws. Its manifest may be damaged. */
export async function hideBackup(bucket: Bucket, name: string, record: () => Promise<void>): Promise<void> {
  const found = await bucket.get(manifestKey(name))
  const bytes = found === null || found.size > MAX_MANIFEST_BYTES ? null : new Uint8Array(await found.arrayBuffer())
  await bucket.delete(manifestKey(name))
  try {
    await record()
  } catch (error) {
    if (bytes !== null) await putManifest(bucket, name, bytes, found?.customMetadata ?? {})
    throw error
  }
}

/** Deletes the manifest and the parts of what was to become a backup, or was one. */
export async function removeParts(bucket: Bucket, name: string): Promise<void> {
  await bucket.delete(manifestKey(name))
  const keys: string[] = []
  await eachPage(bucket, { prefix: `${PARTS}${name}/` }, ({ objects }) => {
    for (const { key } of objects) keys.push(key)
  })
  for (let at = 0; at < keys.length; at += MAX_DELETED) await bucket.delete(keys.slice(at, at + MAX_DELETED))
}

/** Deletes parts that belong to no backup, as far as the bucket lets it. Call it while none is being made. */
export async function sweepParts(bucket: Bucket, log: Log): Promise<void> {
  const names = new Set<string>()
  await eachPage(bucket, { prefix: PARTS, delimiter: '/' }, ({ delimitedPrefixes }) => {
    for (const prefix of delimitedPrefixes) names.add(prefix.slice(PARTS.length, -1))
  })
  for (const name of names) {
    if (await hasManifest(bucket, name)) continue
    await removeParts(bucket, name).catch((error: unknown) => {
      log.warn('Parts that belong to no backup could not be deleted', { name, error })
    })
  }
}

async function eachPage(bucket: Bucket, options: R2ListOptions, take: (page: R2Objects) => void): Promise<void> {
  let cursor: string | undefined
  do {
    const page: R2Objects = await bucket.list({ ...options, ...(cursor !== undefined && { cursor }) })
    take(page)
    cursor = page.truncated ? page.cursor : undefined
  } while (cursor !== undefined)
}
