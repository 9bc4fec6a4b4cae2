import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { readConnections } from '../../../src/app/connections/connections.ts'
import { readPushKeys } from '../../../src/app/alerts/destinations/push-keys.ts'
import { resealAll } from '../../../src/app/system/reseal.ts'
import { eachTurn } from '../../../src/app/base/pacing/slices.ts'
import { storeRestoredAccess, unknownRestoredAccess } from '../../../src/app/system/restore/restored-access.ts'
import { createTestApp, START, type TestApp, USER_PASSWORD } from '../../support/app.ts'
import { outcomeOf } from '../../support/answers.ts'
import { cookieClient, enrol } from '../../support/factors/cookie-client.ts'
import { codeAt } from '../../support/factors/oathtool.ts'

const [OLD, NEW, OTHER] = ['s'.repeat(40), 'n'.repeat(40), 'o'.repeat(40)]

let app: TestApp
beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

function restart(...secrets: string[]): void {
  Object.assign(app.ports, { config: { ...app.ports.config, SESSION_SECRET: secrets } })
}

test('with new,old everything is sealed again under new, and old can be removed', async () => {
  const { secret } = await enrol(app, await app.user('anna'))
  const keys = await readPushKeys(app.ports)
  restart(NEW, OLD)
  await resealAll(app.ports, eachTurn)
  expect(JSON.parse(app.logged.at(-1) ?? '')).toMatchObject({ resealed: 2, unreadable: 0 })
  restart(NEW)
  expect(await readPushKeys(app.ports)).toEqual(keys)
  app.clock.advance(60_000)
  const anna = cookieClient(app)
  await anna.send('POST', '/api/auth/login', { username: 'anna', password: USER_PASSWORD })
  const code = codeAt(secret, app.clock.now)
  expect(await outcomeOf(anna.send('POST', '/api/auth/login/totp', { code }))).toBe('200')
})

test('the address and the password of a connection are sealed again, too', async () => {
  const connecting = { environment: [], probe: vi.fn(), candidates: vi.fn() }
  Object.assign(app.ports, { connecting })
  const admin = await app.admin()
  const settings = { url: 'mqtt://broker.example', username: 'club', password: 'a hidden word' }
  expect((await admin.send('POST', '/api/connections', { name: 'broker', kind: 'mqtt', settings })).status).toBe(201)
  restart(NEW, OLD)
  await resealAll(app.ports, eachTurn)
  restart(NEW)
  const [stored] = await readConnections(app.ports)
  expect(stored?.target?.settings).toMatchObject(settings)
  restart(OTHER)
  expect((await readConnections(app.ports))[0]?.target).toBeNull()
})

test('the app that a restore replaced is sealed again too, so that it can be put back without the old secret', async () => {
  const anna = await app.user('anna')
  const { secret } = await enrol(app, anna)
  const { seed } = Object(app.store.sqlite.prepare('select seed from totp_factors').get())
  // As after a restore of a backup from before the app was set up.
  app.store.sqlite.exec('delete from totp_factors; delete from recovery_codes')
  const to = { seed, lastStep: 0, createdAt: 1, lastUsedAt: null }
  const [lost] = storeRestoredAccess(
    app.store,
    [
      {
        ...unknownRestoredAccess('2026-01-01_000000'),
        action: 'second_factor_added',
        userId: anna.id,
        username: 'anna',
        undone: { repeat: 'set_totp', from: null, to, codes: [] },
      },
    ],
    START,
  ).slice(1)
  if (lost === undefined) throw new Error('nothing to store')
  await app.store.atomic([lost])
  restart(NEW, OLD)
  await resealAll(app.ports, eachTurn)
  expect(JSON.parse(app.logged.at(-1) ?? '')).toMatchObject({ resealed: 1, unreadable: 0 })
  restart(NEW)
  const admin = await app.admin()
  const reapplied = await admin.send('POST', '/api/system/restore/reapply', { ids: [1] })
  expect(await reapplied.json()).toStrictEqual({ reapplied: [1], refused: [] })
  const half = cookieClient(app)
  await half.send('POST', '/api/auth/login', { username: 'anna', password: USER_PASSWORD })
  const code = codeAt(secret, app.clock.now)
  expect(await outcomeOf(half.send('POST', '/api/auth/login/totp', { code }))).toBe('200')
})

test('a second run changes nothing, one secret does nothing, and what no secret opens stays', async () => {
  await enrol(app, await app.user('anna'))
  const seed = () => app.store.sqlite.prepare('select seed from totp_factors').get()
  const before = seed()
  const logged = app.logged.length
  await resealAll(app.ports, eachTurn)
  expect(app.logged).toHaveLength(logged)
  restart(OTHER, NEW)
  await resealAll(app.ports, eachTurn)
  expect(seed()).toEqual(before)
  expect(JSON.parse(app.logged.at(-1) ?? '')).toMatchObject({ resealed: 0, unreadable: 1 })
  restart(NEW, OLD)
  await resealAll(app.ports, eachTurn)
  const once = seed()
  await resealAll(app.ports, eachTurn)
  expect(seed()).toEqual(once)
  expect(once).not.toEqual(before)
})

test('it goes on in slices: every user of many', async () => {
  const { secret } = await enrol(app, await app.user('anna'))
  app.store.sqlite.exec(`with recursive n(i) as (select 100 union all select i + 1 from n where i < 260)
    insert into users (id, username, auth_provider, created_at) select i, 'user ' || i, 'local', 0 from n`)
  app.store.sqlite.exec(`insert into totp_factors (user_id, seed, last_step, created_at)
    select id, 'unreadable', 0, 0 from users where id >= 100`)
  restart(NEW, OLD)
  let pauses = 0
  await resealAll(app.ports, async () => ++pauses > 0)
  expect(pauses).toBe(3)
  expect(JSON.parse(app.logged.at(-1) ?? '')).toMatchObject({ resealed: 1, unreadable: 161 })
  expect(secret).toMatch(/^[A-Z2-7]+$/)
})
