import { execFile } from 'node:child_process'
import { cpSync, existsSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openBackups } from '../../../src/node/backup/backups.ts'
import { inspectBackup } from '../../../src/node/backup/inspect.ts'
import { recoverRestore, restoreAtStart, safetyCopyOf } from '../../../src/node/backup/restore/restore.ts'
import { readStage } from '../../../src/node/backup/restore/stage.ts'
import { forgetBegun, performStaged } from '../../../src/node/backup/restore/staged.ts'
import { MIGRATIONS_DIR, openDatabase } from '../../../src/node/database.ts'
import { buildProgram } from '../../support/built/built-program.ts'
import { type Built, buildService } from '../../support/built/built-service.ts'
import {
  backupOptions,
  contentOf,
  keptLog,
  MADE_NAME,
  makeBackup,
  makeDataDir,
  restoreOptions,
  seedDatabase,
} from '../../support/backup/backup.ts'

/** Number of processes at a time. */
const ABREAST = 3

let built: Built
let program: string
let here: ReturnType<typeof makeDataDir>
let base: string
let before: Record<string, unknown[]>
let after: Record<string, unknown[]>

// A database that has changed since its backup, and a safety copy of an earlier restore.
beforeAll(async () => {
  built = buildService()
  program = await buildProgram(built, 'backup-crash')
  here = makeDataDir()
  seedDatabase(here.database, 300)
  after = contentOf(here.database)
  await makeBackup(here.dataDir)
  const store = openDatabase(here.database)
  store.sqlite.exec("update settings set value = 'new'; delete from telemetry where t > 100")
  store.close()
  before = contentOf(here.database)
  base = join(here.dataDir, 'base')
  cpSync(here.database, join(base, 'mesh.db'))
  cpSync(here.database, join(base, 'mesh.db.before-restore'))
  renameSync(here.backups, join(base, 'system-backups'))
})
afterAll(() => {
  here.remove()
})

/** Runs a process that kills itself before step `killAt`. Returns its steps if it ran to the end. */
function crash(mode: string, dataDir: string, killAt: number): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [program, mode, dataDir, String(killAt)], (error, out, err) => {
      if (child.signalCode === 'SIGKILL') resolve(null)
      else if (error === null) resolve(Number(out))
      else reject(new Error(err))
    })
  })
}

// Each test starts about sixty processes.
vi.setConfig({ testTimeout: 240_000 })

/** One crash before each step, each in its own data directory, until a run ends without a crash. */
async function atEachStep(mode: string, check: (dataDir: string, step: number) => Promise<void>): Promise<number> {
  for (let from = 1; ; from += ABREAST) {
    let last: number | null = null
    const steps = Array.from({ length: ABREAST }, (_, i) => from + i)
    await Promise.all(
      steps.map(async (step) => {
        const dataDir = join(here.dataDir, `${mode}-${step}`)
        cpSync(base, dataDir, { recursive: true })
        const done = await crash(mode, dataDir, step)
        if (done !== null) last = done
        await check(dataDir, step)
      }),
    )
    if (last !== null) return last
  }
}

async function listed(dataDir: string): Promise<string[]> {
  const all = await openBackups(backupOptions(dataDir)).list()
  return all.map(({ name }) => name)
}

/** The problems of a backup, except for tables that the test program leaves out on purpose. */
function problemsOf(dataDir: string, name: string): string[] {
  const against = { keys: [], migrations: MIGRATIONS_DIR }
  const { problems } = inspectBackup(join(dataDir, 'system-backups', name), against, () => {})
  return problems.filter((problem) => !/^table \w+ is missing$/.test(problem))
}

test('killed before any step of a backup: no partial backup is ever listed, and nothing is left of it', async () => {
  let whole = 0
  const steps = await atEachStep('backup', async (dataDir) => {
    const names = await listed(dataDir)
    expect(names.slice(-1)).toStrictEqual([MADE_NAME])
    for (const name of names) {
      expect(problemsOf(dataDir, name)).toStrictEqual([])
    }
    expect(readdirSync(join(dataDir, 'system-backups')).toSorted()).toStrictEqual(names.toSorted())
    expect(contentOf(join(dataDir, 'mesh.db'))).toStrictEqual(before)
    whole += names.length - 1
  })
  expect(steps).toBeGreaterThan(20)
  expect(whole).toBeGreaterThan(1)
})

test('killed before any step of a deletion: the backup is complete or gone', async () => {
  const seen = new Set<number>()
  const steps = await atEachStep('remove', async (dataDir) => {
    const names = await listed(dataDir)
    seen.add(names.length)
    expect(readdirSync(join(dataDir, 'system-backups'))).toStrictEqual(names)
    for (const name of names) {
      expect(problemsOf(dataDir, name)).toStrictEqual([])
    }
  })
  expect(steps).toBeGreaterThanOrEqual(5)
  expect(seen).toStrictEqual(new Set([0, 1]))
})

test('killed before any step of a restore: the database is completely the old one or the new one', async () => {
  const seen = new Set<string>()
  const steps = await atEachStep('restore', async (dataDir, step) => {
    const database = join(dataDir, 'mesh.db')
    const options = restoreOptions(dataDir)
    recoverRestore(options)
    expect(existsSync(join(dataDir, '.restoring'))).toBe(false)
    const isNew = existsSync(join(dataDir, '.restore-completed'))
    seen.add(isNew ? 'new' : 'old')
    const store = openDatabase(database)
    expect(store.sqlite.pragma('integrity_check', { simple: true })).toBe('ok')
    expect(store.sqlite.prepare("select count(*) from audit_log where action = 'system_restored'").pluck().get()).toBe(
      isNew ? 1 : 0,
    )
    store.close()
    expect([step, contentOf(database)]).toStrictEqual([step, isNew ? after : before])
    // The next start performs the restore or has already done so; the replaced database is kept in either case.
    const { log, lines } = keptLog()
    await restoreAtStart({ ...options, log }, MADE_NAME)
    expect(lines).toStrictEqual([expect.stringMatching(isNew ? /^warn Restore already/ : /^info Restore completed/)])
    expect(contentOf(database)).toStrictEqual(after)
    expect(contentOf(safetyCopyOf(database))).toStrictEqual(before)
  })
  expect(steps).toBeGreaterThan(20)
  expect(seen).toStrictEqual(new Set(['old', 'new']))
})

test('killed before any step of staging a restore: it is staged completely or not at all', async () => {
  const seen = new Set<boolean>()
  const steps = await atEachStep('stage', async (dataDir) => {
    const isStaged = existsSync(join(dataDir, '.restore-staged'))
    seen.add(isStaged)
    expect(readStage(dataDir)?.name).toBe(isStaged ? MADE_NAME : undefined)
    const failed = await performStaged(restoreOptions(dataDir), false)
    expect(failed).toBeNull()
    expect(content(join(dataDir, 'mesh.db'))).toStrictEqual(isStaged ? after : before)
  })
  expect(steps).toBeGreaterThanOrEqual(5)
  expect(seen).toStrictEqual(new Set([true, false]))
})

test('killed before any step of a staged restore: it is done completely or told as failed, and never begun twice', async () => {
  const seen = new Set<string>()
  const steps = await atEachStep('staged', async (dataDir, step) => {
    const database = join(dataDir, 'mesh.db')
    const wasBegun = !existsSync(join(dataDir, '.restore-staged'))
    const options = restoreOptions(dataDir)
    recoverRestore(options)
    const failed = await performStaged(options, false)
    seen.add(`${wasBegun ? 'begun' : 'staged'} ${failed === null ? 'new' : 'old'}`)
    expect([step, content(database)]).toStrictEqual([step, failed === null ? after : before])
    if (failed !== null) {
      expect(failed).toMatchObject({
        name: MADE_NAME,
        stagedBy: 'root',
        error: expect.stringMatching(/ended in the middle/),
      })
      // As long as nobody has recorded it, each start says so again.
      expect(await performStaged(options, false)).toStrictEqual(failed)
      forgetBegun(dataDir)
    }
    expect(await performStaged(options, false)).toBeNull()
    expect([step, content(database)]).toStrictEqual([step, failed === null ? after : before])
    expect(readdirSync(dataDir).filter((name) => /^\.restor(?!e-completed)/.test(name))).toStrictEqual([])
  })
  expect(steps).toBeGreaterThan(20)
  expect(seen).toStrictEqual(new Set(['staged new', 'begun old', 'begun new']))
})

/** Without the result that a staged restore leaves. */
function content(database: string): Record<string, unknown[]> {
  const all = contentOf(database)
  const isResult = (row: unknown) => Object(row)[0] === 'backup.restoreOutcome'
  return { ...all, settings: all['settings']?.filter((row) => !isResult(row)) ?? [] }
}
