import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
  expect(archive).toMatch(/^mesh-monitoring-service-\d+\.\d+\.\d+\.tgz$/)
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
    expect.arrayContaining(['@node-rs/bcrypt', 'better-sqlite3', 'hono', 'preact', 'zod']),
  ])
  const [hono] = components.filter(({ name }: { name: string }) => name === 'hono')
  expect(hono).toMatchObject({ purl: `pkg:npm/hono@${hono.version}`, hashes: [{ alg: 'SHA-512' }] })
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
