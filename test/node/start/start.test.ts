import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { once } from 'node:events'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  buildCli,
  type Built,
  buildService,
  programEnv,
  runToEnd,
  startService,
} from '../../support/built/built-service.ts'
import { freePort } from '../../support/servers/free-port.ts'
import { canMount, mountSmallDisk } from '../../support/backup/small-disk.ts'

const GOOD_PASSWORD = 'the first administrator'

let built: Built
beforeAll(() => {
  built = buildService()
})

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-start-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

const data = () => join(dir, 'data')

describe('a start is refused, and the output', () => {
  test('names each problem on its own line, without secrets, and nothing is changed', async () => {
    const env = {
      DATA_DIR: data(),
      PORT: '70000',
      TRUSTED_PROXIES: '10.0.0.0/8,proxy.example.org',
      SESSION_SECRET: 'hunter2',
      SESSION_STORE: 'redis',
      LOG_LEVEL: 'loud\nmultiline',
    }
    const { code, out, err } = await runToEnd(built, env)
    expect([code, out]).toStrictEqual([1, ''])
    expect(err.split('\n')).toStrictEqual([
      'PORT: found "70000", expected a port number 0–65535',
      'TRUSTED_PROXIES: found "10.0.0.0/8,proxy.example.org", expected addresses or CIDR ranges, comma-separated',
      'SESSION_SECRET: found (not shown), expected one or more secrets of at least 32 characters, comma-separated',
      'LOG_LEVEL: found "loud\\nmultiline", expected debug, info, warn, error',
      'REDIS_URL: found nothing, expected a redis:// or rediss:// URL because SESSION_STORE is redis',
      '',
    ])
    expect(existsSync(data())).toBe(false)
  })

  test('is one line for an invalid proxy', async () => {
    const { code, err } = await runToEnd(built, { DATA_DIR: data(), TRUSTED_PROXIES: '10.0.0.0/33' })
    expect([code, err]).toStrictEqual([
      1,
      'TRUSTED_PROXIES: found "10.0.0.0/33", expected addresses or CIDR ranges, comma-separated\n',
    ])
  })

  test.each([
    ['short', /^ADMIN_PASSWORD: found \(not shown\), expected a password with: at least 15 characters/],
    ['administrator123', /^ADMIN_PASSWORD: found \(not shown\), expected a password with: not a common password/],
    ['x'.repeat(73), /^ADMIN_PASSWORD: found \(not shown\), expected a password with: at most 72 bytes/],
  ])('names the rule that a first password of %s breaks', async (password, line) => {
    const { code, err, out } = await runToEnd(built, { DATA_DIR: data(), ADMIN_PASSWORD: password })
    expect(code).toBe(1)
    expect(err).toMatch(line)
    expect(err.trimEnd().split('\n')).toHaveLength(1)
    expect(out + err).not.toContain(password)
  })

  test.each([
    ['below a file', () => join(dir, 'file', 'data'), 'ENOTDIR'],
    ['that is a file', () => join(dir, 'file'), 'EEXIST'],
    // Root cannot create anything there either.
    ['below /proc', () => '/proc/nowhere/data', 'ENOENT'],
  ])('is one line for a data directory %s', async (_where, directory, code) => {
    writeFileSync(join(dir, 'file'), '')
    const ended = await runToEnd(built, { DATA_DIR: directory() })
    expect(ended).toStrictEqual({
      code: 1,
      out: '',
      err: `DATA_DIR: found ${JSON.stringify(directory())}, expected a directory that can be created and written (${code})\n`,
    })
  })

  test('is one line for a file that is not a database', async () => {
    mkdirSync(data())
    writeFileSync(join(data(), 'mesh.db'), 'this is no database, and it is longer than a header '.repeat(10))
    const { code, err } = await runToEnd(built, { DATA_DIR: data() })
    expect(code).toBe(1)
    expect(err).toBe(
      `${join(data(), 'mesh.db')}: found a damaged database, expected an undamaged one; restore a backup of ${join(data(), 'system-backups')} with RESTORE_FROM_BACKUP=<its name> (SQLITE_NOTADB)\n`,
    )
  })

  test('is one line for a database with a damaged page, which a backup then replaces', async () => {
    const env = { DATA_DIR: data(), ADMIN_PASSWORD: GOOD_PASSWORD }
    const service = await startService(built, env)
    const made = execFileSync(process.execPath, [buildCli(), 'backup'], {
      env: { ...env, ...programEnv() },
      encoding: 'utf8',
    })
    const name = /\d{4}-\d\d-\d\d_\d{6}/.exec(made)?.[0] ?? ''
    expect(await service.stop('SIGTERM')).toBe(0)
    const file = join(data(), 'mesh.db')
    const bytes = readFileSync(file)
    writeFileSync(file, bytes.fill(0x5a, 100, 4096))
    const { code, err } = await runToEnd(built, env)
    expect(code).toBe(1)
    expect(err).toMatch(
      /^\S+mesh\.db: found a damaged database, .*RESTORE_FROM_BACKUP=<its name> \(SQLITE_CORRUPT\)\n$/,
    )
    const restored = await startService(built, { ...env, RESTORE_FROM_BACKUP: name })
    expect(restored.lines.join('\n')).toContain('Restore completed')
    expect(await restored.stop('SIGTERM')).toBe(0)
  })

  test.runIf(process.getuid?.() === 0)('names the remedy for files of another user', () => {
    mkdirSync(data())
    chmodSync(dir, 0o755)
    chmodSync(data(), 0o777)
    mkdirSync(join(data(), 'lost+found'), { mode: 0o700 })
    const problems = new URL('../../../src/node/start/problems.ts', import.meta.url)
    const script = `
      const { prepareDataDir } = await import(${JSON.stringify(problems.href)})
      process.setuid(65534)
      try { prepareDataDir(${JSON.stringify(data())}) } catch (error) { console.log(error.message) }`
    const prepareAsNobody = () =>
      execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
    expect(prepareAsNobody()).toBe('')
    writeFileSync(join(data(), 'mesh.db'), '', { mode: 0o600 })
    expect(prepareAsNobody()).toBe(
      `${join(data(), 'mesh.db')}: found a file that this user can't read and write, expected one that it can; ` +
        `it belongs to user 0 and the service runs as user 65534: chown -R 65534 "${data()}" (EACCES)\n`,
    )
  })

  test.each(['DATA_DIR', 'HOST', 'MAP_PMTILES', 'MESHTASTIC_MQTT_CA', 'ADMIN_PASSWORD_FILE'])(
    'is one short line for a value of thousands of characters in %s',
    async (name) => {
      const broker = name === 'MESHTASTIC_MQTT_CA' && { MESHTASTIC_MQTT_URL: 'mqtts://127.0.0.1:1' }
      const env = { DATA_DIR: data(), PORT: '0', ...broker, [name]: `/${'x'.repeat(20_000)}` }
      const { code, out, err } = await runToEnd(built, env)
      expect([code, err.split('\n').length]).toStrictEqual([1, 2])
      expect(err).toMatch(new RegExp(`^${name}: found "/x+"… \\(20001 characters\\), expected `))
      expect(out + err).not.toContain('x'.repeat(200))
    },
  )

  test('is one line for a port in use', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = Object(other.address())
    const { code, out, err } = await runToEnd(built, { DATA_DIR: data(), PORT: String(port) })
    other.close()
    expect(code).toBe(1)
    expect(out).not.toContain('password')
    expect(err).toBe(
      `PORT: found ${port} on "127.0.0.1", expected a port that no other program listens on (EADDRINUSE)\n`,
    )
  })

  test('is one line for an address that is not on this machine', async () => {
    const { code, err } = await runToEnd(built, { DATA_DIR: data(), HOST: '192.0.2.1', ADMIN_PASSWORD: GOOD_PASSWORD })
    expect([code, err]).toStrictEqual([
      1,
      'HOST: found "192.0.2.1", expected an address of this machine (EADDRNOTAVAIL)\n',
    ])
  })

  test('names an unreachable Redis server without its password', async () => {
    const env = { DATA_DIR: data(), SESSION_STORE: 'redis', REDIS_URL: 'redis://:hunter2@127.0.0.1:1' }
    const { code, out, err } = await runToEnd(built, env)
    expect(code).toBe(1)
    expect(out).toContain("Redis at 127.0.0.1:1 can't be reached")
    expect(out + err).not.toContain('hunter2')
  })
})

describe('a start', () => {
  test('creates the first administrator, shows a random password once and never logs it', async () => {
    const first = await startService(built, { DATA_DIR: data() })
    const shown = first.lines.flatMap(
      (line) => /Sign in as "admin" with the temporary password {2}(\S+)$/.exec(line)?.[1] ?? [],
    )
    expect(shown).toHaveLength(1)
    const [password = ''] = shown
    expect(first.lines.filter((line) => line.startsWith('{')).join()).not.toContain(password)
    const login = await fetch(`${first.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: 'admin', password }),
    })
    expect(await login.json()).toMatchObject({ mustChangePassword: true, user: { isAdmin: true } })
    const cookie = String(login.headers.getSetCookie()[0]).split(';')[0] ?? ''
    expect(await first.stop('SIGTERM')).toBe(0)

    // An import was killed meanwhile.
    const copy = join(data(), '.import-aB3dE6')
    mkdirSync(copy)
    writeFileSync(join(copy, 'meshmonitor.db'), 'hashes')
    const second = await startService(built, { DATA_DIR: data() })
    expect(existsSync(copy)).toBe(false)
    expect(second.lines.join()).not.toContain('password')
    const status = await fetch(`${second.url}/api/auth/status`, { headers: { cookie } })
    expect(await status.json()).toMatchObject({ authenticated: true })
    expect(await second.stop('SIGINT')).toBe(0)
    expect(second.lines.at(-1)).toContain('"message":"Stopped"')
  })

  test('gets no requests from a load balancer before it can answer them, nor while it stops', async () => {
    const port = await freePort()
    const reasons = new Set<string>()
    const ask = async () => {
      try {
        const answer = await fetch(`http://127.0.0.1:${port}/api/ready`, { headers: { connection: 'close' } })
        const { status, reason } = Object(await answer.json())
        reasons.add(String(reason ?? status))
      } catch {
        reasons.add('no answer')
      }
    }
    const env = { DATA_DIR: data(), PORT: String(port), ADMIN_PASSWORD: GOOD_PASSWORD }
    const starting = startService(built, env)
    // Hashing the first password takes a while.
    while (!reasons.has('ready')) await ask()
    expect([...reasons]).toStrictEqual(['no answer', 'starting', 'ready'])
    const service = await starting
    expect((await fetch(`${service.url}/api/live`)).status).toBe(200)
    const stopped = service.stop('SIGTERM')
    await expect.poll(() => service.lines.at(-1)).toMatch(/"message":"Stop/)
    reasons.clear()
    await ask()
    expect([['no answer'], ['stopping']]).toContainEqual([...reasons])
    expect(await stopped).toBe(0)
  })

  test('stops when its terminal closes, and no signal opens the debugger of Node', async () => {
    const service = await startService(built, { DATA_DIR: data(), SESSION_SECRET: 's'.repeat(40) })
    const errors: string[] = []
    service.process.stderr?.on('data', (chunk) => errors.push(String(chunk)))
    service.process.kill('SIGUSR1')
    expect((await fetch(`${service.url}/api/health`)).status).toBe(200)
    expect(await service.stop('SIGHUP')).toBe(0)
    expect(errors.join('')).toBe('')
    expect(service.lines.at(-1)).toContain('"message":"Stopped"')
  })

  test.runIf(canMount)('works on a disk with room for the database but not for a reserve', async () => {
    const disk = mountSmallDisk(40)
    try {
      disk.fill(10 * 1024 * 1024)
      const service = await startService(built, { DATA_DIR: disk.dir })
      try {
        expect(service.lines.filter((line) => line.includes('"Disk full'))).toHaveLength(1)
        const { status } = await fetch(`${service.url}/api/health`)
        expect(status).toBe(503)
      } finally {
        expect(await service.stop('SIGTERM')).toBe(0)
      }
    } finally {
      disk.remove()
    }
  })

  test('names unknown variables and the nearest known ones, without values', async () => {
    const unknown = { OIDC_ISUER: 'l3aked', MESHTASTIC_TPC: 'l3aked' }
    const service = await startService(built, { DATA_DIR: data(), ADMIN_PASSWORD: GOOD_PASSWORD, ...unknown })
    const said = service.lines.filter((line) => line.includes('is unknown'))
    expect(said.map((line) => Object(JSON.parse(line)).message)).toStrictEqual([
      'The variable OIDC_ISUER is unknown and has no effect; did you mean OIDC_ISSUER?',
      'The variable MESHTASTIC_TPC is unknown and has no effect; did you mean MESHTASTIC_TCP?',
    ])
    expect(service.lines.join('\n')).not.toContain('l3aked')
    expect(await service.stop('SIGTERM')).toBe(0)
  })

  test('logs the full path of its data', async () => {
    const env = { DATA_DIR: relative(process.cwd(), data()), ADMIN_PASSWORD: GOOD_PASSWORD }
    const service = await startService(built, env)
    const listening = service.lines
      .map((line) => Object(JSON.parse(line)))
      .find(({ message }) => message === 'Listening')
    expect(listening).toMatchObject({ dataDir: data() })
    expect(await service.stop('SIGTERM')).toBe(0)
    const { code, out } = await runToEnd(built, { ...env, RESTORE_FROM_BACKUP: '2026-01-15_120000' })
    expect(code).toBe(1)
    expect(out).toContain(`Backup directory not found: ${data()}/system-backups/2026-01-15_120000; `)
  })

  test('writes nothing that others may read, even into a directory that they may enter', async () => {
    mkdirSync(data(), { mode: 0o755 })
    const service = await startService(built, { DATA_DIR: data(), ADMIN_PASSWORD: GOOD_PASSWORD })
    const names = readdirSync(data(), { recursive: true, encoding: 'utf8' })
    expect(names).toEqual(expect.arrayContaining(['mesh.db', 'mesh.db-wal', 'session-secret']))
    for (const name of names) {
      // Side files of a lock appear and disappear.
      const stat = statSync(join(data(), name), { throwIfNoEntry: false })
      expect((stat?.mode ?? 0) & 0o077, name).toBe(0)
    }
    expect(await service.stop('SIGTERM')).toBe(0)
  })

  test('with a given password creates an administrator whose password is permanent', async () => {
    const env = { DATA_DIR: data(), ADMIN_USERNAME: 'root', ADMIN_PASSWORD: GOOD_PASSWORD }
    const service = await startService(built, env)
    expect(service.lines.join('\n')).not.toContain(GOOD_PASSWORD)
    const login = await fetch(`${service.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: 'root', password: GOOD_PASSWORD }),
    })
    expect(await login.json()).toMatchObject({ mustChangePassword: false, user: { username: 'root', isAdmin: true } })
    expect(await service.stop('SIGTERM')).toBe(0)
  })
})

describe('secrets in files', () => {
  const secret = (text: string) => {
    const file = join(dir, 'secret')
    writeFileSync(file, text)
    return file
  }

  test('a password in a file is used for the first administrator', async () => {
    const env = { DATA_DIR: data(), ADMIN_PASSWORD_FILE: secret(`${GOOD_PASSWORD}\n`) }
    const service = await startService(built, env)
    const login = await fetch(`${service.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: 'admin', password: GOOD_PASSWORD }),
    })
    expect(login.status).toBe(200)
    expect(await service.stop('SIGTERM')).toBe(0)
  })

  test.each([
    [
      'that is not there',
      () => ({ ADMIN_PASSWORD_FILE: join(dir, 'none') }),
      'a file that this user can read (ENOENT)',
    ],
    ['that is empty', () => ({ ADMIN_PASSWORD_FILE: secret('\n') }), 'a file that holds the secret; it is empty'],
    [
      'besides the secret itself',
      () => ({ ADMIN_PASSWORD_FILE: secret(GOOD_PASSWORD), ADMIN_PASSWORD: GOOD_PASSWORD }),
      'nothing because ADMIN_PASSWORD is set',
    ],
  ])('a file %s stops the start with one line', async (_which, env, expected) => {
    const given = env()
    const { code, err } = await runToEnd(built, { DATA_DIR: data(), ...given })
    const line = `ADMIN_PASSWORD_FILE: found ${JSON.stringify(given.ADMIN_PASSWORD_FILE)}, expected ${expected}\n`
    expect([code, err]).toStrictEqual([1, line])
  })
})
