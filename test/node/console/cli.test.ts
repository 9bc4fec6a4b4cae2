import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createLog } from '../../../src/app/base/log.ts'
import { openCounters } from '../../../src/node/metrics/counters.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { redisSessions } from '../../../src/node/redis/sessions.ts'
import { buildCli, runCli } from '../../support/built/built-service.ts'
import { writePlanet } from '../../support/maps/planet.ts'
import { end, startPlanetServer } from '../../support/maps/planet-server.ts'
import { startRedis } from '../../support/servers/redis.ts'

let file: string
let dir: string

beforeAll(() => {
  file = buildCli()
})

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-cli-'))
  const store = openDatabase(join(dir, 'mesh.db'))
  store.sqlite.exec(
    `insert into users (username, auth_provider, oidc_issuer, created_at) values ('ola', 'oidc', 'https://id.example.org', 1);
      insert into identities (user_id, issuer, subject, created_at)
        select id, oidc_issuer, 'subject', 1 from users where username = 'ola'`,
  )
  store.close()
})

afterEach(() => rmSync(dir, { recursive: true }))

const cli = (args: string[], env: Record<string, string> = {}) => runCli(file, args, { DATA_DIR: dir, ...env })

function rows(sql: string): unknown[] {
  const store = openDatabase(join(dir, 'mesh.db'))
  try {
    return store.sqlite.prepare(sql).all()
  } finally {
    store.close()
  }
}

test('a lost administrator comes back: create, promote, reset, each audited as done by the system', async () => {
  const made = await cli(['create-admin', 'root'])
  expect(made).toMatchObject({ code: 0, err: '' })
  expect(made.out).toMatch(/^Sign in as root with the temporary password {2}[A-Za-z0-9]{20}\n$/)
  expect(await cli(['promote', 'OLA'])).toMatchObject({ code: 0, out: 'ola is an administrator\n' })
  const reset = await cli(['reset-password', 'root'])
  expect(reset.code).toBe(0)
  expect(reset.out).not.toBe(made.out)
  const [ola = '', root = '', ...none] = (await cli(['list'])).out.split('\n')
  expect(none).toStrictEqual([''])
  expect(ola).toMatch(/ ola +oidc +admin +active +never signed in https:\/\/id\.example\.org$/)
  expect(root).toMatch(/ root +local +admin +active +never signed in$/)
  expect(rows('select username, is_admin, must_change_password, session_epoch from users order by id')).toStrictEqual([
    { username: 'ola', is_admin: 1, must_change_password: 0, session_epoch: 0 },
    { username: 'root', is_admin: 1, must_change_password: 1, session_epoch: 1 },
  ])
  expect(rows('select username, action, ip from audit_log order by id')).toStrictEqual([
    { username: 'system', action: 'user_created', ip: null },
    { username: 'system', action: 'admin_status_changed', ip: null },
    { username: 'system', action: 'password_reset', ip: null },
  ])
})

test('the list shows the providers of each user, without what a terminal would obey', async () => {
  const store = openDatabase(join(dir, 'mesh.db'))
  store.sqlite.exec(
    `insert into identities (user_id, issuer, subject, created_at) values (1, 'https://\u001b[2J\u009bclub.example', 's', 1)`,
  )
  store.close()
  const { out } = await cli(['list'])
  expect(out).toMatch(/ never signed in https:\/\/id\.example\.org https:\/\/\[2Jclub\.example\n$/)
})

describe('a reset password clears failed sign-ins, also of a running service', () => {
  const WINDOW_MS = 900_000
  const counters = () => {
    const log = createLog({ level: 'warn', format: 'json', now: Date.now, write: () => {} })
    return openCounters(dir, log)
  }

  test('with counters in DATA_DIR', async () => {
    await cli(['create-admin', 'root'])
    const { counters: running, close } = counters()
    const count = async (key: string) => (await running.hit(key, WINDOW_MS, Date.now())).count
    expect(rows("select id from users where username = 'root'")).toEqual([{ id: 2 }])
    const ofRoot = ['login:account:root', 'login:browser:2:x', 'login:browsers:2', 'password:user:2']
    const cleared = [...ofRoot, 'login:address:192.0.2.1']
    const kept = ['login:account:rooted', 'login:browser:1:x', 'login:browser:22:x', 'oidc:used:x']
    for (const key of [...cleared, ...kept]) for (let i = 0; i < 10; i++) await count(key)
    expect((await cli(['reset-password', 'ROOT'])).code).toBe(0)
    for (const key of cleared) expect(await count(key), key).toBe(1)
    for (const key of kept) expect(await count(key), key).toBe(11)
    close()
  })

  test('with counters in Redis, which need not answer', async () => {
    await cli(['create-admin', 'root'])
    const redis = await startRedis()
    const env = { SESSION_STORE: 'redis', REDIS_URL: redis.url }
    const log = createLog({ level: 'warn', format: 'json', now: Date.now, write: () => {} })
    const running = await redisSessions(redis.url, 'mesh:', log)
    const count = async () => (await running.store.hit('login:account:root', WINDOW_MS, Date.now())).count
    for (let i = 0; i < 10; i++) await count()
    expect(await cli(['reset-password', 'root'], env)).toMatchObject({ code: 0, err: '' })
    expect(await count()).toBe(1)
    await running.close()
    await redis.stop()
    const alone = await cli(['reset-password', 'root'], env)
    expect(alone).toMatchObject({ code: 0, out: expect.stringContaining('temporary password') })
    expect(alone.err).toContain('Failed sign-ins still count')
  })
})

test.each([
  [['promote', 'nobody'], 1, 'There is no user "nobody"'],
  [['reset-password', 'ola'], 1, 'Not a local user'],
  [['create-admin', 'no spaces'], 1, 'A username is 1–64 letters'],
  [['create-admin'], 2, 'create-admin <username>'],
  [['list', 'more'], 2, 'create-admin <username>'],
  [['destroy', 'all'], 2, 'create-admin <username>'],
])('%j is refused with %i and a reason, and nothing changes', async (args, code, reason) => {
  const before = rows('select * from users')
  const answer = await cli(args)
  expect(answer).toMatchObject({ code, out: '' })
  expect(answer.err).toContain(reason)
  expect(rows('select * from users')).toStrictEqual(before)
  expect(rows('select * from audit_log')).toStrictEqual([])
})

test('a directory without a database does not become one', async () => {
  const answer = await cli(['list'], { DATA_DIR: join(dir, 'elsewhere') })
  expect(answer).toMatchObject({ code: 1, out: '' })
  expect(answer.err).toContain('does not exist')
})

test('audit verify reports whether the log is intact, up to where, and where it breaks', async () => {
  await cli(['create-admin', 'root'])
  await cli(['promote', 'ola'])
  await cli(['reset-password', 'root'])
  const whole = await cli(['audit', 'verify'])
  expect(whole).toMatchObject({ code: 0, err: '' })
  expect(whole.out).toMatch(/^Intact: 3 entries, up to entry 3 of \S+Z\nHash of entry 3: [0-9a-f]{64}\n$/)
  const store = openDatabase(join(dir, 'mesh.db'))
  store.sqlite.exec("drop trigger audit_log_no_update; update audit_log set username = 'nobody' where id = 2")
  store.close()
  const broken = await cli(['audit', 'verify'])
  expect(broken).toMatchObject({ code: 1, err: '' })
  expect(broken.out).toMatch(/^Broken: entry 2 does not match its seal; intact up to entry 1 of /)
  for (const args of [['audit'], ['audit', 'verify', 'more'], ['audit', 'nothing']]) {
    expect(await cli(args)).toMatchObject({ code: 2, out: '', err: expect.stringContaining('audit verify') })
  }
})

test('a map of the region is measured, downloaded and deleted', async () => {
  const planet = await startPlanetServer(writePlanet(5, 'first', () => true).bytes)
  const env = { MAP_ARCHIVE_URL: `${planet.url}/planet.pmtiles` }
  try {
    expect(await cli(['map', 'fetch'], env)).toMatchObject({
      code: 1,
      err: 'No node has a position: name the region with --bounds\n',
    })
    const store = openDatabase(join(dir, 'mesh.db'))
    store.sqlite.exec('insert into nodes (node_num, latitude, longitude, first_heard) values (101, 50, 11, 1)')
    store.close()
    const measured = await cli(['map', 'fetch', '--dry-run', '--zoom', '5'], env)
    const region = `Region 10.9581,49.9731,11.0419,50.0269 up to zoom level 5, from ${planet.url.slice(7)}\n`
    expect([measured.code, measured.out]).toEqual([0, expect.stringMatching(/, 6 tiles; [\d.,]+ MB of the disk/)])
    expect(measured.out.startsWith(region)).toBe(true)
    expect(existsSync(join(dir, 'maps/region.pmtiles'))).toBe(false)
    const named = ['map', 'fetch', '--bounds', '-11,51,-4,56', '--zoom', '5']
    expect(await cli(named, env)).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringMatching(/\nComplete: \d+ kB\n$/),
    })
    planet.lie = (answer) => end(answer, 404)
    const why = 'The planet archive is not at the address in MAP_ARCHIVE_URL\n'
    expect(await cli(named, env)).toMatchObject({ code: 1, err: why })
    expect(existsSync(join(dir, 'maps/region.pmtiles'))).toBe(true)
    expect(await cli(['map', 'remove'], env)).toMatchObject({ code: 0, out: 'The map of the region is deleted\n' })
    expect(await cli(['map', 'remove'], env)).toMatchObject({ code: 1, err: 'Not found\n' })
    const log =
      "select username, json_extract(details, '$.step') as step from audit_log where action = 'map_region_updated'"
    expect(rows(log)).toEqual(['started', 'finished', 'removed'].map((step) => ({ username: 'system', step })))
  } finally {
    await planet.close()
  }
  for (const wrong of [
    [],
    ['fetch', '--bounds', '1,2,3'],
    ['fetch', '--zoom', 'x'],
    ['fetch', '--dry-run', '--dry-run'],
    ['remove', 'x'],
  ]) {
    expect((await cli(['map', ...wrong], env)).code).toBe(2)
  }
  const crossing = await cli(['map', 'fetch', '--bounds', '170,-20,-170,-10'], env)
  expect([crossing.code, crossing.err]).toEqual([1, expect.stringContaining('cannot cross the 180th meridian')])
})
