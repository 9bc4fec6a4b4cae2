import type { ListedUser, User } from '../../app/accounts/users/user.ts'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Ctx } from '../../app/base/context.ts'
import { AppError } from '../../app/http/errors.ts'
import { createLog } from '../../app/base/log.ts'
import { formatNodeId } from '../../meshtastic/node-id.ts'
import { confirmClock } from '../../app/base/pacing/clock-watch.ts'
import {
  listRestoredAccess,
  reapplyRestoredAccess,
  type RestoredAccess,
} from '../../app/system/restore/restored-access.ts'
import {
  createUser,
  findUserByName,
  listUsers,
  resetPassword,
  setAdmin,
  usernameSchema,
} from '../../app/accounts/users/users.ts'
import { resetSecondFactor } from '../../app/accounts/factors/factors.ts'
import { forgiveAddresses } from '../../app/accounts/passwords/login-limiter.ts'
import { AUDIT_USAGE, readAuditCommand } from './audit.ts'
import { BACKUP_USAGE, isBackupCommand, runBackupCommand } from '../backup/cli.ts'
import { COPIES_USAGE, readCopiesCommand, runCopiesCommand } from '../backup/copies/cli.ts'
import { consoleContext } from '../console-context.ts'
import { openDatabase, type SqliteStore } from '../database.ts'
import { calmWhileFull } from '../disk/full-log.ts'
import { openReserve } from '../disk/reserve.ts'
import { EDGE_ADMIN_USAGE, explainRecovery } from './edge-admin.ts'
import { readConfig } from '../start/environment.ts'
import { nativePasswordHasher } from '../passwords.ts'
import { type OpenSessions, openSessions } from '../sessions.ts'
import { MAP_USAGE, readMapCommand } from './map.ts'
import { IMPORT_USAGE, readImportCommand } from '../moving-in/cli.ts'
import { readStandbyCommand, STANDBY_USAGE } from './standby.ts'
import { refuseNetwork, StartRefused } from '../start/problems.ts'
import { systemClock } from '../clock.ts'
import { forJournal } from '../supervisor/journal.ts'

const USAGE = `Administration of the database in DATA_DIR from the console. The service may be running.

  list                        all users, with the issuers of the providers that sign them in
  create-admin <username>     a new administrator with a temporary password
  promote <username>          make a user an administrator
  reset-password <username>   a temporary password for a local user; the user's sessions end, and failed sign-ins of
                              the user and of all addresses no longer count
  reset-second-factor <username>
                              remove the second factors and recovery codes of a user who lost them; sessions end
  confirm-clock               confirm that the clock of this machine is right, so that old data is deleted again
  reapply                     list the access that the latest restore gave back to users and tokens
  reapply <id>,<id>…|all      revoke this access again

A standby on a second host:

${STANDBY_USAGE}
Audit log:

${AUDIT_USAGE}
Backups:

${BACKUP_USAGE}${COPIES_USAGE}
Map:

${MAP_USAGE}
History of another program:

${IMPORT_USAGE}
A service on the edge, whose database is not in DATA_DIR:

${EDGE_ADMIN_USAGE}`

type ConsoleCtx = Ctx & { readonly store: SqliteStore }

type Command = {
  readonly run: (ctx: ConsoleCtx, argument: string) => Promise<string>
  readonly argument: 'none' | 'needed' | 'optional'
}

const COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['list', { run: listAll, argument: 'none' }],
  ['create-admin', { run: createAdmin, argument: 'needed' }],
  ['promote', { run: promote, argument: 'needed' }],
  ['reset-password', { run: giveNewPassword, argument: 'needed' }],
  ['reset-second-factor', { run: removeSecondFactor, argument: 'needed' }],
  ['confirm-clock', { run: sayClockIsRight, argument: 'none' }],
  ['reapply', { run: reapply, argument: 'optional' }],
])

function takes({ argument }: Command, given: string): boolean {
  return argument === 'optional' || (given === '') === (argument === 'none')
}

/** Runs one command; returns the exit code: 0 done, 1 refused, 2 not understood. */
export async function runConsole(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  try {
    return await runCommand(args, env)
  } catch (error) {
    if (error instanceof StartRefused) return refuse(error.message)
    throw error
  }
}

async function runCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  // The same mask as in the service.
  process.umask(0o077)
  const [name = '', argument = '', ...more] = args
  if (isBackupCommand(name)) return runBackupCommand(args, env)
  if (name === 'copies') {
    const asked = readCopiesCommand(args.slice(1))
    return asked === null ? explain(COPIES_USAGE, 2) : runCopiesCommand(asked, env)
  }
  if (name === 'audit') {
    const run = readAuditCommand(args.slice(1))
    return run === null ? explain(AUDIT_USAGE, 2) : withDatabase(env, run)
  }
  if (name === 'map') {
    const run = readMapCommand(args.slice(1))
    return run === null ? explain(MAP_USAGE, 2) : withDatabase(env, run)
  }
  if (name === 'import') {
    const run = readImportCommand(args.slice(1))
    return run === null ? explain(IMPORT_USAGE, 2) : withDatabase(env, run)
  }
  const standby = readStandbyCommand(args)
  if (standby !== null) return withDatabase(env, (ctx) => printed(standby(ctx)))
  if (name === 'edge-admin' && argument !== '' && more.length <= 1) return explainEdgeAdmin(argument, more[0] ?? null)
  const command = COMMANDS.get(name)
  if (command === undefined || more.length > 0 || !takes(command, argument)) {
    return explain(USAGE, name === '' || name === 'help' || name === '--help' ? 0 : 2)
  }
  return withDatabase(env, (ctx) => printed(command.run(ctx, argument)))
}

async function printed(answer: Promise<string>): Promise<number> {
  process.stdout.write(await answer)
  return 0
}

async function explainEdgeAdmin(username: string, file: string | null): Promise<number> {
  try {
    process.stdout.write(await explainRecovery(username, file))
    return 0
  } catch (error) {
    if (error instanceof AppError) return refuse(error.message)
    throw error
  }
}

function explain(usage: string, code: number): number {
  process.stderr.write(usage)
  return code
}

/** Runs a function that returns the exit code. */
async function withDatabase(env: NodeJS.ProcessEnv, run: (ctx: ConsoleCtx) => Promise<number>): Promise<number> {
  const parsed = readConfig(env)
  if (!parsed.ok) return refuse(parsed.problems.join('\n'))
  const file = join(parsed.config.DATA_DIR, 'mesh.db')
  if (!existsSync(file)) return refuse(`${file} does not exist; set DATA_DIR to the directory of the service`)
  const forStderr = forJournal(process.stderr.fd, env)
  const log = createLog({
    level: 'warn',
    format: 'pretty',
    now: systemClock.now,
    write: (line, level) => console.error(forStderr(level, line)),
  })
  refuseNetwork(parsed.config, log)
  openReserve({ dataDir: parsed.config.DATA_DIR, log: calmWhileFull(log) }).makeRoom()
  const store = openDatabase(file)
  try {
    const ctx = consoleContext({ config: parsed.config, store, log, passwords: nativePasswordHasher() })
    return await run({ ...ctx, store })
  } catch (error) {
    if (error instanceof AppError) return refuse(error.message)
    throw error
  } finally {
    store.close()
  }
}

function refuse(reason: string): number {
  process.stderr.write(`${forJournal(process.stderr.fd, process.env)('error', reason)}\n`)
  return 1
}

const PAGE = 500

async function listAll(ctx: Ctx): Promise<string> {
  const all: ListedUser[] = []
  for (let total = 1; all.length < total;) {
    const page = await listUsers(ctx, { limit: PAGE, offset: all.length })
    all.push(...page.users)
    total = page.users.length === 0 ? 0 : page.total
  }
  const line = (user: ListedUser) =>
    [
      String(user.id).padStart(6),
      user.username.padEnd(24),
      user.authProvider.padEnd(6),
      (user.isAdmin ? 'admin' : 'user').padEnd(6),
      (user.isActive ? 'active' : 'inactive').padEnd(9),
      user.lastLoginAt === null ? 'never signed in' : new Date(user.lastLoginAt).toISOString(),
      // A restored backup may hold anything, and a terminal obeys control characters.
      ...user.links.map(({ issuer }) => issuer.replaceAll(/\p{C}/gu, '')),
    ].join(' ')
  return all.map((user) => `${line(user)}\n`).join('')
}

async function sayClockIsRight({ store, now }: Ctx): Promise<string> {
  await confirmClock(store, now())
  return `Confirmed: it is ${new Date(now()).toISOString()}. A running service accepts it within a minute.\n`
}

async function createAdmin(ctx: Ctx, username: string): Promise<string> {
  if (ctx.config.DISABLE_LOCAL_AUTH) {
    throw new AppError(
      'local_auth_disabled',
      'DISABLE_LOCAL_AUTH is true: sign in once by OpenID Connect, then promote',
    )
  }
  if (!usernameSchema.safeParse(username).success) {
    throw new AppError('invalid_request', 'A username is 1–64 letters, digits and . _ - @')
  }
  const { password } = await createUser(ctx, { username, isAdmin: true })
  if (password === null) throw new Error('a user was created without a password')
  return temporaryPassword(username, password)
}

async function promote(ctx: Ctx, username: string): Promise<string> {
  const user = await userNamed(ctx, username)
  await setAdmin(ctx, user.id, true)
  return `${user.username} is an administrator\n`
}

async function giveNewPassword(ctx: ConsoleCtx, username: string): Promise<string> {
  const user = await userNamed(ctx, username)
  const sessions = await sessionsOfService(ctx)
  const inService = sessions === null ? ctx : { ...ctx, sessions: sessions.store }
  try {
    const password = await resetPassword(inService, user.id)
    // Failed sign-ins also count against the address that they came from.
    await forgiveAddresses(inService)
    return temporaryPassword(user.username, password)
  } finally {
    await sessions?.close()
  }
}

async function removeSecondFactor(ctx: ConsoleCtx, username: string): Promise<string> {
  const user = await userNamed(ctx, username)
  const sessions = await sessionsOfService(ctx)
  try {
    await resetSecondFactor(sessions === null ? ctx : { ...ctx, sessions: sessions.store }, user.id)
    return `${user.username} signs in without a second factor\n`
  } finally {
    await sessions?.close()
  }
}

/** Null if the store is unreachable: the password is still reset. */
async function sessionsOfService({ config, store, log }: ConsoleCtx): Promise<OpenSessions | null> {
  return openSessions(config, store, log).catch((error: unknown) => {
    log.warn('Failed sign-ins still count: the session store does not answer', { error })
    return null
  })
}

const IDS = /^\d{1,9}(?:,\d{1,9})*$/

async function reapply(ctx: Ctx, chosen: string): Promise<string> {
  const { backup, restoredAccess } = await listRestoredAccess(ctx.store)
  if (backup === null) return 'Nothing waits for a decision\n'
  if (chosen === '')
    return `Done since ${backup} was made, and undone by its restore:\n${restoredAccess.map(restoredAccessLine).join('')}`
  if (chosen !== 'all' && !IDS.test(chosen)) throw new AppError('invalid_request', 'Expected IDs such as 1,2, or all')
  const ids = chosen === 'all' ? 'all' : [...new Set(chosen.split(',').map(Number))]
  const { reapplied, refused } = await reapplyRestoredAccess(ctx, ids)
  const done = restoredAccess
    .filter(({ id }) => reapplied.includes(id))
    .map((one) => `Reapplied: ${restoredAccessLine(one)}`)
  const not = refused.map(({ id, detail }) => `Not reapplied: ${id}, ${detail}\n`)
  return [...done, ...not].join('')
}

function restoredAccessLine({ id, action, username, what: name, token, hiddenNode, at, by }: RestoredAccess): string {
  const ofNobody = action === 'unknown' ? 'the replaced database could not be read' : 'public access'
  const whose = username ?? (hiddenNode === null ? ofNobody : formatNodeId(hiddenNode))
  const named = name === null ? action : `${action} ${name}`
  const what = token === null ? named : `${action} ${token.name} (${token.prefix}…)`
  const when = at === null ? '' : ` at ${new Date(at).toISOString()}`
  return `${String(id).padStart(4)}  ${whose}: ${what}${when}${by === null ? '' : ` by ${by}`}\n`
}

async function userNamed(ctx: Ctx, username: string): Promise<User> {
  const user = await findUserByName(ctx.store, username)
  if (user === null) throw new AppError('user_not_found', `There is no user "${username}"`)
  return user
}

function temporaryPassword(username: string, password: string): string {
  return `Sign in as ${username} with the temporary password  ${password}\n`
}
