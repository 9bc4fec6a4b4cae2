import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { startService } from '../support/built/built-service.ts'

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
