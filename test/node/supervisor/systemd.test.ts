import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { buildCli, buildService, runCli, startService } from '../../support/built/built-service.ts'
import { freePort } from '../../support/servers/free-port.ts'
import { startNotifySocket } from '../../support/servers/notify-socket.ts'

const ANALYZE = '/usr/bin/systemd-analyze'
const UNIT = new URL('../../../deploy/mesh-monitoring-service.service', import.meta.url)
/** The longest time that a step of the start may take, in microseconds. */
const STEP = 'EXTEND_TIMEOUT_USEC=1800000000'
const WATCHED = { WATCHDOG_USEC: '1000000' }

let dir: string
let systemd: Awaited<ReturnType<typeof startNotifySocket>>
let env: { DATA_DIR: string; NOTIFY_SOCKET: string; SESSION_SECRET: string }
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-notify-'))
  env = { DATA_DIR: join(dir, 'data'), NOTIFY_SOCKET: join(dir, 'notify'), SESSION_SECRET: 's'.repeat(40) }
  systemd = await startNotifySocket(env.NOTIFY_SOCKET)
})
afterEach(async () => {
  await systemd.stop()
  rmSync(dir, { recursive: true })
})

const told = () => systemd.received.map(({ lines }) => lines.join(' '))
const signsOfLife = () => systemd.received.filter(({ lines }) => lines.includes('WATCHDOG=1'))

/** Flags with which a process runs this code first. */
const first = (code: string) => ['--import', `data:text/javascript,${encodeURIComponent(code)}`]

test('the service says what its start does, that it is ready once it answers, and that it stops', async () => {
  const port = await freePort()
  const starting = startService(buildService(), { ...env, PORT: String(port) })
  await expect.poll(told).toContain(`READY=1 STATUS=Serving on 127.0.0.1, port ${port}`)
  expect((await fetch(`http://127.0.0.1:${port}/api/ready`)).status).toBe(200)
  const service = await starting
  expect(await service.stop('SIGTERM')).toBe(0)
  expect(told()).toStrictEqual([
    expect.stringMatching(new RegExp(`^${STEP} STATUS=Migrating the database: 0 of \\d+ steps$`)),
    `READY=1 STATUS=Serving on 127.0.0.1, port ${port}`,
    'STOPPING=1 STATUS=Stopping',
  ])
})

test('a restore asks for more time', async () => {
  const { NOTIFY_SOCKET: _, ...alone } = env
  const before = await startService(buildService(), alone)
  expect(await before.stop('SIGTERM')).toBe(0)
  const { code, out } = await runCli(buildCli(), ['backup'], alone)
  expect(code).toBe(0)
  const [name = ''] = /\d{4}-\d\d-\d\d_\d{6}/.exec(out) ?? []
  const service = await startService(buildService(), { ...env, RESTORE_FROM_BACKUP: name })
  expect(await service.stop('SIGTERM')).toBe(0)
  expect(told()[0]).toBe(`${STEP} STATUS=Restoring a backup`)
  expect(told()).toContainEqual(expect.stringMatching(/^READY=1/))
})

test('a name instead of a path works as well', async () => {
  const name = `@${dir}`
  const named = await startNotifySocket(name)
  try {
    const service = await startService(buildService(), { ...env, NOTIFY_SOCKET: name })
    expect(await service.stop('SIGTERM')).toBe(0)
    expect(named.received.map(({ lines }) => lines[0])).toStrictEqual([STEP, 'READY=1', 'STOPPING=1'])
  } finally {
    await named.stop()
  }
})

describe('the watchdog', () => {
  test('is told twice in its time, unless the event loop hangs', async () => {
    const hang = first(
      `process.on('SIGUSR2', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000))`,
    )
    const service = await startService(buildService(), { ...env, ...WATCHED }, hang)
    await expect.poll(() => signsOfLife().length).toBeGreaterThan(3)
    const [one, two] = signsOfLife()
    expect(Number(two?.at) - Number(one?.at)).toBeGreaterThan(400)
    const count = signsOfLife().length
    service.process.kill('SIGUSR2')
    await expect.poll(() => signsOfLife().length).toBeGreaterThan(count + 2)
    const gaps = signsOfLife().map(({ at }, index, all) => at - (all[index - 1]?.at ?? at))
    expect(Math.max(...gaps.slice(count - 1))).toBeGreaterThan(2500)
    expect(await service.stop('SIGTERM')).toBe(0)
  })

  test('of another process is not told', async () => {
    const others = await startNotifySocket(`${env.NOTIFY_SOCKET}-2`)
    try {
      const theirs = { NOTIFY_SOCKET: `${env.NOTIFY_SOCKET}-2`, DATA_DIR: join(dir, 'other') }
      const pid = { WATCHDOG_PID: String(process.pid) }
      const other = await startService(buildService(), { ...env, ...WATCHED, ...theirs, ...pid })
      const own = await startService(buildService(), { ...env, ...WATCHED })
      await expect.poll(() => signsOfLife().length).toBeGreaterThan(1)
      expect([await own.stop('SIGTERM'), await other.stop('SIGTERM')]).toStrictEqual([0, 0])
      expect(others.received.map(({ lines }) => lines[0])).toStrictEqual([STEP, 'READY=1', 'STOPPING=1'])
    } finally {
      await others.stop()
    }
  })

  test('is told by the bundled Node of a process that is too old itself', async () => {
    const old = first(`if (process.env.PRETENDED === undefined) {
      process.env.PRETENDED = 'true'
      process.env.WATCHDOG_PID = String(process.pid)
      Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.2' } })
    }`)
    const service = await startService(buildService(), { ...env, ...WATCHED }, old)
    await expect.poll(() => signsOfLife().length).toBeGreaterThan(0)
    expect(await service.stop('SIGTERM')).toBe(0)
  })
})

test('no other child process can speak for the service', async () => {
  const show = first(`import { execFileSync } from 'node:child_process'
    process.on('SIGUSR2', () => process.stdout.write('child: ' + Object.keys(JSON.parse(execFileSync(process.execPath,
      ['-p', 'JSON.stringify(process.env)'], { encoding: 'utf8' }))).join(' ') + '\\n'))`)
  const service = await startService(buildService(), { ...env, ...WATCHED, WATCHDOG_PID: '1' }, show)
  service.process.kill('SIGUSR2')
  const child = () => service.lines.find((line) => line.startsWith('child: '))
  await expect.poll(child).toContain('DATA_DIR')
  expect(child()).not.toMatch(/NOTIFY|WATCHDOG/)
  expect(await service.stop('SIGTERM')).toBe(0)
})

test('without systemd-notify one line says what to do, and the service runs', async () => {
  const bin = join(dir, 'bin')
  mkdirSync(bin)
  symlinkSync(process.execPath, join(bin, 'node'))
  const service = await startService(buildService(), { ...env, ...WATCHED, PATH: bin })
  expect((await fetch(`${service.url}/api/ready`)).status).toBe(200)
  expect(await service.stop('SIGTERM')).toBe(0)
  const said = service.lines.filter((line) => line.includes('systemd'))
  expect(said).toStrictEqual([expect.stringContaining('"message":"systemd-notify is missing: ')])
  expect(told()).toStrictEqual([])
})

test('a socket that nobody listens at is one line, too', async () => {
  const service = await startService(buildService(), { ...env, NOTIFY_SOCKET: join(dir, 'nobody') })
  expect(await service.stop('SIGTERM')).toBe(0)
  const said = service.lines.filter((line) => line.includes('systemd'))
  expect(said).toStrictEqual([expect.stringMatching(/could not be told.*No such file or directory/)])
})

describe('the unit', () => {
  const unit = readFileSync(UNIT, 'utf8')

  test('has nothing that systemd does not understand', () => {
    const file = join(dir, 'mesh-monitoring-service.service')
    writeFileSync(file, unit.replace(/^ExecStart=.*$/m, 'ExecStart=/usr/bin/systemd-notify'))
    const { status, stdout, stderr } = spawnSync(ANALYZE, ['verify', '--man=no', file], { encoding: 'utf8' })
    expect([status, stdout, stderr]).toStrictEqual([0, '', ''])
  })

  test('waits for what the service says, from a child process, and watches it', () => {
    expect(unit).toMatch(/^Type=notify$/m)
    expect(unit).toMatch(/^NotifyAccess=all$/m)
    expect(unit).toMatch(/^WatchdogSec=120$/m)
  })
})
