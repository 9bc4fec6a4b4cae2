import { execFile, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN_PASSWORD, SCENARIO_ENV, type Service, signIn } from '../contract/service.ts'
import { programEnv } from '../support/built/built-service.ts'
import { workerSize } from '../support/built/worker-size.ts'
import { makeBackup, makeDataDir, SECRET, seedDatabase } from '../support/backup/backup.ts'
import { comparable, rowsBy, SELECTS, textsOf } from '../support/backup/rows.ts'
import { openDatabase } from '../../src/node/database.ts'
import { freePort } from '../support/servers/free-port.ts'
import { prebuiltConfig } from './prebuilt.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const directory = mkdtempSync(join(tmpdir(), 'mesh-wrangler-'))
const clone = join(directory, 'clone')
const out = join(directory, 'out')
const MIGRATIONS = readdirSync(join(ROOT, 'drizzle'))
  .filter((name) => name.endsWith('.sql'))
  .toSorted()
/** As many migrations as wrangler applies by itself. */
const LATEST = 3
/** What wrangler said about the latest migrations. */
let applied: string
beforeAll(() => {
  // A clone that builds its own pages: other files run at the same time.
  for (const name of ['src', 'scripts', 'wrangler.toml', 'package.json', 'tsconfig.base.json']) {
    cpSync(join(ROOT, name), join(clone, name), { recursive: true })
  }
  for (const name of ['drizzle', 'node_modules']) symlinkSync(join(ROOT, name), join(clone, name))
})
// Once, and all but the latest in one go: wrangler starts a runtime for each migration.
beforeAll(async () => {
  const file = join(directory, 'earlier.sql')
  writeFileSync(file, inOneGo(MIGRATIONS.slice(0, -LATEST)))
  await wrangler('d1', 'execute', 'DB', '--local', '--yes', '--file', file)
  applied = await wrangler('d1', 'migrations', 'apply', 'DB', '--local')
})
// Builds the pages and the worker, as wrangler.toml says; the local run takes them as they are.
beforeAll(async () => {
  await wrangler('deploy', '--dry-run', '--outdir', out)
  writeFileSync(join(clone, 'wrangler.toml'), prebuiltConfig())
})
afterAll(() => rmSync(directory, { recursive: true }))

/** These migrations as one file, as wrangler records them. */
function inOneGo(names: readonly string[]): string {
  const table =
    'create table d1_migrations (id integer primary key autoincrement, name text unique, applied_at timestamp default current_timestamp not null);'
  const all = names.map(
    (name) =>
      `${readFileSync(join(ROOT, 'drizzle', name), 'utf8')};\ninsert into d1_migrations (name) values ('${name}');`,
  )
  return [table, ...all].join('\n')
}

const BIN = join(ROOT, 'node_modules/wrangler/bin/wrangler.js')
const CLI = join(ROOT, 'src/node/cli.ts')
const ENV = {
  ...programEnv(),
  CI: '1',
  HOME: directory,
  NO_COLOR: '1',
  WRANGLER_HIDE_BANNER: 'true',
  WRANGLER_SEND_METRICS: 'false',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
}

/** The output of the command that a user types. */
async function wrangler(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [BIN, ...args], { cwd: clone, env: ENV })
  return stdout
}

test('a backup that was made on Node goes into an empty database, and into no other', async () => {
  const here = makeDataDir()
  seedDatabase(here.database, 2000)
  const store = openDatabase(here.database)
  // Longer than a statement of D1.
  store.sqlite.prepare('update nodes set notes = ? where id = 1').run("it's; 😀\n".repeat(30_000))
  store.sqlite.prepare('update nodes set long_name = ? where id = 1').run('BEGIN TRANSACTION; COMMIT;')
  const expected = await rowsBy((sql) => store.sqlite.prepare(sql).all())
  store.close()
  const name = await makeBackup(here.dataDir)
  const files = join(directory, 'sql')
  const env = { ...ENV, DATA_DIR: here.dataDir, SESSION_SECRET: SECRET }
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, 'edge-restore', name, files], { env })
  here.remove()
  // The migrated database that nobody has used.
  const persisted = join(directory, 'restored')
  cpSync(join(clone, '.wrangler/state'), persisted, { recursive: true })
  const execute = (...args: string[]) => wrangler('d1', 'execute', 'DB', '--local', '--persist-to', persisted, ...args)
  const command = /^\(for .*$/m.exec(stdout)?.[0] ?? ''
  const there = `"${process.execPath}" "${BIN}" d1 execute DB --local --persist-to "${persisted}"`
  const run = command.replace('npx wrangler d1 execute DB --remote', there)
  const { stdout: said } = await promisify(execFile)('sh', ['-c', run], { cwd: clone, env: ENV })
  expect(said).toMatch(/^Restored$/m)
  const answers: { results: unknown[] }[] = JSON.parse(
    await execute('--json', '--command', Object.values(SELECTS).join(';')),
  )
  const restored = Object.keys(SELECTS).map((table, i) => [table, textsOf(answers[i]?.results ?? [])])
  expect(comparable(Object.fromEntries(restored))).toStrictEqual(comparable(expected))
  const left = "select count(*) as n from sqlite_master where type = 'trigger' or name = 'restore_under_way'"
  const [{ results }] = JSON.parse(await execute('--json', '--command', left))
  const [{ results: migrated }] = JSON.parse(
    await wrangler('d1', 'execute', 'DB', '--local', '--json', '--command', left),
  )
  expect(results).toStrictEqual(migrated)
  const [first = ''] = readdirSync(files).toSorted()
  await expect(execute('--yes', '--file', join(files, first))).rejects.toThrow('needs an empty database')
  // One that fails ends the command, and nothing after it runs.
  const failing = promisify(execFile)('sh', ['-c', command.replace('npx', 'false')])
  await expect(failing).rejects.toMatchObject({ code: 1, stdout: '' })
})

test('wrangler applies the migrations, triggers included, and then has none left', async () => {
  for (const name of MIGRATIONS.slice(-LATEST)) expect(applied).toContain(name)
  expect(applied).not.toContain(MIGRATIONS[0])
  expect(await wrangler('d1', 'migrations', 'apply', 'DB', '--local')).toContain('No migrations to apply')
  const query = "select name from sqlite_master where type = 'trigger' order by name"
  const [{ results }] = JSON.parse(await wrangler('d1', 'execute', 'DB', '--local', '--json', '--command', query))
  expect(results).toEqual(
    expect.arrayContaining([{ name: 'audit_log_no_update' }, { name: 'nodes_updated' }, { name: 'users_last_admin' }]),
  )
})

// docs/performance.md explains the sizes. This keeps them from growing unnoticed.
test('what an isolate of the worker starts with is at most 300 KB, compressed, and all of it 450', () => {
  const { start, total } = workerSize(out)
  expect(start).toBeLessThanOrEqual(300_000)
  expect(total).toBeLessThanOrEqual(450_000)
  expect(total).toBeGreaterThan(start)
  // One `import { z }` instead of `import * as z` brings zod's messages in every language: 70 KB.
  expect(readFileSync(join(out, 'parts/start.js'), 'utf8')).not.toMatch(/Ung(ü|\\xFC)ltige Eingabe/)
})

test('a local run takes its secrets from .dev.vars, and restores a lost administrator', async () => {
  const secrets = Object.entries({ ...SCENARIO_ENV, ADMIN_USERNAME: 'anna' })
  writeFileSync(join(clone, '.dev.vars'), secrets.map(([name, value]) => `${name}="${value}"\n`).join(''))
  const url = new URL(`http://127.0.0.1:${await freePort()}`)
  const args = ['dev', '--local', '--ip', url.hostname, '--port', url.port, '--inspector-port', '0']
  const running = spawn(process.execPath, [BIN, ...args], { cwd: clone, env: ENV })
  let said = ''
  for (const stream of [running.stdout, running.stderr]) stream.on('data', (chunk) => (said += String(chunk)))
  const ended = new Promise((resolve) => running.once('exit', resolve))
  try {
    await expect.poll(() => said, { timeout: 60_000 }).toContain('Ready on')
    const service: Service = { url, addressHeader: 'cf-connecting-ip', sql: async () => [], close: async () => {} }
    const admin = await signIn(service, 'anna', ADMIN_PASSWORD)
    expect(await admin.send('GET', '/api/info')).toMatchObject({ status: 200 })
    const { stdout: told } = await promisify(execFile)(process.execPath, [CLI, 'edge-admin', 'anna'])
    const command = /^npx wrangler (.*)$/m.exec(told)?.[1]?.replace('--remote', '--local') ?? ''
    await promisify(execFile)('sh', ['-c', `"$0" "$1" ${command}`, process.execPath, BIN], { cwd: clone, env: ENV })
    expect(await admin.send('GET', '/api/info')).toMatchObject({ status: 401 })
    const back = await signIn(service, 'anna', /password {2}(\w{20})$/m.exec(told)?.[1])
    expect((await back.send('GET', '/api/auth/status')).body).toMatchObject({
      user: { isAdmin: true },
      mustChangePassword: true,
    })
  } finally {
    running.kill()
    await ended
  }
})
