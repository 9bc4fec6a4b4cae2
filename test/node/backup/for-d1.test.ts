import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { writeForD1 } from '../../../src/node/backup/restore/for-d1.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { makeBackup, makeDataDir, restoreOptions, seedDatabase } from '../../support/backup/backup.ts'

let here: ReturnType<typeof makeDataDir>
beforeEach(() => {
  here = makeDataDir()
  seedDatabase(here.database)
})
afterEach(() => here.remove())

/** Makes a backup after a change, and writes it for D1. */
async function written(change: string, ...values: string[]): Promise<string> {
  const store = openDatabase(here.database)
  store.sqlite.prepare(change).run(...values)
  store.close()
  const directory = join(here.dataDir, 'files')
  await writeForD1(restoreOptions(here.dataDir), await makeBackup(here.dataDir), directory)
  return readdirSync(directory)
    .map((file) => readFileSync(join(directory, file), 'utf8'))
    .join('')
}

test('texts have nothing that wrangler would cut out', async () => {
  const text = 'begin Transaction; x COMMIT; y'
  const sql = await written('update nodes set notes = ?', text)
  expect(sql).toContain(Buffer.from(text).toString('hex'))
  expect(sql).not.toMatch(/begin transaction|commit;/i)
})

test('a restore that fails half-way leaves no files that look like all of it', async () => {
  const wide = `${'あ'.repeat(3999)}\n`
  const columns = ['long_name', 'short_name', 'notes', 'refused_long_name', 'firmware_version']
  const change = `update nodes set ${columns.map((name) => `${name} = ?`).join(', ')}`
  await expect(written(change, ...columns.map(() => wide))).rejects.toThrow('a row of nodes is too wide for D1')
  expect(existsSync(join(here.dataDir, 'files'))).toBe(false)
  // What was there before stays.
  await expect(writeForD1(restoreOptions(here.dataDir), 'x', here.dataDir)).rejects.toThrow('cannot be created')
  expect(existsSync(here.database)).toBe(true)
})
