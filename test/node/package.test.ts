import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { signInAt, startService } from '../support/built/built-service.ts'
import { filesThatTell, tells } from '../support/copies/private-key.ts'
import { davSettings, makeKey, readByAge } from '../support/copies/service.ts'
import { DAV_PASSWORD, DAV_USER, startWebDav } from '../support/copies/webdav.ts'
import { makeTheirs } from '../support/moving-in/meshmonitor.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const dir = mkdtempSync(join(tmpdir(), 'mesh-package-'))
const installed = join(dir, 'node_modules/mesh-monitoring-service')
const run = promisify(execFile)
// The proxies and certificates of this machine's user serve npm here as well.
const env = { ...process.env, PATH: `${join(process.execPath, '..')}:${process.env['PATH']}` }

beforeAll(async () => {
  await run('npm', ['pack', '--silent', '--pack-destination', dir], { cwd: ROOT, env })
  const [archive] = readdirSync(dir).filter((name) => name.endsWith('.tgz'))
  expect(archive).toBe(`mesh-monitoring-service-${manifest.version}.tgz`)
  // Without it npm would install into a folder above that has one.
  writeFileSync(join(dir, 'package.json'), '{}')
  await run('npm', ['install', '--no-audit', '--no-fund', `./${archive}`], { cwd: dir, env })
})
afterAll(() => rmSync(dir, { recursive: true }))

test('the package is at most 30 MB installed, with everything it needs to run and no more', () => {
  const files = readdirSync(join(dir, 'node_modules'), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const bytes = files.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
  expect(bytes).toBeLessThan(30 * 1024 * 1024)
  expect(readdirSync(installed).toSorted()).toStrictEqual(
    expect.arrayContaining(['LICENSE', 'README.md', 'dist', 'drizzle', 'package.json']),
  )
  expect(
    files.filter(({ name }) => /\.(?:ts|tsx|map|c|cc|cpp|gyp)$/.test(name) && !name.endsWith('.d.ts')),
  ).toStrictEqual([])
  expect(existsSync(join(installed, 'dist/THIRD-PARTY-LICENSES.txt'))).toBe(true)
  const { bomFormat, components } = JSON.parse(readFileSync(join(installed, 'dist/sbom.cdx.json'), 'utf8'))
  const names = components.map(({ name }: { name: string }) => name)
  expect([bomFormat, names]).toStrictEqual([
    'CycloneDX',
    expect.arrayContaining(['@node-rs/bcrypt', 'better-sqlite3', 'hono', 'preact', 'serialport', 'zod']),
  ])
  // Installed for the build, but nothing of them ships.
  for (const name of ['@node-rs/argon2', '@oslojs/jwt', 'vite', 'esbuild']) expect(names).not.toContain(name)
  const [hono] = components.filter(({ name }: { name: string }) => name === 'hono')
  expect(hono).toMatchObject({ purl: `pkg:npm/hono@${hono.version}`, hashes: [{ alg: 'SHA-512' }] })
})

test('the list of what ships names what is installed, and the licences of it', () => {
  const { components } = JSON.parse(readFileSync(join(installed, 'dist/sbom.cdx.json'), 'utf8'))
  const listed = components.map(({ name, version, scope }: Record<string, string>) => ({ name, version, scope }))
  const native = readdirSync(join(dir, 'node_modules/@node-rs')).map((name) => {
    const { version } = JSON.parse(readFileSync(join(dir, 'node_modules/@node-rs', name, 'package.json'), 'utf8'))
    return { name: `@node-rs/${name}`, version }
  })
  expect(native.length).toBeGreaterThan(1)
  expect(new Set(components.map((each: Record<string, string>) => each['bom-ref'])).size).toBe(components.length)
  for (const { name, version } of native) {
    expect(listed).toContainEqual({ name, version, scope: name === '@node-rs/bcrypt' ? undefined : 'optional' })
  }
  const texts = readFileSync(join(installed, 'dist/THIRD-PARTY-LICENSES.txt'), 'utf8').split(`${'='.repeat(80)}\n\n`)
  expect(texts.map((text) => text.split('\n')[0] ?? '').toSorted()).toStrictEqual(
    listed
      .filter(({ scope }: { scope?: string }) => scope === undefined)
      .map(({ name, version }: Record<string, string>) => `${name} ${version}`)
      .toSorted(),
  )
})

test('the files of the image are listed without what is for other machines', () => {
  const runtime = join(dir, 'runtime')
  execFileSync('sh', ['scripts/runtime-files.sh', runtime], { cwd: ROOT, env })
  const { components } = JSON.parse(readFileSync(join(runtime, 'dist/sbom.cdx.json'), 'utf8'))
  const native = components.flatMap(({ name }: { name: string }) => (name.startsWith('@node-rs/') ? [name] : []))
  const shipped = readdirSync(join(runtime, 'node_modules/@node-rs')).map((name) => `@node-rs/${name}`)
  expect(native.toSorted()).toStrictEqual(shipped.toSorted())
  expect(components.every((each: object) => !('scope' in each))).toBe(true)
  // Of the database and of serial ports, one binary each.
  const binaries = readdirSync(join(runtime, 'dist/prebuilds'), { recursive: true, encoding: 'utf8' })
  const names = binaries.filter((name) => name.endsWith('.node')).map((name) => name.replace(/.*\//, ''))
  expect(names.toSorted()).toStrictEqual([
    expect.stringMatching(/^@serialport\+bindings-cpp\b/),
    expect.stringContaining(`-${process.arch}.node`),
  ])
})

test('its command starts the service, lists users, and creates and restores a backup', async () => {
  const data = join(dir, 'data')
  const command = join(dir, 'node_modules/.bin/mesh-monitoring-service')
  const cli = async (...args: string[]) =>
    (await run(command, ['cli', ...args], { cwd: dir, env: { ...env, DATA_DIR: data } })).stdout
  mkdirSync(data)

  const service = await startService({ main: command }, { DATA_DIR: data })
  expect((await fetch(`${service.url}/api/health`)).status).toBe(200)
  expect(await (await fetch(service.url)).text()).toContain('<div id="app"')
  expect(await cli('list')).toMatch(/admin +local +admin +active/)
  const name = /\d{4}-\d{2}-\d{2}_\d{6}/.exec(await cli('backup'))?.[0] ?? ''
  expect(await service.stop('SIGTERM')).toBe(0)

  const restored = await startService({ main: command }, { DATA_DIR: data, RESTORE_FROM_BACKUP: name })
  expect(restored.lines.some((line) => line.includes(`rows restored from ${name}`))).toBe(true)
  expect(await restored.stop('SIGTERM')).toBe(0)
})

const WORD = 'three radios on one hill'

/** Runs lines of a shell until one of them starts the service. */
async function runLines(lines: string, cwd: string): Promise<{ url: string; told(): string; stop(): Promise<void> }> {
  const own = { ...env, PORT: '0', HOST: '127.0.0.1', LOG_FORMAT: 'json', LOG_LEVEL: 'debug' }
  // A group of its own, as npx starts more processes than it passes signals to.
  const child = spawn('sh', ['-ec', lines], { cwd, env: own, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'close')
    process.kill(-Number(child.pid), 'SIGTERM')
    await ended
  }
  onTestFinished(stop)
  let told = ''
  const portIn = () => /"Listening".*"port":(\d+)/.exec(told)?.[1]
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (told += String(chunk)))
  await expect.poll(() => portIn() !== undefined || child.exitCode !== null).toBe(true)
  expect(portIn(), told).toBeDefined()
  return { url: `http://127.0.0.1:${portIn()}`, told: () => told, stop }
}

/** What an administrator reads there. */
async function readThere(url: string, paths: readonly string[]): Promise<Buffer[]> {
  const cookie = await signInAt(url, WORD)
  return Promise.all(
    paths.map(async (path) => {
      const answer = await fetch(`${url}/api/${path}`, { headers: { cookie } })
      expect([path, answer.status]).toEqual([path, 200])
      return Buffer.from(await answer.arrayBuffer())
    }),
  )
}

test('a lost machine comes back by three lines from its copy, and its private key was nowhere on it', async () => {
  const dav = await startWebDav()
  onTestFinished(() => dav.close())
  const theirs = makeTheirs()
  onTestFinished(() => theirs.remove())
  const [first, second] = [join(dir, 'first'), join(dir, 'second')]
  for (const machine of [first, second]) mkdirSync(machine)
  const { identity, recipient } = makeKey(theirs.dir)
  const key = /AGE-SECRET-KEY-1\S+/.exec(readFileSync(identity, 'utf8'))?.[0] ?? ''
  expect(tells(key, readFileSync(identity))).toBe(true)
  const program = join(dir, 'node_modules/.bin/mesh-monitoring-service')
  const here = await runLines(`DATA_DIR=data ADMIN_PASSWORD='${WORD}' '${program}'`, first)
  const own = { ...env, DATA_DIR: join(first, 'data') }
  await run(program, ['cli', 'import', 'meshmonitor', theirs.file], { env: own })
  const cookie = await signInAt(here.url, WORD)
  const send = async (method: string, path: string, json?: unknown) => {
    const headers = { cookie, 'content-type': 'application/json' }
    const answer = await fetch(`${here.url}/api/system/${path}`, { method, headers, body: JSON.stringify(json) })
    return { status: answer.status, text: await answer.text() }
  }
  // Somebody takes the wrong one of the two keys.
  const wrong = await send('PUT', 'copies', { recipients: [{ recipient: key, name: 'the safe' }] })
  expect([wrong.status, tells(key, Buffer.from(wrong.text))]).toEqual([400, false])
  expect(await send('PUT', 'copies', { recipients: [{ recipient, name: 'the safe' }] })).toMatchObject({ status: 204 })
  const place = { name: 'cloud', kind: 'webdav', settings: davSettings(dav.front.url) }
  expect(await send('POST', 'copies', place)).toMatchObject({ status: 201 })
  const { backup } = JSON.parse((await send('POST', 'backup')).text)
  await expect
    .poll(async () => JSON.parse((await send('GET', 'copies')).text).copies)
    .toMatchObject([{ name: backup.name, state: 'made' }])
  expect(await send('POST', 'copies/drill')).toMatchObject({ status: 204 })
  const READ = [
    'system/copies',
    'system/backup',
    'system/import',
    'audit?limit=100',
    'audit/export?format=ndjson',
    'settings',
  ]
  const MESH = ['nodes?limit=500', 'messages?limit=100']
  const download = `system/backup/download/${backup.name}`
  const [answers, mesh] = [await readThere(here.url, [...READ, download]), await readThere(here.url, MESH)]
  // What is in the log of the database is in no other file yet.
  const living = filesThatTell(key, join(first, 'data'))
  await here.stop()

  const documented = /^export DATA_DIR[\s\S]+?(?=^```)/m.exec(readFileSync(join(ROOT, 'docs/copies.md'), 'utf8'))?.[0]
  const lines = (documented ?? '')
    .replace(/COPIES_PLACE='[^']+'/, `COPIES_PLACE='dav+${dav.front.url}/hill/'`)
    .replace("COPIES_USER='…'", `COPIES_USER='${DAV_USER}'`)
    .replace("COPIES_PASSWORD='…'", `COPIES_PASSWORD='${DAV_PASSWORD}'`)
    .replace('key.txt', identity)
    .replace(/\d{4}-\d\d-\d\d_\d{6}/, backup.name)
  expect(lines.trim().split('\n')).toHaveLength(3)
  // npx finds the program in the folder above.
  const there = await runLines(lines, second)
  expect(await readThere(there.url, MESH)).toEqual(mesh)
  answers.push(...(await readThere(there.url, READ)))
  const restored = filesThatTell(key, second)
  await there.stop()

  for (const told of [here.told(), there.told(), ...answers]) expect(tells(key, Buffer.from(told))).toBe(false)
  for (const machine of [first, second]) expect(filesThatTell(key, machine).telling).toEqual([])
  for (const { read, telling } of [living, restored]) expect([read > 5, telling]).toEqual([true, []])
  const [[, copy] = []] = dav.files('hill')
  expect(readByAge(identity, copy ?? Buffer.alloc(0))).toContain(`${backup.name}/users.json`)
  expect(filesThatTell(key, dav.root).telling).toEqual([])
})
