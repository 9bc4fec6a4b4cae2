import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { deleteTrimmed, GENESIS, sealAudit } from '../../../src/app/audit/chain.ts'
import { trimAudit } from '../../../src/app/audit/trim.ts'
import { verifyChain } from '../../../src/app/audit/verify.ts'
import { readExport } from '../../../src/node/console/audit-file.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { createTestApp, START, type TestApp } from '../../support/app.ts'
import { buildCli, runCli } from '../../support/built/built-service.ts'

const DAY_MS = 86_400_000

let file: string
beforeAll(() => {
  file = buildCli()
})

let dir: string
let app: TestApp
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-audit-'))
  app = await createTestApp({ store: openDatabase(join(dir, 'mesh.db')) })
})
afterEach(() => {
  app.close()
  rmSync(dir, { recursive: true })
})

const cli = (...args: string[]) => runCli(file, ['audit', ...args], { DATA_DIR: dir })

/** One entry a day, with names that a table must escape and names that look escaped. */
function fill(count: number) {
  const insert = app.store.sqlite.prepare(
    `insert into audit_log (timestamp, username, action, resource, details, ip, request_id)
      values (?, ?, 'login_failed', 'auth', ?, ?, ?)`,
  )
  const names = ['=1+1', "'=1+1", 'plain', 'a "quoted", b', 'two\nlines', '', null, '\u2028']
  for (let i = 0; i < count; i++) {
    const name = names[i % names.length]
    insert.run(START + i * DAY_MS, name, JSON.stringify({ name, 2: 1, 1: [2] }), i % 3 === 0 ? '' : null, `r${i}`)
  }
}

async function exported(format: string, query = ''): Promise<string> {
  const admin = await app.admin()
  const answer = await admin.send('GET', `/api/audit/export?format=${format}${query}`)
  const file = join(dir, `audit.${format}`)
  writeFileSync(file, await answer.text())
  return file
}

test.each(['csv', 'ndjson'])('an export as %s contains its proof', async (format) => {
  fill(1100)
  await sealAudit(app.store)
  const hash = (id: number) =>
    app.store.sqlite.prepare<[number], string>('select hash from audit_log where id = ?').pluck().get(id)
  const file = await exported(format)
  const proof = { entries: 1102, firstId: 1, lastId: 1102, previousHash: GENESIS, isComplete: true }
  expect(await readExport(file)).toStrictEqual({ ...proof, lastHash: hash(1102) })
  expect(await readExport(await exported(format, `&from=${START + DAY_MS}&to=${START + 5 * DAY_MS}`))).toStrictEqual({
    entries: 5,
    firstId: 3,
    lastId: 7,
    previousHash: hash(2),
    lastHash: hash(7),
    isComplete: true,
  })
  const selection = await readExport(await exported(format, '&q=plain'))
  expect(selection).toMatchObject({ firstId: 4, isComplete: false })
  const text = readFileSync(await exported(format), 'utf8')
  for (const [from, to] of [
    ['plain', 'plane'],
    ['r500', 'r501'],
    [hash(500) ?? '', GENESIS],
  ] as const) {
    writeFileSync(file, text.replace(from, to))
    await expect(readExport(file)).rejects.toThrow(/^Broken: entry \d+ /)
  }
  writeFileSync(file, 'anything\nat all\n')
  await expect(readExport(file)).rejects.toThrow(/not (?:an entry|those) of an export/)
})

test('old entries are trimmed after they were written to a file, and the log records it', async () => {
  fill(20)
  const file = join(dir, 'old.csv')
  const day = new Date(START + 10 * DAY_MS).toISOString().slice(0, 10)
  const trimmed = await cli('trim', '--before', day, '--export', file)
  expect(trimmed).toMatchObject({
    code: 0,
    err: '',
    out: expect.stringContaining('Trimmed: 11 entries, from 1 to 11,'),
  })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const proof = await readExport(file)
  expect(proof).toMatchObject({ entries: 11, firstId: 1, lastId: 11, previousHash: GENESIS, isComplete: true })
  const [first, newest] = [
    app.store.sqlite.prepare('select min(id) as id from audit_log').get(),
    app.store.sqlite.prepare('select username, details from audit_log order by id desc limit 1').get(),
  ]
  expect(first).toStrictEqual({ id: 12 })
  expect([Object(newest).username, JSON.parse(Object(newest).details)]).toStrictEqual([
    'system',
    { firstId: 1, lastId: 11, entries: 11, previousHash: GENESIS, lastHash: proof?.lastHash, file: 'old.csv' },
  ])
  const whole = await cli('verify')
  expect(whole).toMatchObject({ code: 0, err: '', out: expect.stringContaining('Trimmed: entries up to 11, of hash') })
  expect((await cli('verify', '--export', file)).code).toBe(0)
  expect(await cli('trim', '--before', day, '--export', join(dir, 'b'))).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Nothing/),
  })
  expect(existsSync(join(dir, 'b'))).toBe(false)
})

test.each([
  ['verify', ['--export', 'nothing.csv'], 1, 'does not exist'],
  ['trim', ['--before', 'yesterday', '--export', 'x'], 1, 'Expected --before with a past day'],
  ['trim', ['--before', '2999-01-01', '--export', 'x'], 1, 'Expected --before with a past day'],
  ['trim', ['--before', '2026-02-01'], 2, 'audit trim --before'],
  ['trim', ['--before', '2026-02-01', '--export', '/proc/no/such'], 1, 'cannot be created'],
])('%s %j ends with %i', async (name, args, code, reason) => {
  fill(3)
  expect(await cli(name, ...args)).toMatchObject({ code, out: '', err: expect.stringContaining(reason) })
})

test('nothing is trimmed from a broken log, into an existing file, or without a record', async () => {
  fill(20)
  await sealAudit(app.store)
  const file = join(dir, 'taken')
  writeFileSync(file, 'mine')
  const taken = await cli('trim', '--before', '2026-01-20', '--export', file)
  expect([taken.code, readFileSync(file, 'utf8')]).toStrictEqual([1, 'mine'])
  const { sqlite } = app.store
  const trigger = sqlite.prepare<[], string>("select sql from sqlite_schema where name = 'audit_log_no_update'").pluck()
  const sql = trigger.get() ?? ''
  sqlite.exec(`drop trigger audit_log_no_update; update audit_log set ip = 'x' where id = 4; ${sql}`)
  const broken = await cli('trim', '--before', '2026-01-20', '--export', join(dir, 'new'))
  expect(broken).toMatchObject({ code: 1, err: expect.stringContaining('Broken: entry 4 does not match its seal') })
  expect(existsSync(join(dir, 'new'))).toBe(false)
  expect(sqlite.prepare('select count(*) from audit_log').pluck().get()).toBe(21)
})

test('of two simultaneous trims one succeeds; the rows that a trim leaves are deleted later', async () => {
  fill(20)
  await sealAudit(app.store)
  const { until } = await verifyChain(app.store, { after: 0, limit: 10 })
  const part = { firstId: 1, lastId: 10, entries: 10, previousHash: GENESIS, lastHash: until?.hash ?? '' }
  const context = { ...app.ports, ip: null, requestId: null, viewer: null }
  app.store.sqlite.exec('create trigger slow before delete on audit_log begin select raise(ignore); end')
  await trimAudit(context, part, 'a')
  await expect(trimAudit(context, { ...part, lastId: 8 }, 'b')).rejects.toThrow('trimmed by another process')
  await sealAudit(app.store)
  const left = { entries: 12, broken: null, trimmed: { id: 10 }, until: { id: 22 } }
  expect(await verifyChain(app.store, { after: 0, limit: 100 })).toMatchObject(left)
  app.store.sqlite.exec('drop trigger slow')
  expect(await deleteTrimmed(app.store)).toBe(10)
  expect(await verifyChain(app.store, { after: 0, limit: 100 })).toMatchObject(left)
  expect(() => app.store.sqlite.exec('delete from audit_log where id = 11')).toThrow('append-only')
})
