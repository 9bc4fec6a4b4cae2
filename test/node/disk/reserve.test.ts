import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createLog } from '../../../src/app/base/log.ts'
import { calmWhileFull } from '../../../src/node/disk/full-log.ts'
import { openReserve } from '../../../src/node/disk/reserve.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { StartRefused } from '../../../src/node/start/problems.ts'
import { canMount, mountSmallDisk, type SmallDisk } from '../../support/backup/small-disk.ts'

const MB = 1024 * 1024

describe.skipIf(!canMount)('on a small disk', () => {
  let disk: SmallDisk
  let logged: string[]
  let spare: number
  beforeEach(() => {
    disk = mountSmallDisk(40)
    logged = []
    spare = 0
  })
  afterEach(() => disk.remove())

  const open = () => {
    const log = createLog({ level: 'info', format: 'json', now: () => 0, write: (line) => logged.push(line) })
    const reserve = openReserve({ dataDir: disk.dir, log: calmWhileFull(log) })
    reserve.countIn(() => spare)
    return reserve
  }
  const draft = () => join(disk.dir, 'disk-reserve.new')
  const hasReserve = () => existsSync(join(disk.dir, 'disk-reserve'))

  test('a reserve is kept, released when the disk is full, and created again when there is room', async () => {
    const reserve = open()
    await reserve.keep()
    expect([hasReserve(), reserve.isFull()]).toStrictEqual([true, false])
    reserve.makeRoom()
    expect(hasReserve()).toBe(true)
    disk.fill(MB)
    reserve.makeRoom()
    expect([hasReserve(), reserve.isFull()]).toStrictEqual([false, true])
    // The released space is for administrators: for received packets the disk stays full.
    await reserve.keep()
    expect([hasReserve(), reserve.isFull()]).toStrictEqual([false, true])
    disk.clear()
    await reserve.keep()
    expect([hasReserve(), reserve.isFull()]).toStrictEqual([true, false])
    expect(logged.map((line) => Object(JSON.parse(line)).message)).toStrictEqual([
      'Disk full: packets are not stored',
      'The disk reserve is released for administrators',
      'The disk has space again',
    ])
    expect(JSON.parse(String(logged[0]))).toMatchObject({
      file: join(disk.dir, 'mesh.db'),
      remedy: expect.stringContaining('delete'),
    })
  })

  test('of several instances that start together one makes the reserve, and none warns', async () => {
    const reserves = [open(), open(), open()]
    await Promise.all(reserves.map((reserve) => reserve.keep()))
    expect(readdirSync(disk.dir)).toStrictEqual(['disk-reserve'])
    expect(statSync(join(disk.dir, 'disk-reserve')).blocks * 512).toBe(16 * MB)
    expect(logged).toStrictEqual([])
  })

  test('while another instance makes the reserve, what it has written does not count as a full disk', () => {
    disk.fill(28 * MB)
    writeFileSync(draft(), randomBytes(15 * MB))
    expect([open().isFull(), logged]).toStrictEqual([false, []])
  })

  test('a draft is left to the instance that makes it, until it has not grown for a minute', async () => {
    const reserve = open()
    for (const [age, left] of [
      [0, true],
      [-30, true],
      [61, false],
    ] as const) {
      writeFileSync(draft(), 'begun')
      const changedAt = Date.now() / 1000 - age
      utimesSync(draft(), changedAt, changedAt)
      await reserve.keep()
      expect([age, existsSync(draft()), hasReserve()]).toStrictEqual([age, left, !left])
    }
    expect(logged).toStrictEqual([])
  })

  test('space freed by retention inside the database counts as room, too', async () => {
    const reserve = open()
    await reserve.keep()
    disk.fill()
    reserve.makeRoom()
    spare = 10 * MB
    await reserve.keep()
    expect(reserve.isFull()).toBe(false)
  })

  test('a database without room on the disk says so in one line', () => {
    disk.fill(64 * 1024)
    const file = join(disk.dir, 'mesh.db')
    const line = new RegExp(
      `^${file}: found a full disk, expected space for the database; nothing was changed: delete old backups in [^\\n]*$`,
    )
    expect(() => openDatabase(file)).toThrow(line)
    expect(() => openDatabase(file)).toThrow(StartRefused)
    disk.clear()
    openDatabase(file).close()
  })
})
