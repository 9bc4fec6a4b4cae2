import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { openDatabase } from '../../../src/node/database.ts'
import { buildProgram } from '../../support/built/built-program.ts'
import {
  buildService,
  type Built,
  runCli,
  runToEnd,
  type Service,
  signInAt,
  startService,
} from '../../support/built/built-service.ts'
import {
  contentOf,
  fingerprint,
  makeBackup,
  makeDataDir,
  seedDatabase,
  SECRET,
  tryRestore,
} from '../../support/backup/backup.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const TOKEN = `mm_${'x'.repeat(43)}`

let built: Built
let cliFile: string
beforeAll(async () => {
  built = buildService()
  cliFile = await buildProgram(built, 'backup-cli')
})

let here: ReturnType<typeof makeDataDir>
beforeEach(() => {
  here = makeDataDir()
  seedDatabase(here.database)
})
afterEach(async () => {
  for (const service of running.splice(0)) if (service.process.exitCode === null) await service.stop('SIGKILL')
  here.remove()
})

const env = (more: Record<string, string> = {}) => ({
  DATA_DIR: here.dataDir,
  SESSION_SECRET: SECRET,
  TZ: 'UTC',
  ...more,
})

const running: Service[] = []
async function start(more: Record<string, string> = {}): Promise<Service> {
  const service = await startService(built, env(more))
  running.push(service)
  return service
}

/** Level and message of each log line. */
function messages(lines: readonly string[]): string[] {
  return lines
    .filter((line) => line.startsWith('{'))
    .map((line) => {
      const { level, message } = Object(JSON.parse(line))
      return `${level} ${message}`
    })
}

async function refusedStart(name: string): Promise<{ code: number | null; lines: string[] }> {
  const { code, out } = await runToEnd(built, env({ RESTORE_FROM_BACKUP: name }))
  return { code, lines: messages(out.split('\n')) }
}

const cli = (...args: string[]) => runCli(cliFile, args, env())

test('RESTORE_FROM_BACKUP restores once, and says so; a running service is not restored', async () => {
  const name = await makeBackup(here.dataDir)
  const before = contentOf(here.database)
  const store = openDatabase(here.database)
  store.sqlite.exec("delete from messages; update settings set value = '1'")
  store.close()
  const first = await start({ RESTORE_FROM_BACKUP: name })
  const [line] = messages(first.lines)
  expect(line).toMatch(/^info Restore completed: \d+ tables, \d+ rows restored from 2026-01-15_120000$/)
  const refused = expect.stringMatching(/^Restore failed: .* is in use; stop the service first\n$/)
  expect(await cli('restore', name)).toStrictEqual({ code: 1, out: '', err: refused })
  expect(await first.stop('SIGTERM')).toBe(0)
  expect(contentOf(here.database)).toStrictEqual(before)
  const second = await start({ RESTORE_FROM_BACKUP: name })
  expect(messages(second.lines)[0]).toBe(
    `warn Restore already completed: ${name} (delete ${here.dataDir}/.restore-completed to restore it again)`,
  )
  expect(await second.stop('SIGTERM')).toBe(0)
})

test('a refused restore stops the start with exit code 1 and one line', async () => {
  const name = await makeBackup(here.dataDir)
  const users = join(here.backups, name, 'users.json')
  rmSync(users)
  const before = fingerprint(here.dataDir)
  const damaged = 'error Integrity validation failed: users.json'
  const advice = '; use an earlier backup or download the archive again'
  expect(await refusedStart(name)).toStrictEqual({ code: 1, lines: [`${damaged} is missing${advice}`] })
  execFileSync('mkfifo', [users])
  expect(await refusedStart(name)).toStrictEqual({ code: 1, lines: [`${damaged} is not a regular file${advice}`] })
  rmSync(users)
  const backups = `${here.dataDir}/system-backups`
  expect(await refusedStart('../..')).toStrictEqual({
    code: 1,
    lines: [`error Backup directory not found: ${backups}/../..; use a directory name listed in ${backups}`],
  })
  expect(fingerprint(here.dataDir)).toStrictEqual(before)
})

/** A request of the first administrator. */
async function send(service: Service, method: string, path: string): Promise<Response> {
  const headers = { cookie: await signInAt(service.url, ADMIN_PASSWORD), origin: service.url }
  return fetch(`${service.url}/api${path}`, { method, headers })
}

async function stateOf(service: Service): Promise<Record<string, unknown>> {
  return Object(await (await send(service, 'GET', '/system/restore')).json())
}

/** A service with an administrator, one backup, and a setting that was changed after it. */
async function startedWithBackup(more: Record<string, string>): Promise<{ service: Service; name: string }> {
  rmSync(here.database)
  const service = await start({ ADMIN_PASSWORD, ...more })
  const made = await send(service, 'POST', '/system/backup')
  const { backup } = Object(await made.json())
  const store = openDatabase(here.database)
  store.sqlite.exec("insert into settings (key, value, updated_at) values ('telemetryRetentionDays', '7', 1)")
  store.close()
  return { service, name: backup.name }
}

function isChanged(): boolean {
  const store = openDatabase(here.database)
  const found = store.sqlite.prepare("select 1 from settings where key = 'telemetryRetentionDays'").get()
  store.close()
  return found !== undefined
}

const stageIn = (service: Service, name: string) => send(service, 'POST', `/system/backup/${name}/restore`)

test('a restore that is staged in a running service ends it for its supervisor, and the next start performs it once', async () => {
  const { service, name } = await startedWithBackup({ RESTART_BY: 'supervisor' })
  const ended = once(service.process, 'exit')
  expect((await stageIn(service, name)).status).toBe(202)
  expect(await ended).toStrictEqual([75, null])
  expect(isChanged()).toBe(true)
  const next = await start({ ADMIN_PASSWORD })
  expect(messages(next.lines)).toContainEqual(expect.stringMatching(/^info Restore completed: .* restored from /))
  expect(isChanged()).toBe(false)
  expect(await stateOf(next)).toMatchObject({ staged: null, outcome: { name, stagedBy: 'admin', error: null } })
  expect(await next.stop('SIGTERM')).toBe(0)
  const third = await start({ ADMIN_PASSWORD })
  expect(messages(third.lines).filter((line) => /Restore/.test(line))).toStrictEqual([])
})

test('a staged restore survives kill -9; a backup that was damaged meanwhile is refused, and the service runs on', async () => {
  const { service, name } = await startedWithBackup({ RESTART_BY: 'hand' })
  expect(await (await stageIn(service, name)).json()).toMatchObject({ restartBy: 'hand' })
  expect(await service.stop('SIGKILL')).toBeNull()
  const users = join(here.backups, name, 'users.json')
  const intact = readFileSync(users)
  writeFileSync(users, intact.toString().replace('admin', 'nimda'))
  const next = await start({ ADMIN_PASSWORD, RESTART_BY: 'hand' })
  const reason = 'Integrity validation failed: users.json'
  expect(messages(next.lines)).toContainEqual(expect.stringContaining(`The staged restore was not done: ${reason}`))
  expect(await stateOf(next)).toMatchObject({
    staged: null,
    outcome: { name, stagedBy: 'admin', error: expect.stringContaining(reason) },
  })
  expect(isChanged()).toBe(true)
  writeFileSync(users, intact)
  expect((await stageIn(next, name)).status).toBe(202)
  expect(await next.stop('SIGKILL')).toBeNull()
  const last = await start({ ADMIN_PASSWORD })
  expect(await stateOf(last)).toMatchObject({ outcome: { name, error: null } })
  expect(isChanged()).toBe(false)
})

test('a restore at the console takes the place of a staged one', async () => {
  const { service, name } = await startedWithBackup({ RESTART_BY: 'hand' })
  await stageIn(service, name)
  expect(await service.stop('SIGTERM')).toBe(0)
  expect(await cli('restore', name)).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^The restore that was staged on the page no longer takes place\nRestore completed: /),
  })
  const next = await start({ ADMIN_PASSWORD })
  expect(messages(next.lines).filter((line) => /Restore/.test(line))).toStrictEqual([])
})

test('a client that stops reading a download leaves no file open', async () => {
  const store = openDatabase(here.database)
  const hash = createHash('sha256').update(TOKEN).digest('hex')
  store.sqlite.exec(`update api_tokens set scopes = '["backup"]', token_hash = '${hash}'`)
  store.sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 400000)
    insert into telemetry (node_id, metric, t, v) select n, n % 7, abs(random()) / 1000000, random() / 3.0 from i`)
  store.close()
  const name = await makeBackup(here.dataDir)
  const service = await start()
  const openFiles = () =>
    readdirSync(`/proc/${service.process.pid}/fd`).flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/${service.process.pid}/fd/${fd}`)].filter((path) => path.includes('system-backups'))
      } catch {
        return []
      }
    })
  const url = `${service.url}/api/system/backup/download/${name}`
  const headers = { authorization: `Bearer ${TOKEN}` }
  const half = request(url, { headers }).end()
  const [answer] = await once(half, 'response')
  expect(answer.statusCode).toBe(200)
  await once(answer, 'readable')
  // The biggest table waits for the reader without blocking the service.
  const healthy = async () => expect((await fetch(`${service.url}/api/health`)).status).toBe(200)
  while (!openFiles().some((path) => path.endsWith('telemetry.json'))) await healthy()
  half.destroy()
  while (openFiles().length > 0) await healthy()
  const whole = await fetch(url, { headers })
  const listing = execFileSync('tar', ['-tzv'], { input: new Uint8Array(await whole.arrayBuffer()) }).toString()
  const bytes = readFileSync(join(here.backups, name, 'telemetry.json')).length
  expect(listing).toMatch(new RegExp(`^-rw------- .* ${bytes} .* ${name}/telemetry.json$`, 'm'))
  expect(await service.stop('SIGTERM')).toBe(0)
})

test('the command line backs up, verifies and restores a stopped service', async () => {
  const before = contentOf(here.database)
  const made = await cli('backup')
  expect(made).toMatchObject({ code: 0, err: '' })
  const [, name = ''] = /system-backups\/(\S+): \d+ tables, \d+ rows\n$/.exec(made.out) ?? []
  expect(await cli('verify', name)).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Signature: made with this service's secret\n\S+: sound, \d+ tables, \d+ rows\n$/),
  })
  const store = openDatabase(here.database)
  store.sqlite.exec('delete from telemetry')
  store.close()
  expect(await cli('restore', name)).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Restore completed: \d+ tables, \d+ rows restored from /),
    err: '',
  })
  expect(statSync(here.database).mode & 0o777).toBe(0o600)
  expect(contentOf(here.database)).toStrictEqual(before)
  rmSync(join(here.backups, name, 'nodes.json'))
  expect(await cli('verify', name)).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^nodes\.json is missing\nSignature: .*\n\S+: DAMAGED/),
  })
  expect(await cli('restore', name)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^Integrity validation failed: /),
  })
  expect(contentOf(here.database)).toStrictEqual(before)
})

test.each([
  [['verify'], 2, 'verify <name>'],
  [['backup', 'more'], 2, 'verify <name>'],
  [['restore', 'a', 'b'], 2, 'verify <name>'],
  [['verify', '../x'], 1, 'There is no backup ../x'],
  [['restore', '../x'], 1, 'Backup directory not found: '],
])('the command line refuses %j with %i', async (args, code, reason) => {
  expect(await cli(...args)).toMatchObject({ code, out: '', err: expect.stringContaining(reason) })
})

/** A file system of that many bytes in place of a directory, or false where mounting is not allowed. */
function mountSmall(path: string, bytes: number): boolean {
  mkdirSync(path, { recursive: true })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', path], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

test('a disk that is really full ends a backup and a restore with a clear message, and nothing is lost', async ({
  skip,
}) => {
  const name = await makeBackup(here.dataDir)
  const source = here
  here = makeDataDir()
  const store = openDatabase(source.database)
  store.sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 60000)
    insert into telemetry (node_id, metric, t, v) select n, 1, 1795264464095 + n, n / 7.0 from i`)
  store.close()
  const big = await makeBackup(source.dataDir, { now: () => Date.UTC(2026, 0, 16) })
  const { size } = statSync(join(source.backups, big, 'telemetry.json'))
  // Too small for the database and its backup, and for the backup and a restored database.
  if (!mountSmall(here.dataDir, statSync(source.database).size + Math.floor(size * 0.75))) {
    source.remove()
    skip('mounting needs root')
  }
  try {
    cpSync(source.database, here.database)
    cpSync(join(source.backups, name), join(here.backups, name), { recursive: true })
    const before = fingerprint(here.backups)
    const refused = await cli('backup')
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('no space is left on the device') })
    expect(fingerprint(here.backups)).toStrictEqual(before)
    expect(contentOf(here.database)).toStrictEqual(contentOf(source.database))
    rmSync(here.database)
    cpSync(join(source.backups, big), join(here.backups, big), { recursive: true })
    const failed = await cli('restore', big)
    expect(failed).toMatchObject({
      code: 1,
      err: 'Restore failed: no space is left on the device; the database is as it was\n',
    })
    expect(existsSync(join(here.dataDir, '.restoring'))).toBe(false)
    expect(existsSync(here.database)).toBe(false)
  } finally {
    execFileSync('umount', ['-l', here.dataDir])
    source.remove()
  }
})

test('at any step of a restore, a full disk gives one line and leaves the database unchanged', async ({ skip }) => {
  const name = await makeBackup(here.dataDir)
  const source = here
  here = makeDataDir()
  const before = contentOf(source.database)
  if (!mountSmall(here.dataDir, 4 * 1024 * 1024)) {
    source.remove()
    skip('mounting needs root')
  }
  const filler = join(here.dataDir, 'filler')
  const refusals = new Set<string>()
  try {
    cpSync(source.database, here.database)
    cpSync(join(source.backups, name), join(here.backups, name), { recursive: true })
    for (let spare = 0, isDone = false; !isDone; spare += 32 * 1024) {
      rmSync(filler, { force: true })
      for (const suffix of ['-wal', '-shm']) rmSync(here.database + suffix, { force: true })
      const { bavail, bsize } = statfsSync(here.dataDir)
      writeFileSync(filler, Buffer.alloc(bavail * bsize - spare))
      const [last = ''] = (await tryRestore(here.dataDir, name)).slice(-1)
      isDone = last.startsWith('info Restore completed: ')
      if (!isDone) refusals.add(last)
      expect(existsSync(join(here.dataDir, '.restoring'))).toBe(false)
      rmSync(filler)
      expect(contentOf(here.database)).toStrictEqual(before)
    }
  } finally {
    execFileSync('umount', ['-l', here.dataDir])
    source.remove()
  }
  const clear =
    /^refused Restore failed: (?:no space is left on the device|the disk is full or broken); the database is as it was$/
  expect(refusals.size).toBeGreaterThan(0)
  for (const line of refusals) expect(line).toMatch(clear)
})
