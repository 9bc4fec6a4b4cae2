import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { beginAnew, logState } from '../../../src/node/flushing/copy-log.ts'
import { createShortLog } from '../../../src/node/moving-in/short-log.ts'

test('the log is begun anew by a service, without one by the import, and is let grow for a reader', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'short-log-'))
  const open = () => new Database(join(dir, 'mesh.db'))
  const [importing, service, reader] = [open(), open(), open()]
  importing.pragma('journal_mode = WAL')
  importing.pragma('wal_autocheckpoint = 0')
  importing.exec('create table pages (content blob)')
  const fill = importing.prepare('insert into pages values (zeroblob(4200000))')
  const log = createShortLog(importing)
  const versionOf = () => Number(importing.pragma('user_version', { simple: true }))
  const pages = () => logState(importing).pages

  fill.run()
  expect(pages()).toBeGreaterThan(1000)
  const kept = log.keep()
  // A commit that it does not make itself.
  service.pragma('user_version = 7')
  expect(beginAnew(service).isNew).toBe(true)
  await kept
  expect([versionOf(), pages()]).toStrictEqual([7, 1])

  fill.run()
  await log.keep()
  expect(pages()).toBe(1)

  reader.exec('begin')
  reader.prepare('select count(*) from pages').get()
  fill.run()
  await log.keep()
  const grown = pages()
  expect(grown).toBeGreaterThan(1000)
  // Not again for each transaction, but after as many pages more.
  reader.exec('commit')
  await log.keep()
  expect(pages()).toBe(grown)
  fill.run()
  await log.keep()
  expect(pages()).toBe(1)

  for (const database of [importing, service, reader]) database.close()
  rmSync(dir, { recursive: true, force: true })
})
