import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Only root may mount: without root, tests that need a small disk are skipped. */
export const canMount = process.platform === 'linux' && process.getuid?.() === 0 && tries()

export type SmallDisk = {
  readonly dir: string
  /** Fills the disk up to this many free bytes. */
  fill(left?: number): void
  /** Frees that space. */
  clear(): void
  remove(): void
}

/** A separate file system, in memory. */
export function mountSmallDisk(mebibytes: number): SmallDisk {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-small-disk-'))
  mount(dir, mebibytes)
  const filler = join(dir, 'filler')
  return {
    dir,
    fill(left = 0) {
      const { bavail, bsize } = statfsSync(dir)
      if (bavail * bsize <= left) return
      try {
        writeFileSync(filler, Buffer.alloc(bavail * bsize - left, 1), { flag: 'a' })
      } catch (error) {
        // A service that writes at the same time fills the rest.
        if (left > 0 || !(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
      }
    },
    clear: () => rmSync(filler, { force: true }),
    remove() {
      execFileSync('umount', ['-l', dir])
      rmdirSync(dir)
    },
  }
}

function mount(dir: string, mebibytes: number): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', dir], { stdio: 'pipe' })
}

function tries(): boolean {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-mount-'))
  try {
    mount(dir, 1)
    execFileSync('umount', [dir])
    return true
  } catch {
    return false
  } finally {
    rmdirSync(dir)
  }
}
