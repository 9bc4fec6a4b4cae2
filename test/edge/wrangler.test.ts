import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const directory = mkdtempSync(join(tmpdir(), 'mesh-wrangler-'))
afterAll(() => rmSync(directory, { recursive: true }))

const QUIET = { CI: '1', HOME: directory, NO_COLOR: '1', WRANGLER_HIDE_BANNER: 'true', WRANGLER_SEND_METRICS: 'false' }

/** What the command that a user types prints. */
async function wrangler(...args: string[]): Promise<string> {
  const bin = join(ROOT, 'node_modules/wrangler/bin/wrangler.js')
  const { stdout } = await promisify(execFile)(process.execPath, [bin, ...args], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...QUIET },
  })
  return stdout
}

test('wrangler applies the migrations, triggers and all, and then has none left', async () => {
  const local = ['--local', '--persist-to', join(directory, 'state')]
  expect(await wrangler('d1', 'migrations', 'apply', 'DB', ...local)).toContain('0001_authentication.sql')
  expect(await wrangler('d1', 'migrations', 'apply', 'DB', ...local)).toContain('No migrations to apply')
  const query = "select name from sqlite_master where type = 'trigger' order by name"
  const [{ results }] = JSON.parse(await wrangler('d1', 'execute', 'DB', ...local, '--json', '--command', query))
  expect(results).toEqual(
    expect.arrayContaining([{ name: 'audit_log_no_update' }, { name: 'nodes_updated' }, { name: 'users_last_admin' }]),
  )
})

test('the worker is at most 250 KB, compressed', async () => {
  const out = join(directory, 'out')
  await wrangler('deploy', '--dry-run', '--outdir', out)
  const bundle = readFileSync(join(out, 'worker.js'))
  expect(gzipSync(bundle).byteLength).toBeLessThanOrEqual(250_000)
  // One `import { z }` instead of `import * as z` brings zod's messages in every language: 70 KB.
  expect(bundle.toString()).not.toMatch(/Ung(ü|\\xFC)ltige Eingabe/)
})
