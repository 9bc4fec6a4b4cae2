import { createHash } from 'node:crypto'
import { Encrypter } from 'age-encryption'
import { archiveBackup } from '../folder/archive.ts'
import type { Files } from '../folder/files.ts'
import { letGo } from '../folder/let-go.ts'
import type { Manifest } from '../../../app/system/backup/format/manifest.ts'

export type EncryptionJob = {
  /** The folder of the backup. */
  readonly directory: string
  readonly name: string
  readonly manifest: Manifest
  /** Public keys of age. */
  readonly recipients: readonly string[]
  /** The file to write. It must not exist. */
  readonly to: string
  readonly partSize: number
}

/** What was written. Hashes are hexadecimal. */
export type Encrypted = {
  readonly size: number
  readonly sha256: string
  readonly md5: string
  readonly partSize: number
  readonly parts: readonly { readonly sha256: string; readonly md5: string }[]
}

/** Writes the archive of a backup, as it is downloaded, encrypted for the recipients. It is flushed to the disk. */
export async function encryptBackup(job: EncryptionJob, files: Files): Promise<Encrypted> {
  const encrypter = new Encrypter()
  for (const recipient of job.recipients) encrypter.addRecipient(recipient)
  const encrypted = await encrypter.encrypt(freed(archiveBackup(job.directory, job.name, job.manifest)))
  const fd = files.create(job.to)
  try {
    const found = await writeHashed(encrypted, job.partSize, (bytes) => files.write(fd, bytes))
    files.finish(fd)
    return found
  } catch (error) {
    files.close(fd)
    throw error
  }
}

/** The same bytes. Each piece is freed when the next one is wanted: it was encrypted before. */
function freed(source: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  let last: Uint8Array | null = null
  return new ReadableStream<Uint8Array>(
    {
      pull: async (sink) => {
        if (last !== null) letGo(last)
        const { done, value } = await reader.read()
        last = value ?? null
        if (done) sink.close()
        else sink.enqueue(value)
      },
      cancel: async (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

async function writeHashed(
  source: ReadableStream<Uint8Array>,
  partSize: number,
  write: (bytes: Uint8Array) => void,
): Promise<Encrypted> {
  const whole = pairOfHashes()
  const parts: { sha256: string; md5: string }[] = []
  let part = pairOfHashes()
  let inPart = 0
  let size = 0
  for await (const chunk of source) {
    write(chunk)
    whole.update(chunk)
    size += chunk.length
    for (let rest = chunk; rest.length > 0;) {
      const taken = rest.subarray(0, partSize - inPart)
      part.update(taken)
      inPart += taken.length
      rest = rest.subarray(taken.length)
      if (inPart < partSize) continue
      parts.push(part.digest())
      part = pairOfHashes()
      inPart = 0
    }
    letGo(chunk)
  }
  if (inPart > 0) parts.push(part.digest())
  return { size, ...whole.digest(), partSize, parts }
}

function pairOfHashes() {
  const [sha256, md5] = [createHash('sha256'), createHash('md5')]
  return {
    update(bytes: Uint8Array) {
      sha256.update(bytes)
      md5.update(bytes)
    },
    digest: () => ({ sha256: sha256.digest('hex'), md5: md5.digest('hex') }),
  }
}
