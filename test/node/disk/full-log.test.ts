import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AppError, DISK_FULL } from '../../../src/app/http/errors.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { JobFailed } from '../../../src/node/backup/jobs.ts'
import { calmWhileFull, type FullDiskLog } from '../../../src/node/disk/full-log.ts'
import { openReserve } from '../../../src/node/disk/reserve.ts'
import { createBatcher } from '../../../src/node/radio/batcher.ts'
import { canMount, mountSmallDisk } from '../../support/backup/small-disk.ts'
import { buildService, signInAt, startService } from '../../support/built/built-service.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { item } from '../../support/mesh/delivery.ts'
import { heard, packet, text } from '../../support/mesh/mesh.ts'

const MB = 1024 * 1024
const PASSWORD = 'a password for a full disk'
const STATE = { file: 'mesh.db', freeBytes: 0, remedy: 'make room' }
const TRACE = '\n    at '

let clock: ReturnType<typeof createManualClock>
let lines: string[]
let log: FullDiskLog
beforeEach(() => {
  clock = createManualClock(0)
  lines = []
  const written = createLog({ level: 'info', format: 'json', now: clock.now, write: (line) => lines.push(line) })
  log = calmWhileFull(written, clock.now)
})
const entries = () => lines.map((line) => Object(JSON.parse(line)))
const messages = () => entries().map(({ message }) => String(message))
const full = () => Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })

describe('what is a full disk', () => {
  test.each<[string, unknown]>([
    ['of SQLite', full()],
    ['of a file', Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })],
    ['of a quota', Object.assign(new Error('EDQUOT: quota exceeded, write'), { code: 'EDQUOT' })],
    ['as the cause of another error', new AppError('internal', 'The backup failed', { cause: full() })],
    ['found by the thread of a backup', new AppError('internal', 'x', { cause: new JobFailed('no space', true) })],
    ['before anything is written', new AppError('database_unavailable', DISK_FULL)],
  ])('%s', (_what, error) => {
    for (let second = 0; second < 60; second++) {
      log.error('Storing failed', { error })
      log.warn('Sweeping failed', { error })
      clock.advance(1000)
    }
    log.error('Storing failed', { error })
    expect(messages()).toStrictEqual(['Storing failed', 'Storing failed'])
    expect(String(entries()[0].error)).toContain(TRACE)
    expect(entries()[1]).toMatchObject({ suppressed: 119, error: expect.not.stringContaining(TRACE) })
  })

  test('other errors are not held back, with their traces', () => {
    const errors = [
      new Error('no'),
      Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' }),
      'SQLITE_FULL',
    ]
    for (const error of [...errors, ...errors]) log.error('Failed', { error })
    log.error('Failed')
    expect(messages()).toHaveLength(7)
    expect(lines.filter((line) => line.includes(String.raw`\n    at `))).toHaveLength(4)
  })

  test('an error of input or output, while the disk is full', () => {
    const error = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_SHMSIZE' })
    log.error('Failed', { error })
    log.error('Failed', { error })
    log.noteRoom(false, STATE)
    log.error('Failed', { error })
    expect(messages()).toStrictEqual(['Failed', 'Failed', 'Disk full: packets are not stored'])
  })
})

describe('its end', () => {
  test('is one entry with what was left out, and the next time begins anew', () => {
    for (let times = 0; times < 2; times++) {
      log.noteRoom(false, STATE)
      for (let second = 0; second < 90; second++) {
        log.error('Storing failed', { error: full() })
        log.noteRoom(false, STATE)
        clock.advance(1000)
      }
      for (let look = 0; look < 3; look++) log.noteRoom(true, { ...STATE, freeBytes: 5 })
    }
    const time = ['Disk full: packets are not stored', 'Storing failed', 'The disk has space again']
    expect(messages()).toStrictEqual([...time, ...time])
    expect(entries()[0]).toMatchObject({ level: 'error', ...STATE })
    expect(entries()[1]).toMatchObject({ error: expect.stringContaining(TRACE), suppressed: 60 })
    expect(entries()[2]).toMatchObject({ level: 'info', freeBytes: 5, suppressed: 89 })
    expect(entries()[4]).toMatchObject({ error: expect.stringContaining(TRACE) })
    expect(entries()[5]).toMatchObject({ suppressed: 89 })
  })

  test('comes a minute after the last failure where the free space does not show it', () => {
    log.error('Storing failed', { error: full() })
    log.error('Storing failed', { error: full() })
    clock.advance(59_999)
    log.noteRoom(true, STATE)
    expect(messages()).toHaveLength(1)
    clock.advance(1)
    log.noteRoom(true, STATE)
    expect(entries()[1]).toMatchObject({ message: 'The disk has space again', suppressed: 1 })
  })

  test('of a disk that is full and has room by turns is not told each time', () => {
    for (let second = 0; second < 180; second++) {
      log.noteRoom(second % 2 === 1, STATE)
      clock.advance(1000)
    }
    expect(messages()).toHaveLength(6)
    clock.advance(60_000)
    log.noteRoom(false, STATE)
    expect(messages().at(-1)).toBe('Disk full: packets are not stored')
  })
})

describe.skipIf(!canMount)('on a disk that is really full', () => {
  let disk: ReturnType<typeof mountSmallDisk>
  beforeEach(() => {
    disk = mountSmallDisk(64)
  })
  afterEach(() => disk.remove())

  test('a radio that goes on sending makes one entry a minute', async () => {
    const sqlite = new Database(join(disk.dir, 'mesh.db'))
    sqlite.pragma('journal_mode = WAL')
    sqlite.exec('create table packets (data blob)')
    const insert = sqlite.prepare('insert into packets values (randomblob(65536))')
    const reserve = openReserve({ dataDir: disk.dir, log })
    let attempts = 0
    const ingest = {
      store: async () => {
        attempts += 1
        insert.run()
        return { news: [], suspected: new Set<never>() }
      },
    }
    const batcher = createBatcher({ ingest, log, clock })
    reserve.makeRoom()
    disk.fill()
    batcher.push([heard(packet(text('one')))])
    for (let second = 0; second < 300; second++) {
      clock.advance(1000)
      for (let turn = 0; turn < 10; turn++) await setImmediate()
    }
    expect(attempts).toBeGreaterThan(60)
    const failed = entries().filter(({ message }) => message === 'Storing failed; retrying')
    expect(failed).toHaveLength(5)
    expect(failed.map(({ error }) => String(error).includes(TRACE))).toStrictEqual([true, false, false, false, false])
    expect(failed[1]).toMatchObject({ error: 'SqliteError: database or disk is full' })
    disk.clear()
    clock.advance(5000)
    for (let turn = 0; turn < 10; turn++) await setImmediate()
    await batcher.close()
    clock.advance(60_000)
    await reserve.keep()
    expect(entries().at(-1)).toMatchObject({
      message: 'The disk has space again',
      suppressed: attempts - 1 - failed.length,
    })
    sqlite.close()
  })

  test('a service tells it in one entry, however often it refuses packets, and its end', async () => {
    const service = await startService(buildService(), { DATA_DIR: disk.dir, ADMIN_PASSWORD: PASSWORD })
    try {
      const cookie = await signInAt(service.url, PASSWORD)
      const post = async (path: string, headers: Record<string, string>, body: unknown) =>
        fetch(`${service.url}/api${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
        })
      const made = await post('/tokens', { cookie }, { name: 'collector', scopes: ['ingest'] })
      const authorization = `Bearer ${String(Object(await made.json()).token)}`
      const deliver = async () => {
        const packets = [{ data: item(packet(text(randomUUID()))), receivedAt: Date.now() }]
        return (await post('/ingest', { authorization }, { source: 'radio', packets })).status
      }
      const health = async () => (await fetch(`${service.url}/api/health`)).status
      expect(await deliver()).toBe(200)
      disk.fill(MB)
      await expect.poll(health).toBe(503)
      for (let times = 0; times < 30; times++) expect(await deliver()).toBe(503)
      const said = () => service.lines.filter((line) => /full|Request failed/.test(line))
      expect(said()).toStrictEqual([expect.stringContaining('"Disk full: packets are not stored"')])
      disk.clear()
      await expect.poll(health).toBe(200)
      expect(await deliver()).toBe(200)
      const ends = service.lines.filter((line) => line.includes('"The disk has space again"'))
      expect(ends.map((line) => Object(JSON.parse(line)))).toStrictEqual([expect.objectContaining({ suppressed: 30 })])
    } finally {
      expect(await service.stop('SIGTERM')).toBe(0)
    }
  })
})
