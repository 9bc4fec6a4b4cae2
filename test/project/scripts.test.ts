import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }

const ROOT = join(import.meta.dirname, '../..')
const SHELL = join(ROOT, 'test/support/plain-shell.js')
/** Tests run against Debian's servers and browsers, which a POSIX shell installs. */
const FOR_TESTS = ['pretest', 'pretest:faults']

const runs = (line: string, env = {}) =>
  spawnSync(SHELL, ['-c', line], { env: { ...process.env, ...env }, encoding: 'utf8' })

test.each(Object.entries(manifest.scripts).filter(([name]) => !FOR_TESTS.includes(name)))(
  'npm run %s needs no POSIX shell',
  (_, line) => {
    expect(runs(line, { PLAIN_SHELL_READS_ONLY: 'true' })).toMatchObject({ status: 0, stderr: '' })
  },
)

test('what only some shells understand is refused', () => {
  for (const line of ['NODE_ENV=production vite build', 'exec node x.js', "node -e '1'", 'node a.js; node b.js']) {
    expect(runs(line, { PLAIN_SHELL_READS_ONLY: 'true' }).status).toBe(126)
  }
})

test('npm runs a script with it', () => {
  const args = ['run', '--silent', '--script-shell', SHELL, 'db:generate', '--', '--help']
  expect(execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8' })).toContain('drizzle-kit')
})
