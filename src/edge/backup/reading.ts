import { createTarPacker } from 'modern-tar'
import { BackupDamage } from '../../app/system/backup/format/damage.ts'
import type { Manifest } from '../../app/system/backup/format/manifest.ts'
import { MANIFEST } from '../../app/system/backup/format/names.ts'
import type { Bucket } from './bucket.ts'
import type { Contents } from './work.ts'

const utf8 = new TextEncoder()

/** The pieces of a table's file as they are stored, each a member of gzip. Throws BackupDamage. */
export async function* piecesOf(
  bucket: Bucket,
  { tables, objects }: Contents,
  name: string,
): AsyncGenerator<ReadableStream<Uint8Array>> {
  for (const { object, at, bytes } of tables.find((table) => table.name === name)?.pieces ?? []) {
    const key = objects[object]?.key
    const found = key === undefined ? null : await rangeOf(bucket, key, { offset: at, length: bytes })
    if (found === null) throw new BackupDamage(`${name}.json: ${key ?? 'a part'} is missing in the bucket`)
    yield found.body
  }
}

async function rangeOf(bucket: Bucket, key: string, range: { readonly offset: number; readonly length: number }) {
  try {
    return await bucket.get(key, { range })
  } catch (error) {
    // InvalidRange of developers.cloudflare.com/r2/api/error-codes.
    if (error instanceof Error && error.message.includes('(10039)')) {
      throw new BackupDamage(`${key} is shorter than it was`, { cause: error })
    }
    throw error
  }
}

/**
 * A backup as .tar.gz with one top folder, as Node makes it: members of gzip, those of the tables as they are stored. Nothing
 * is compressed again.
 */
export async function* archiveOf(
  bucket: Bucket,
  name: string,
  { manifest, text, contents }: { readonly manifest: Manifest; readonly text: string; readonly contents: Contents },
): AsyncGenerator<Uint8Array> {
  const mtime = new Date(manifest.createdAt)
  const header = (file: string, size: number) =>
    tarHeader({ name: `${name}/${file}`, type: 'file', size, mode: 0o600, mtime })
  const folder = await tarHeader({ name: `${name}/`, type: 'directory', size: 0, mode: 0o700, mtime })
  const bytes = utf8.encode(text)
  yield* gzipped(folder, await header(MANIFEST, bytes.length), bytes, paddingOf(bytes.length))
  for (const table of manifest.tables) {
    yield* gzipped(await header(table.file, table.bytes))
    for await (const piece of piecesOf(bucket, contents, table.name)) yield* piece
    yield* gzipped(paddingOf(table.bytes))
  }
  yield* gzipped(new Uint8Array(1024))
}

const paddingOf = (size: number) => new Uint8Array(-size & 511)

async function tarHeader(entry: Parameters<ReturnType<typeof createTarPacker>['controller']['add']>[0]) {
  const { readable, controller } = createTarPacker()
  controller.add(entry)
  const { value } = await readable.getReader().read()
  if (value?.length !== 512) throw new Error(`no header of ${entry.name}`)
  return value
}

async function* gzipped(...pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  const source = new Blob(pieces.map((piece) => new Uint8Array(piece))).stream()
  yield* source.pipeThrough(new CompressionStream('gzip'))
}
