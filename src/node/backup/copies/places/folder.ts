import { constants, createReadStream, type Stats } from 'node:fs'
import { lstat, open, opendir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { hasCode, isDiskFull } from '../../../disk/error-code.ts'
import { letGo } from '../../folder/let-go.ts'
import { demandContent } from './content.ts'
import { demandWhole, isCopy } from './listed.ts'
import { MARKER, markerText, ownerIn } from './mark.ts'
import type { Place, Sent } from './place.ts'
import { CopyFailure } from './problems.ts'
import { UNFINISHED } from './webdav.ts'

/** The system writes what it has at the latest then; more would delay everything else on that disk. */
const FLUSH_BYTES = 8 * 2 ** 20

/** Others may write to a share: a link that lies there must not lead to another file. */
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

const NO_LINK = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const MAX_MARKER = 1000

/** A folder in which another disk is mounted. */
export function openFolder(path: string, dataDir: string | null, signal?: AbortSignal): Place {
  /** Null: there is none, or something else has its name. */
  const readMarker = async (): Promise<string | null> => {
    const file = await open(join(path, MARKER), NO_LINK).catch(() => null)
    if (file === null) return null
    try {
      if (!(await file.stat()).isFile()) return null
      const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_MARKER), 0, MAX_MARKER, 0)
      return buffer.toString('latin1', 0, bytesRead)
    } finally {
      await file.close()
    }
  }

  const demandMarker = async (): Promise<string> => {
    const marker = await readMarker()
    if (marker === null) throw new CopyFailure('notMounted')
    return marker
  }

  const write = async (name: string, file: Sent, onSent: (bytes: number) => void) => {
    await rm(join(path, name), { force: true })
    const target = await open(join(path, name), NEW_FILE, 0o600)
    try {
      let unflushed = 0
      for await (const chunk of file.read(0, file.size)) {
        for (let done = 0; done < chunk.length;) done += (await target.write(chunk, done)).bytesWritten
        onSent(chunk.length)
        unflushed += chunk.length
        letGo(chunk)
        signal?.throwIfAborted()
        if (unflushed < FLUSH_BYTES) continue
        await target.datasync()
        unflushed = 0
      }
      await target.sync()
    } finally {
      await target.close()
    }
  }

  const place: Place = {
    async send(name, file, { onSent }) {
      await demandMarker()
      const unfinished = `${name}${UNFINISHED}`
      try {
        await write(unfinished, file, onSent)
        await demandContent(createReadStream(join(path, unfinished), { signal }), file)
        await rename(join(path, unfinished), join(path, name))
        const directory = await open(path, 'r')
        try {
          await directory.sync()
        } finally {
          await directory.close()
        }
      } catch (error) {
        await rm(join(path, unfinished), { force: true }).catch(() => {})
        throw asProblem(error)
      }
    },
    clean: (name) => place.remove(`${name}${UNFINISHED}`),
    async list() {
      await demandMarker()
      try {
        const found: { name: string; size: number }[] = []
        // One by one: others may have put a million files there.
        for await (const { name } of await opendir(path)) {
          if (!isCopy(name)) continue
          const file: Stats | null = await lstat(join(path, name)).catch(() => null)
          if (file?.isFile() === true) found.push({ name, size: file.size })
          demandWhole(found)
        }
        return found
      } catch (error) {
        throw asProblem(error)
      }
    },
    async read(name) {
      try {
        const file = await open(join(path, name), 'r')
        return file.createReadStream()
      } catch (error) {
        throw hasCode(error, 'ENOENT') ? new CopyFailure('gone') : asProblem(error)
      }
    },
    async remove(name) {
      await demandMarker()
      await rm(join(path, name), { force: true }).catch((error: unknown) => {
        throw asProblem(error)
      })
    },
    owner: async () => ownerIn(await demandMarker()),
    async claim(service) {
      const real = await realpath(path).catch(() => null)
      if (real === null) throw new CopyFailure('noFolder')
      const own = dataDir === null ? null : await realpath(dataDir)
      if (own !== null && (real === own || real.startsWith(own + sep))) throw new CopyFailure('inDataDir')
      const before = await readMarker()
      if (before !== null && ownerIn(before) === null) await rm(join(path, MARKER))
      await writeFile(join(path, MARKER), markerText(service), { mode: 0o600, flag: 'wx' }).catch((error: unknown) => {
        if (!hasCode(error, 'EEXIST')) throw asProblem(error)
      })
      const marker = await readMarker()
      if (marker === null) throw new CopyFailure('noFolder')
      if (ownerIn(marker) !== service) throw new CopyFailure('foreign')
    },
  }
  return place
}

/** Whether two paths are on one disk; false if that is unknown. */
export async function isSameDisk(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([stat(one).catch(() => null), stat(other).catch(() => null)])
  return a !== null && b !== null && a.dev === b.dev
}

function asProblem(error: unknown): unknown {
  if (isDiskFull(error)) return new CopyFailure('full')
  if (hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS')) return new CopyFailure('noFolder')
  if (hasCode(error, 'EIO', 'ESTALE', 'ENODEV', 'ENXIO')) return new CopyFailure('busy', true)
  return error
}
