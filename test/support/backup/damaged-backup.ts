import type { Verification } from '../../../src/app/system/backup/backup.ts'
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { inspectBackup } from '../../../src/node/backup/inspect.ts'
import type { RestoreOptions } from '../../../src/node/backup/restore/restore.ts'
import { signingKey } from '../../../src/app/system/backup/format/manifest.ts'
import { MIGRATIONS_DIR } from '../../../src/node/database.ts'
import { MADE_NAME, makeBackup, makeDataDir, seedDatabase, SECRET, tryRestore } from './backup.ts'

export const integrity = (what: string) =>
  `Integrity validation failed: ${what}; use an earlier backup or download the archive again`

export type Victim = {
  /** An untouched backup. */
  readonly pristine: string
  /** The backup to damage, intact again before each test. */
  readonly backup: string
  file(name: string): string
  edit(name: string, change: (text: string) => string): void
  inspect(): Verification
  /**
   * The restore is refused with this line, or for a reason that contains this text, and the disk has only what was
   * there before and the damaged backup.
   */
  expectRefused(line: string | RegExp | { part: string }, options?: Partial<RestoreOptions>): Promise<void>
}

/** A database and a backup of it for the tests of a file. */
export function useVictim(): Victim {
  const here = makeDataDir()
  const pristine = join(here.dataDir, 'pristine')
  const backup = join(here.backups, MADE_NAME)
  let database: Buffer
  beforeAll(async () => {
    seedDatabase(here.database, 1500)
    renameSync(join(here.backups, await makeBackup(here.dataDir)), pristine)
    // The snapshot's reader leaves empty side files; a restore that gets that far would remove them.
    for (const suffix of ['-wal', '-shm']) rmSync(here.database + suffix, { force: true })
    database = readFileSync(here.database)
  })
  afterAll(() => here.remove())
  beforeEach(() => {
    rmSync(here.backups, { recursive: true })
    mkdirSync(here.backups)
    cpSync(pristine, backup, { recursive: true })
  })
  const file = (name: string) => join(backup, name)
  const present = () => readdirSync(here.dataDir).filter((name) => !name.includes('-lock'))
  return {
    pristine,
    backup,
    file,
    edit: (name, change) => writeFileSync(file(name), change(readFileSync(file(name), 'utf8'))),
    inspect: () => inspectBackup(backup, { keys: [signingKey(SECRET)], migrations: MIGRATIONS_DIR }, () => {}),
    expectRefused: async (line, options) => {
      const before = present()
      const [said = '', ...more] = await tryRestore(here.dataDir, MADE_NAME, options)
      if (typeof line === 'string') expect(said).toBe(`refused ${line}`)
      else if (line instanceof RegExp) expect(said).toMatch(line)
      else {
        expect(said).toContain(line.part)
        expect(said).toMatch(
          /^refused Integrity validation failed: .*; use an earlier backup or download the archive again$/,
        )
      }
      expect(more).toStrictEqual([])
      expect(present()).toStrictEqual(before)
      expect(readFileSync(here.database).equals(database)).toBe(true)
    },
  }
}
