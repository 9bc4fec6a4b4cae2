import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fdatasyncSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { hasCode } from '../../disk/error-code.ts'

/**
 * Every change that backup and restore make to the disk, as an interface, so that a test can stop before any of them.
 */
export interface Files {
  /** Creates a directory (0700) and its missing parents. */
  makeDirectory(path: string): void
  /** Creates a file (0600) and opens it for writing. Throws EEXIST. */
  create(path: string): number
  write(fd: number, bytes: Uint8Array): void
  /** Flushes a file to the disk and closes it. */
  finish(fd: number): void
  close(fd: number): void
  /** Flushes a file or a directory to the disk. */
  sync(path: string): void
  rename(from: string, to: string): void
  /** Gives a file a second name, or copies it if the file system has no hard links. */
  duplicate(from: string, to: string): void
  /** Whether anything exists at the path, without following links. */
  remove(path: string): void
  /** As `remove`, without holding the event loop: the kernel takes seconds for files of gigabytes. */
  removeLarge(path: string): Promise<void>
}

/**
 * The maximum number of unflushed bytes of a file. If there were gigabytes, commits of the database would wait for all
 * of them.
 */
const MAX_UNFLUSHED = 8 * 2 ** 20
/** By descriptor of an open file. */
const unflushed = new Map<number, number>()

export const diskFiles: Files = {
  makeDirectory: (path) => {
    const made = mkdirSync(path, { recursive: true, mode: 0o700 })
    if (made !== undefined) chmodSync(path, 0o700)
  },
  create: (path) => openSync(path, 'wx', 0o600),
  write: (fd, bytes) => {
    for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done)
    const waiting = (unflushed.get(fd) ?? 0) + bytes.length
    const isMuch = waiting >= MAX_UNFLUSHED
    if (isMuch) fdatasyncSync(fd)
    unflushed.set(fd, isMuch ? 0 : waiting)
  },
  finish: (fd) => {
    fsyncSync(fd)
    diskFiles.close(fd)
  },
  close: (fd) => {
    unflushed.delete(fd)
    closeSync(fd)
  },
  sync: (path) => {
    const fd = openSync(path, 'r')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  },
  rename: renameSync,
  duplicate: (from, to) => {
    try {
      linkSync(from, to)
    } catch (error) {
      if (!hasCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS')) throw error
      copyFileSync(from, to, constants.COPYFILE_EXCL)
      diskFiles.sync(to)
    }
  },
  remove: (path) => rmSync(path, { recursive: true, force: true }),
  removeLarge: (path) => rm(path, { recursive: true, force: true }),
}
