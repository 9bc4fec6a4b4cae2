import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../../app/config/config.ts'
import { AppError } from '../../app/http/errors.ts'
import { createLog, type Log } from '../../app/base/log.ts'
import { createBackup } from '../../app/system/backup/backups.ts'
import { MIGRATIONS_DIR, openDatabase } from '../database.ts'
import { readConfig } from '../start/environment.ts'
import { refuseNetwork, StartRefused } from '../start/problems.ts'
import { keptSessionSecret } from '../start/secret.ts'
import { openBackups } from './backups.ts'
import { BackupDamage, RestoreRefused } from '../../app/system/backup/format/damage.ts'
import { backupsDirectory, hasBackup } from './folder/directory.ts'
import { diskFiles } from './folder/files.ts'
import { inspectBackup } from './inspect.ts'
import { signingKey } from '../../app/system/backup/format/manifest.ts'
import { createProgressBar, type ProgressBar } from './progress-bar.ts'
import { writeForD1 } from './restore/for-d1.ts'
import { recoverRestore, restoreBackup } from './restore/restore.ts'
import { withdrawStage } from './restore/stage.ts'
import { backupOptions, databaseFile, restoreOptions } from './service.ts'
import { systemClock } from '../clock.ts'
import { forJournal } from '../supervisor/journal.ts'

export const BACKUP_USAGE = `  backup                      create a backup
  verify <name>               read all of a backup and list its problems
  restore <name>              replace the database with a backup; the service must not be running
  edge-restore <name> <directory>
                              write a backup as files of SQL, for an empty database of a service on the edge
`

type Tools = { readonly config: Config; readonly log: Log; readonly bar: ProgressBar }

type Command = (tools: Tools, name: string, directory: string) => Promise<number>

const COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['backup', backup],
  ['verify', verify],
  ['restore', restore],
  ['edge-restore', restoreOnEdge],
])

/** Whether `runBackupCommand` knows the command. */
export function isBackupCommand(name: string): boolean {
  return COMMANDS.has(name)
}

/**
 * Runs `backup`, `verify <name>`, `restore <name>` or `edge-restore <name> <directory>` on DATA_DIR. Returns the exit
 * code: 0 done, 1 refused or damaged, 2 not understood. The result is on standard output; log and progress bar are on
 * standard error.
 */
export async function runBackupCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const [command = '', name = '', directory = '', ...more] = args
  const run = COMMANDS.get(command)
  const isWhole = (name === '') === (command === 'backup') && (directory === '') === (command !== 'edge-restore')
  if (run === undefined || more.length > 0 || !isWhole) {
    process.stderr.write(BACKUP_USAGE)
    return 2
  }
  const parsed = readConfig(env)
  if (!parsed.ok) return refuse(parsed.problems.join('\n'))
  const bar = createProgressBar(process.stderr)
  const forStderr = forJournal(process.stderr.fd, env)
  const log = createLog({
    level: 'warn',
    format: 'pretty',
    now: systemClock.now,
    write: (line, level) => bar.print(forStderr(level, line)),
  })
  try {
    return await run({ config: withKnownSecret(parsed.config), log, bar }, name, directory)
  } catch (error) {
    if (
      error instanceof AppError ||
      error instanceof RestoreRefused ||
      error instanceof StartRefused ||
      error instanceof BackupDamage
    ) {
      return refuse(error.message)
    }
    throw error
  } finally {
    bar.end()
  }
}

// Reading a directory must not create a secret in it.
function withKnownSecret(config: Config): Config {
  if (config.SESSION_SECRET.length > 0 || !existsSync(join(config.DATA_DIR, 'session-secret'))) return config
  return { ...config, SESSION_SECRET: [keptSessionSecret(config.DATA_DIR)] }
}

function refuse(reason: string): number {
  process.stderr.write(`${forJournal(process.stderr.fd, process.env)('error', reason)}\n`)
  return 1
}

async function backup({ config, log, bar }: Tools): Promise<number> {
  const file = databaseFile(config)
  if (!existsSync(file)) return refuse(`${file} does not exist; set DATA_DIR to the directory of the service`)
  refuseNetwork(config, log)
  const store = openDatabase(file)
  const backups = openBackups(backupOptions(config, log))
  const ticker = setInterval(() => bar.show(backups.running()?.rows ?? 0, null), 200)
  try {
    const port = { ...backups, nextRun: () => null, reschedule: () => {} }
    const context = { store, now: systemClock.now, ip: null, requestId: null, viewer: null, backups: port }
    const made = await createBackup(context, 'manual')
    bar.end()
    if (made === null) throw new Error('the backup goes on without the command')
    const { name, tables, rows } = made
    process.stdout.write(`${join(backupsDirectory(config.DATA_DIR), name)}: ${tables} tables, ${rows} rows\n`)
    return 0
  } finally {
    clearInterval(ticker)
    store.close()
  }
}

const SIGNATURES = {
  own: "made with this service's secret",
  foreign: 'made with another secret, unknown to this service',
  none: 'none',
} as const

async function verify({ config, bar }: Tools, name: string): Promise<number> {
  const directory = backupsDirectory(config.DATA_DIR)
  if (!hasBackup(directory, name)) return refuse(`There is no backup ${name} in ${directory}`)
  const against = { keys: config.SESSION_SECRET.map(signingKey), migrations: MIGRATIONS_DIR }
  const { ok, tables, rows, problems, signature } = inspectBackup(join(directory, name), against, bar.show)
  bar.end()
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  process.stdout.write(`Signature: ${SIGNATURES[signature]}\n`)
  process.stdout.write(`${name}: ${ok ? 'sound' : 'DAMAGED'}, ${tables} tables, ${rows} rows\n`)
  return ok ? 0 : 1
}

async function restore({ config, log, bar }: Tools, name: string): Promise<number> {
  refuseNetwork(config, log)
  const options = { ...restoreOptions(config, log), onProgress: bar.show }
  recoverRestore(options)
  const { tables, rows } = await restoreBackup(options, name)
  bar.end()
  // Otherwise the next start would replace what has just been restored.
  if (await withdrawStage(diskFiles, config.DATA_DIR, async () => {})) {
    process.stdout.write('The restore that was staged on the page no longer takes place\n')
  }
  process.stdout.write(`Restore completed: ${tables} tables, ${rows} rows restored from ${name}\n`)
  return 0
}

async function restoreOnEdge({ config, log, bar }: Tools, name: string, directory: string): Promise<number> {
  const options = { ...restoreOptions(config, log), onProgress: bar.show }
  const { tables, rows, files } = await writeForD1(options, name, directory)
  bar.end()
  process.stdout
    .write(`${tables} tables and ${rows} rows of ${name} are in ${files.length} files. Run this in the folder of wrangler.toml, with
the id of a new database in it, to which the migrations were applied:

(for file in '${resolve(directory).replaceAll("'", String.raw`'\''`)}'/*.sql; do npx wrangler d1 execute DB --remote --yes --file "$file" || exit 1; done) && echo Restored

If one of them fails, run it again. Once it says "Restored", delete the files: they contain all that the backup contains.
`)
  return 0
}
