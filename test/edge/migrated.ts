import { cpSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'

/** Where a runtime keeps its files. One runtime starts at a time. */
export type Scratch = {
  /** Runs what starts the runtime. */
  start<T>(run: () => Promise<T>): Promise<T>
  /**
   * Brings its D1 databases to this version's schema, before anybody uses them. The first ones of a run of the tests by
   * `migrate`, which takes two seconds of the processor; the next ones of this `kind` are copies of those.
   */
  migrated(kind: string, migrate: () => Promise<void>): Promise<void>
  remove(): void
}

export function makeScratch(): Scratch {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-workerd-'))
  return {
    async start(run) {
      const { TMPDIR } = process.env
      process.env['TMPDIR'] = folder
      try {
        return await run()
      } finally {
        if (TMPDIR === undefined) delete process.env['TMPDIR']
        else process.env['TMPDIR'] = TMPDIR
      }
    },
    async migrated(kind, migrate) {
      const kept = join(inject('builds'), `d1-${kind}`)
      const folders = readdirSync(folder).map((name) => join(folder, name, 'd1'))
      const own = folders.find((name) => existsSync(name))
      if (own !== undefined && existsSync(kept)) return cpSync(kept, own, { recursive: true })
      await migrate()
      if (own !== undefined) keep(own, kept)
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function keep(files: string, kept: string): void {
  const copy = mkdtempSync(`${kept}-`)
  // The index of the write-ahead log belongs to the process that made it.
  cpSync(files, copy, { recursive: true, filter: (name) => !name.endsWith('-shm') })
  try {
    renameSync(copy, kept)
  } catch {
    // Another file was first.
    rmSync(copy, { recursive: true })
  }
}
