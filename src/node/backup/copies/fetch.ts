import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Decrypter } from 'age-encryption'
import { createTarDecoder } from 'modern-tar'
import { AppError } from '../../../app/http/errors.ts'
import { SendFailure } from '../../../app/base/outgoing/ports.ts'
import { BackupDamage } from '../../../app/system/backup/format/damage.ts'
import { backupsDirectory } from '../folder/directory.ts'
import type { Files } from '../folder/files.ts'
import { readManifest } from '../folder/read-manifest.ts'
import { partialName } from '../snapshot.ts'
import { refused } from './identities.ts'
import { fileNameOf } from './places/listed.ts'
import type { Place } from './places/place.ts'

/** Files of a backup, with some room. */
const MAX_FILES = 1000

/** Decrypts a copy and unpacks it into the folder of backups. Throws AppError, SendFailure. */
export async function fetchCopy(
  place: Place,
  name: string,
  identities: readonly string[],
  { dataDir, files, onRead }: { dataDir: string; files: Files; onRead(bytes: number): void },
): Promise<string> {
  const directory = backupsDirectory(dataDir)
  const path = join(directory, name)
  if (existsSync(path)) throw refused(`${path} is already here`)
  const decrypter = openDecrypter(identities)
  const encrypted = await place.read(fileNameOf(name))
  encrypted.on('data', (chunk: Buffer) => onRead(chunk.length))
  encrypted.pause()
  const partial = join(directory, partialName(name))
  files.remove(partial)
  files.makeDirectory(directory)
  files.makeDirectory(partial)
  try {
    await unpack(await decrypter.decrypt(asWeb(encrypted)), name, partial, files)
    readManifest(partial)
    files.sync(partial)
    files.rename(partial, path)
    files.sync(directory)
    return path
  } catch (error) {
    files.remove(partial)
    throw asRefusal(error)
  } finally {
    encrypted.destroy()
  }
}

function openDecrypter(identities: readonly string[]): Decrypter {
  const decrypter = new Decrypter()
  try {
    for (const identity of identities) decrypter.addIdentity(identity)
    return decrypter
  } catch {
    throw refused('The private key has a typing error')
  }
}

// Node's own type of the same streams.
function asWeb(stream: Readable): ReadableStream<Uint8Array> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return Readable.toWeb(stream) as ReadableStream<Uint8Array>
}

/** Only regular files, directly in the one folder of an archive, each once. */
async function unpack(archive: ReadableStream<Uint8Array>, name: string, to: string, files: Files): Promise<void> {
  const unzipped = createGunzip()
  const source = Readable.fromWeb(archive)
  source.on('error', (error) => unzipped.destroy(error))
  const entries = asWeb(source.pipe(unzipped)).pipeThrough(createTarDecoder({ strict: true }))
  let count = 0
  for await (const { header, body } of entries) {
    if (header.type === 'directory' && header.name === `${name}/`) {
      await body.cancel()
      continue
    }
    const file = header.name.startsWith(`${name}/`) ? header.name.slice(name.length + 1) : ''
    if (header.type !== 'file' || !/^[\w-]+\.json$/.test(file) || ++count > MAX_FILES) {
      throw new BackupDamage(`the copy contains ${JSON.stringify(header.name)}, which no backup has`)
    }
    const fd = files.create(join(to, file))
    try {
      for await (const chunk of body) files.write(fd, chunk)
      files.finish(fd)
    } catch (error) {
      files.close(fd)
      throw error
    }
  }
  if (!unzipped.readableEnded) await once(unzipped, 'end')
}

function asRefusal(error: unknown): unknown {
  if (error instanceof AppError || error instanceof SendFailure) return error
  const text = error instanceof Error ? error.message : ''
  if (/no identity matched/i.test(text)) return refused('This private key does not open the copy')
  if (error instanceof Error && 'code' in error && String(error.code).startsWith('E')) return error
  return refused(`The copy is damaged, or is none: ${text}`)
}
