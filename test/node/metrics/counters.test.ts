import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { databaseSessions } from '../../../src/app/accounts/sessions/database-sessions.ts'
import { memorySessions } from '../../../src/app/accounts/sessions/memory-sessions.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { openCounters } from '../../../src/node/metrics/counters.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { sessionStoreContract } from '../../contract/session-store.ts'
import { outcomeOf } from '../../support/answers.ts'
import { ADMIN_PASSWORD, auditRows, createTestApp } from '../../support/app.ts'

const HOUR = 3_600_000
const NOW = Date.UTC(2026, 0, 15, 12)

let dir: string
let logged: string[]
const endings: (() => void)[] = []
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-counters-'))
  logged = []
})
afterEach(() => {
  for (const end of endings.splice(0)) end()
  rmSync(dir, { recursive: true })
})

function opened() {
  const log = createLog({ level: 'debug', format: 'json', now: () => NOW, write: (line) => logged.push(line) })
  const { counters, close } = openCounters(dir, log)
  endings.push(close)
  return { counters, close }
}

sessionStoreContract('memory, with its counters in a file', () => memorySessions(opened().counters))

const file = () => join(dir, 'counters.db')

test('instances on one directory count together, and continue where the last one stopped', async () => {
  const [one, two] = [opened(), opened()]
  const counts = []
  for (let i = 0; i < 3; i++) {
    for (const { counters } of [one, two]) counts.push((await counters.hit('a', HOUR, NOW)).count)
  }
  expect(counts).toStrictEqual([1, 2, 3, 4, 5, 6])
  one.close()
  two.close()
  expect((await opened().counters.hit('a', HOUR, NOW)).count).toBe(7)
  expect(logged).toStrictEqual([])
})

test.each([
  ['is none', () => writeFileSync(file(), 'this was never a database, and it is long enough to be looked at')],
  ['was cut in two', () => truncateSync(file(), 5000)],
  [
    'has lost what a page held',
    () => writeFileSync(file(), Buffer.from(readFileSync(file())).fill(7, 4096 * 2, 4096 * 2 + 2000)),
  ],
])('a file that %s is created again', async (_how, ruin) => {
  const { counters, close } = opened()
  for (let i = 0; i < 500; i++) await counters.hit(`key ${i}`, HOUR, NOW)
  close()
  ruin()
  const anew = opened().counters
  expect((await anew.hit('key 1', HOUR, NOW)).count).toBe(1)
  expect((await anew.hit('key 1', HOUR, NOW)).count).toBe(2)
  expect(logged).toStrictEqual([])
})

test('without a usable file the process counts alone, and says so', async () => {
  mkdirSync(file())
  const { counters } = opened()
  expect((await counters.hit('a', HOUR, NOW)).count).toBe(1)
  expect((await counters.hit('a', HOUR, NOW)).count).toBe(2)
  expect(logged).toMatchObject([expect.stringContaining('Attempts are counted in memory')])
})

test('a file that fails later has the same effect, logged once', async () => {
  const { counters } = opened()
  await counters.hit('a', HOUR, NOW)
  const other = new Database(file())
  other.exec('drop table rate_limits')
  other.close()
  const counts = []
  for (let i = 0; i < 3; i++) counts.push((await counters.hit('a', HOUR, NOW)).count)
  await counters.forgive('a', 'one')
  await counters.sweep(NOW)
  counts.push((await counters.hit('a', HOUR, NOW)).count)
  expect(counts).toStrictEqual([1, 2, 3, 3])
  expect(logged).toMatchObject([expect.stringContaining('Attempts are counted in memory')])
})

describe('requests that anybody can send wait for no disk', () => {
  /** A service on files; `levels` has the levels of `synchronous` at which its database recorded something. */
  async function watched() {
    const store = openDatabase(join(dir, 'mesh.db'))
    const app = await createTestApp({ store, ports: { sessions: databaseSessions(store, opened().counters) } })
    endings.push(() => app.close())
    store.sqlite.exec(`create temp table levels (level integer);
      create temp trigger watch after insert on audit_log begin
        insert into levels select synchronous from pragma_synchronous; end`)
    const levels = () => store.sqlite.prepare('select level from levels').pluck().all()
    return { app, levels }
  }
  const [NORMAL, FULL] = [1, 2]

  test('a refused login waits for no disk, before and after the limit', async () => {
    const { app, levels } = await watched()
    const login = (password: string) =>
      outcomeOf(app.client().send('POST', '/api/auth/login', { username: 'admin', password }))
    const before = auditRows(app).length
    for (let i = 0; i < 10; i++) expect(await login('wrong')).toBe('401 invalid_credentials')
    // The limit leaves one entry per window, which does not wait for the disk either.
    expect(await login('wrong')).toBe('429 rate_limited')
    await expect.poll(levels).toStrictEqual(Array.from({ length: 11 }, () => NORMAL))
    const written = app.store.sqlite.prepare('select total_changes()').pluck()
    const changes = written.get()
    for (let i = 0; i < 4; i++) expect(await login('wrong')).toBe('429 rate_limited')
    expect(written.get()).toBe(changes)
    const other = new Database(join(dir, 'mesh.db'))
    expect(other.prepare("select count(*) from audit_log where action = 'login_failed'").pluck().get()).toBe(11)
    other.close()
    expect(auditRows(app)).toHaveLength(before + 11)
  })

  test('a sign-in waits for the disk, also after refusals', async () => {
    const { app, levels } = await watched()
    expect(await outcomeOf(app.client().send('POST', '/api/auth/login', { username: 'admin', password: 'x' }))).toBe(
      '401 invalid_credentials',
    )
    await app.signIn('admin', ADMIN_PASSWORD)
    expect(levels()).toStrictEqual([NORMAL, FULL])
  })
})
