import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { forJournal } from '../../../src/node/supervisor/journal.ts'
import { buildCli, buildService } from '../../support/built/built-service.ts'

let dir: string
let open: number[]
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-journal-'))
  open = []
})
afterEach(() => {
  for (const fd of open) closeSync(fd)
  rmSync(dir, { recursive: true })
})

/** A file in place of the journal's socket: both have a device and an inode. */
function output(name: string): { fd: number; stream: string; read(): string[] } {
  const file = join(dir, name)
  const fd = openSync(file, 'a')
  open.push(fd)
  const { dev, ino } = fstatSync(fd, { bigint: true })
  return { fd, stream: `${dev}:${ino}`, read: () => readFileSync(file, 'utf8').split('\n').filter(Boolean) }
}

test('each line begins with the priority of its level', () => {
  const { fd, stream } = output('log')
  const mark = forJournal(fd, { JOURNAL_STREAM: stream })
  const levels = ['error', 'warn', 'info', 'debug'] as const
  expect(levels.map((level) => mark(level, 'one line'))).toStrictEqual([
    '<3>one line',
    '<4>one line',
    '<6>one line',
    '<7>one line',
  ])
  expect(mark('warn', 'one\ntwo\n\nthree\n')).toBe('<4>one\n<4>two\n\n<4>three\n')
})

test.each(['', '1', '1:2', ':', 'a:b', '0:0'])('text stays as it is where JOURNAL_STREAM is %j', (stream) => {
  expect(forJournal(output('log').fd, { JOURNAL_STREAM: stream })('error', 'one\ntwo')).toBe('one\ntwo')
  expect(forJournal(output('log').fd, {})('error', 'one\ntwo')).toBe('one\ntwo')
})

test('a closed descriptor is no journal', () => {
  const { stream } = output('log')
  const fd = Number(open.pop())
  closeSync(fd)
  expect(forJournal(fd, { JOURNAL_STREAM: stream })('error', 'one')).toBe('one')
})

const run = (file: string, args: readonly string[], env: Record<string, string>, out: number, err: number) =>
  spawn(process.execPath, [file, ...args], {
    env: { PATH: String(process.env['PATH']), DATA_DIR: join(dir, 'data'), HOST: '127.0.0.1', PORT: '0', ...env },
    stdio: ['ignore', out, err],
  })

test.each(['json', 'pretty'])(
  'the service marks its log in the format %s, and only what the journal reads',
  async (format) => {
    for (const isRead of [true, false]) {
      const log = output(`log-${isRead}`)
      const stream = isRead ? log.stream : output('elsewhere').stream
      const env = { JOURNAL_STREAM: stream, LOG_FORMAT: format, LOG_LEVEL: 'debug', MESHTASTIC_TPC: 'unknown' }
      const child = run(
        buildService().main,
        [],
        { ...env, ADMIN_PASSWORD: 'a password for the journal' },
        log.fd,
        log.fd,
      )
      await expect.poll(() => log.read().some((line) => line.includes('Listening'))).toBe(true)
      child.kill('SIGTERM')
      await once(child, 'exit')
      const begin = format === 'json' ? String.raw`\{"time"` : String.raw`\d{4}-`
      const all = log.read()
      expect(all.filter((line) => !new RegExp(`^${isRead ? '<[467]>' : ''}${begin}`).test(line))).toStrictEqual([])
      const priorityOf = (text: string) => /^<\d>/.exec(all.find((line) => line.includes(text)) ?? 'none')?.[0]
      expect([priorityOf('is unknown'), priorityOf('Listening')]).toStrictEqual(
        isRead ? ['<4>', '<6>'] : [undefined, undefined],
      )
    }
  },
)

test('a refused start and a refused command are errors', async () => {
  const out = output('out')
  const err = output('err')
  const env = { JOURNAL_STREAM: err.stream, PORT: '-1', LOG_LEVEL: 'loud' }
  for (const [file, args] of [
    [buildService().main, []],
    [buildCli(), ['verify', 'nothing']],
    [buildCli(), ['list']],
  ] as const) {
    await once(run(file, args, env, out.fd, err.fd), 'exit')
  }
  expect(out.read()).toStrictEqual([])
  expect(err.read()).toHaveLength(6)
  expect(err.read().filter((line) => !/^<3>(?:PORT|LOG_LEVEL): found /.test(line))).toStrictEqual([])
})
