import { createHash } from 'node:crypto'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { isDiskFull } from '../../disk/error-code.ts'
import type { Files } from '../folder/files.ts'
import type { Manifest } from '../../../app/system/backup/format/manifest.ts'
import { readRealDirectory } from '../folder/safe-read.ts'
import type { Encrypted, EncryptionJob } from './encrypt.ts'
import { fileNameOf } from './places/listed.ts'
import { CopyFailure } from './places/problems.ts'
import type { Sent } from './places/place.ts'

/** Of an upload to a bucket, which has at most 10,000 parts. */
const PART_BYTES = 16 * 2 ** 20
/** The database needs room while an archive is written. */
const SPARE_BYTES = 64 * 2 ** 20

export type Encrypt = (job: EncryptionJob) => Promise<Encrypted>

const hash = z.string().regex(/^[\da-f]+$/)
const pair = z.object({ sha256: hash, md5: hash })
/** Written last: an archive without it is not complete. */
const aboutSchema = pair.extend({
  size: z.int().positive(),
  partSize: z.int().positive(),
  parts: z.array(pair).min(1),
  recipients: z.string(),
})

/**
 * Encrypted archives on the way to the places, in a folder of the data directory. All places and all attempts send the
 * same bytes, whose length and hashes are known before the first one is sent, as decided in
 * docs/decisions/copies-wait-as-files.md.
 */
export type Outgoing = {
  /** The encrypted archive of a backup, made now unless it is there. Throws CopyFailure. */
  prepare(backup: Wanted, recipients: readonly string[]): Promise<Sent>
  /** Deletes all archives but these. */
  keepOnly(names: readonly string[]): void
}

type Wanted = { readonly name: string; readonly directory: string; readonly manifest: Manifest }

export function openOutgoing(options: {
  dataDir: string
  files: Files
  encrypt: Encrypt
  partSize?: number
}): Outgoing {
  const { files, encrypt, partSize = PART_BYTES } = options
  const folder = join(options.dataDir, 'outgoing-copies')
  const pathOf = (name: string) => join(folder, fileNameOf(name))

  const find = (name: string, recipients: string): Sent | null => {
    const path = pathOf(name)
    try {
      const about = aboutSchema.parse(JSON.parse(readFileSync(`${path}.json`, 'utf8')))
      if (about.recipients !== recipients || statSync(path).size !== about.size) return null
      return { ...about, read: (from, to) => createReadStream(path, { start: from, end: to - 1 }) }
    } catch {
      return null
    }
  }

  const discard = (name: string) => {
    // What says that the archive is complete goes first.
    for (const end of ['.json', '.json.partial', '']) files.remove(`${pathOf(name)}${end}`)
  }

  return {
    async prepare({ name, directory, manifest }, keys) {
      const recipients = createHash('sha256').update(keys.toSorted().join(' ')).digest('hex')
      const found = find(name, recipients)
      if (found !== null) return found
      files.makeDirectory(folder)
      discard(name)
      await demandRoom(folder, manifest)
      const path = pathOf(name)
      try {
        const made = await encrypt({ directory, name, manifest, recipients: keys, to: path, partSize })
        const fd = files.create(`${path}.json.partial`)
        files.write(fd, Buffer.from(JSON.stringify({ ...made, recipients })))
        files.finish(fd)
        files.rename(`${path}.json.partial`, `${path}.json`)
        files.sync(folder)
        const ready = find(name, recipients)
        if (ready === null) throw new CopyFailure('unreadable')
        return ready
      } catch (error) {
        discard(name)
        throw isDiskFull(error) ? new CopyFailure('ownDisk') : error
      }
    },
    keepOnly(names) {
      const kept = new Set(names.map(fileNameOf))
      const entries = readRealDirectory(`${folder}/.`) ?? []
      const isKept = (entry: string) => kept.has(entry.replace(/\.json$/, ''))
      // In this order the archive without its description goes last.
      for (const entry of entries.filter((one) => !isKept(one)).toSorted((a, b) => b.length - a.length)) {
        files.remove(join(folder, entry))
      }
    },
  }
}

/** JSON of a database becomes a fifth or less; a third is assumed. */
async function demandRoom(folder: string, { tables }: Manifest): Promise<void> {
  const needed = tables.reduce((sum, { bytes }) => sum + bytes, 0) / 3 + SPARE_BYTES
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize < needed) throw new CopyFailure('ownDisk')
}
