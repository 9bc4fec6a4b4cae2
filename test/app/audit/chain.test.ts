import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { GENESIS, sealAudit } from '../../../src/app/audit/chain.ts'
import { checkAuditHead, findHeadDamage } from '../../../src/app/audit/head.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { verifyChain } from '../../../src/app/audit/verify.ts'
import { auditedBy, outcomeOf } from '../../support/answers.ts'
import { auditRows, type Client, createTestApp, START, type TestApp } from '../../support/app.ts'

let app: TestApp
beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

/** Adds entries until there are `count`. */
function fillTo(count: number) {
  app.store.sqlite
    .prepare(
      `with recursive more(n) as (select (select count(*) from audit_log) + 1 union all select n + 1 from more where n < ?)
        insert into audit_log (timestamp, user_id, username, action, resource, details, ip, request_id)
        select ${START} + n, 7, 'anna', 'node_updated', 'nodes', json_object('n', n), null, 'r' || n from more`,
    )
    .run(count)
}

/** Changes the log like somebody with access to the database file. */
function tamper(...statements: string[]) {
  const { sqlite } = app.store
  const triggers = sqlite
    .prepare<[], { name: string; sql: string }>(
      "select name, sql from sqlite_schema where type = 'trigger' and tbl_name like 'audit%'",
    )
    .all()
  for (const { name } of triggers) sqlite.exec(`drop trigger ${name}`)
  for (const statement of statements) sqlite.exec(statement)
  for (const { sql } of triggers) sqlite.exec(sql)
}

const verify = (after = 0, limit = 1_000_000) => verifyChain(app.store, { after, limit })

const hashes = () => app.store.sqlite.prepare<[], string | null>('select hash from audit_log order by id').pluck().all()

describe('the check at the start', () => {
  const recorded = () =>
    app.store.sqlite
      .prepare<[], string>("select details ->> 'damage' from audit_log where action = 'audit_damaged'")
      .pluck()
      .all()
  const lines: string[] = []
  const log = createLog({ level: 'info', format: 'json', now: () => START, write: (line) => lines.push(line) })
  const check = () => checkAuditHead({ store: app.store, log, now: () => START })

  test('finds nothing in an intact log', async () => {
    fillTo(1200)
    await sealAudit(app.store)
    await check()
    expect(recorded()).toStrictEqual([])
  })

  test.each([
    ["update audit_log set username = 'x' where id = 1190", 'entry 1190 is changed'],
    ['delete from audit_log where id > 1150', 'entry 1151 is missing'],
    ['delete from audit_log where id = 1150', 'entry 1150 is missing'],
  ])('after %j it logs and records once that %s', async (statement, damage) => {
    fillTo(1200)
    await sealAudit(app.store)
    tamper(statement)
    await check()
    await check()
    expect(recorded()).toStrictEqual([damage])
    expect(lines.splice(0).filter((line) => line.includes('THE AUDIT LOG IS DAMAGED'))).toHaveLength(2)
  })

  test('misses no trigger', async () => {
    const { sqlite } = app.store
    sqlite.exec('drop trigger audit_log_no_update')
    await check()
    expect(recorded()).toStrictEqual(['the triggers audit_log_no_update are missing, so entries could be changed'])
  })
})

describe('the check of the triggers at the start', () => {
  const NOT_OURS = 'its triggers are not those of this version, so entries could be changed or left out'
  const found = async (statements: string) => {
    app.store.sqlite.exec(statements)
    return findHeadDamage(app.store)
  }

  test.each([
    [
      'one that does nothing has the name of another',
      "create trigger audit_log_no_update before update on audit_log when 0 begin select raise(abort, ''); end",
    ],
    [
      'one of them was weakened',
      `create trigger audit_log_no_update before update on audit_log when old.hash is not null and new.id <> old.id
        begin select raise(abort, 'audit_log is append-only'); end`,
    ],
  ])('finds that %s', async (_, instead) => {
    expect(await found(`drop trigger audit_log_no_update; ${instead}`)).toBe(NOT_OURS)
  })

  test('finds one that leaves entries out', async () => {
    const ignores = `create trigger of_mine before insert on audit_log when new.action = 'login_success'
      begin select raise(ignore); end`
    expect([await found(''), await found(ignores)]).toEqual([null, NOT_OURS])
  })
})

describe('what the check found', () => {
  const log = createLog({ level: 'error', format: 'json', now: () => START, write: () => {} })
  const check = () => checkAuditHead({ store: app.store, log, now: () => START })
  const listed = async (client: Client) => Object(await (await client.send('GET', '/api/audit/damage')).json()).damages
  const confirm = (client: Client, id: number) => client.send('POST', '/api/audit/damage/confirm', { id })

  test('is shown to administrators until one of them confirms it, which is recorded', async () => {
    const admin = await app.admin()
    expect(await listed(admin)).toStrictEqual([])
    app.store.sqlite.exec('drop trigger audit_log_no_update')
    await check()
    const [first] = await listed(admin)
    expect(first).toStrictEqual({
      id: expect.any(Number),
      timestamp: START,
      damage: expect.stringContaining('missing'),
    })
    app.store.sqlite.exec('drop trigger audit_log_no_delete')
    await check()
    const both = await listed(admin)
    expect(both.map(({ id }: { id: number }) => id > first.id)).toStrictEqual([true, false])
    // What was found after the page was read stays.
    expect(await outcomeOf(confirm(admin, first.id))).toBe('204')
    expect(await listed(admin)).toStrictEqual([both[0]])
    const actions = await auditedBy(app, async () => {
      for (const id of [both[0].id, both[0].id, first.id]) expect(await outcomeOf(confirm(admin, id))).toBe('204')
    })
    expect(actions).toStrictEqual(['audit_damage_confirmed'])
    expect(await listed(admin)).toStrictEqual([])
    expect(auditRows(app).at(-1)).toMatchObject({ username: 'admin', details: { entryId: both[0].id } })
  })

  test('cannot be confirmed in an unattended browser, nor an entry that says something else', async () => {
    const admin = await app.admin()
    app.store.sqlite.exec('drop trigger audit_log_no_update')
    await check()
    const [{ id }] = await listed(admin)
    expect(await outcomeOf(confirm(admin, 1))).toBe('404 not_found')
    app.clock.advance(16 * 60_000)
    expect(await outcomeOf(confirm(admin, id))).toBe('403 reauthentication_required')
    expect(await listed(admin)).toHaveLength(1)
  })
})

describe('the chain', () => {
  test('is SHA-256 over the previous hash and the entry as a JSON array', async () => {
    app.store.sqlite
      .prepare(
        `insert into audit_log (timestamp, username, action, resource, details, ip)
          values (?, 'Zoë "z"', 'node_updated', 'nodes', '{ "b": 1.50, "a": "ü" }', '::1')`,
      )
      .run(START)
    await sealAudit(app.store)
    const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
    const first = sha256(
      `${GENESIS}\n[1,${START},null,"system","admin_bootstrapped","users",{"username":"admin","userId":1},null,null]`,
    )
    const second = sha256(
      `${first}\n[2,${START},null,"Zoë \\"z\\"","node_updated","nodes",{"b":1.5,"a":"ü"},"::1",null]`,
    )
    expect(hashes()).toStrictEqual([first, second])
  })

  test('continues where it ended, in slices, and names the entries that are not sealed yet', async () => {
    fillTo(450)
    expect(await sealAudit(app.store, async () => false)).toBe(100)
    expect(await verify()).toMatchObject({ entries: 450, until: { id: 100 }, unsealed: 350, broken: null })
    expect(await sealAudit(app.store)).toBe(350)
    fillTo(460)
    expect(await sealAudit(app.store)).toBe(10)
    expect(await sealAudit(app.store)).toBe(0)
    expect(await verify()).toMatchObject({ entries: 460, until: { id: 460 }, unsealed: 0, broken: null, next: null })
  })

  test('is the same when several instances seal at once', async () => {
    fillTo(1500)
    await Promise.all([sealAudit(app.store), sealAudit(app.store), sealAudit(app.store)])
    expect(await verify()).toMatchObject({ entries: 1500, until: { id: 1500 }, unsealed: 0, broken: null })
  })

  test('is verified in parts, each continuing from the one before', async () => {
    fillTo(1000)
    await sealAudit(app.store)
    const ends: unknown[] = []
    for (let next: number | null = 0; next !== null;) {
      const part = await verify(next, 300)
      ends.push([part.entries, part.until?.id, part.broken])
      next = part.next
    }
    expect(ends).toStrictEqual([
      [300, 300, null],
      [300, 600, null],
      [300, 900, null],
      [100, 1000, null],
    ])
  })

  test('is intact for an empty log', async () => {
    tamper('delete from audit_log')
    expect(await verify()).toStrictEqual({
      entries: 0,
      until: null,
      unsealed: 0,
      broken: null,
      trimmed: null,
      newestId: null,
      next: null,
    })
  })
})

describe('tampering with the file', () => {
  test.each([
    ["update audit_log set username = 'nobody' where id = 300", 300, 'changed'],
    ["update audit_log set details = '{}' where id = 300", 300, 'changed'],
    ['update audit_log set timestamp = timestamp + 1 where id = 1', 1, 'changed'],
    ['update audit_log set request_id = null where id = 600', 600, 'changed'],
    ["update audit_log set hash = printf('%064d', 7) where id = 600", 600, 'changed'],
    ['delete from audit_log where id = 300', 300, 'missing'],
    ['delete from audit_log where id between 300 and 400', 300, 'missing'],
    ['delete from audit_log where id = 1', 1, 'missing'],
    ['delete from audit_log where id = 600', 600, 'missing'],
    ['delete from audit_log where id > 200', 201, 'missing'],
    ['update audit_log set id = 10000 where id = 300', 300, 'missing'],
    ['update audit_log set hash = null where id = 300', 300, 'unsealed'],
    ["update audit_log set hash = null, username = 'nobody' where id >= 300", 300, 'unsealed'],
    [
      `update audit_chain set trimmed_id = 300, trimmed_hash = (select hash from audit_log where id = 300);
        delete from audit_log where id <= 300`,
      300,
      'trim_unrecorded',
    ],
  ])('is detected: %s', async (statement, id, reason) => {
    fillTo(600)
    await sealAudit(app.store)
    tamper(statement)
    await sealAudit(app.store)
    const until = reason === 'trim_unrecorded' || id === 1 ? null : { id: id - 1 }
    expect(await verify()).toMatchObject({ broken: { id, reason }, until, next: null })
  })

  test('is detected as a gap even before the entries are sealed', async () => {
    fillTo(50)
    tamper('delete from audit_log where id = 40')
    expect(await verify()).toMatchObject({ broken: { id: 40, reason: 'missing' }, unsealed: 39 })
    await sealAudit(app.store)
    expect(await verify()).toMatchObject({ broken: { id: 40, reason: 'missing' }, until: { id: 39 } })
  })
})

test('verifying a long log lets other work run between slices', async () => {
  fillTo(5000)
  let turns = 0
  const count = setInterval(() => turns++, 0)
  await sealAudit(app.store)
  const whileSealing = turns
  await verify()
  clearInterval(count)
  expect(whileSealing).toBeGreaterThan(10)
  expect(turns - whileSealing).toBeGreaterThan(10)
})
