import { beforeEach, expect, test } from 'vitest'
import type { Backups } from '../../../../src/app/system/backup/backup.ts'
import type { Disk } from '../../../../src/app/base/pacing/disk.ts'
import type { LinkInfo } from '../../../../src/app/mesh/radios/radio.ts'
import type { InstanceInfo } from '../../../../src/app/system/status/instances.ts'
import { sampleStorage } from '../../../../src/app/system/status/storage.ts'
import { ADMIN_PASSWORD, createTestApp, NO_RADIO, START, type TestApp } from '../../../support/app.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const GB = 1_000_000_000

const LINK: LinkInfo = {
  name: '192.0.2.8:4403',
  kind: 'tcp',
  state: 'waiting',
  since: START - 90,
  lastFrameAt: START - HOUR,
  reconnects: 4,
  reason: 'nobody listens there',
  radio: { nodeNum: 7, firmwareVersion: '2.7.1', hwModel: 'RAK4631', role: 'CLIENT' },
  queue: { free: 3, maxlen: 16 },
  txEnabled: true,
  notice: null,
}

let app: TestApp
const space = { total: 32 * GB, free: 20 * GB, spare: 5000 }
let isFull = false
const disk: Disk = { isFull: () => isFull, makeRoom() {}, space: () => space }

beforeEach(() => {
  Object.assign(space, { free: 20 * GB })
  isFull = false
})

async function read(of: TestApp = app): Promise<Record<string, unknown>> {
  const answer = await (await of.admin()).send('GET', '/api/system')
  expect(answer.status).toBe(200)
  return Object(await answer.json())
}

const codes = async (of: TestApp = app) =>
  Object(await read(of)).problems.map(({ code, subject }: { code: string; subject: string | null }) =>
    subject === null ? code : `${code} ${subject}`,
  )

test('a runtime without disk, radio and backups says what it knows', async () => {
  app = await createTestApp({ ports: { radio: null } })
  const size = Number(app.store.sqlite.pragma('page_count', { simple: true })) * 4096
  expect(await read()).toStrictEqual({
    now: START,
    version: '1.2.3',
    startedAt: START,
    problems: [],
    release: null,
    clock: null,
    storage: { databaseBytes: size, limitBytes: null, disk: null, roomBytes: null, forecast: null, samples: [] },
    retention: { tables: expect.any(Array), database: { usedBytes: null, limitBytes: null, isLarge: false } },
    backups: null,
    links: [],
    collector: null,
    anchor: null,
    instances: null,
    queues: { ingest: null, sending: null, collector: null, anchor: null, alerts: 0, alertsFailingSince: null },
    signIns: { failed: 0 },
    runs: [],
  })
})

test('only administrators read it', async () => {
  app = await createTestApp()
  const user = await app.user('somebody', { settings: { read: true, write: true }, info: { read: true, write: false } })
  expect((await app.request('/api/system')).status).toBe(401)
  expect((await user.send('GET', '/api/system')).status).toBe(403)
  for (const scope of ['metrics', 'backup']) {
    const made = await (await app.admin()).send('POST', '/api/tokens', { name: scope, scopes: [scope] })
    const { token } = Object(await made.json())
    expect((await app.request('/api/system', { headers: { authorization: `Bearer ${token}` } })).status).toBe(403)
  }
})

test('links are shown by an allow-list, and one that is down is a problem', async () => {
  const radio = { ...NO_RADIO, links: () => [LINK], waiting: () => 17, sending: () => 3 }
  app = await createTestApp({ ports: { radio } })
  const { name, kind, state, since, lastFrameAt, reconnects, reason } = LINK
  expect(await read()).toMatchObject({ queues: { ingest: 17, sending: 3 } })
  expect((await read())['links']).toStrictEqual([{ name, kind, state, since, lastFrameAt, reconnects, reason }])
  expect(await codes()).toStrictEqual(['link_down 192.0.2.8:4403'])
})

test('a link that connects for the first time is no problem', async () => {
  const links = () => [{ ...LINK, state: 'handshake' as const, reason: null }]
  app = await createTestApp({ ports: { radio: { ...NO_RADIO, links } } })
  expect(await codes()).toStrictEqual([])
})

test('the storage is measured every three hours for a week, and a disk that fills up is told in time', async () => {
  app = await createTestApp({ ports: { disk } })
  for (let hour = 0; hour < 8 * 24; hour += 1) {
    space.free = 20 * GB - (hour * GB) / 24
    await sampleStorage(app.ports)
    app.clock.advance(HOUR)
  }
  const { storage } = Object(await read())
  expect(storage.disk).toStrictEqual({ totalBytes: 32 * GB, freeBytes: space.free, isFull: false })
  expect(storage.roomBytes).toBe(space.free + 5000)
  expect(storage.samples).toHaveLength(56)
  expect(storage.samples.at(-1).at - storage.samples[0].at).toBe(55 * 3 * HOUR)
  expect(storage.forecast.bytesPerDay).toBe(GB)
  expect((storage.forecast.fullAt - app.clock.now) / DAY).toBeCloseTo(12, 0)
  expect(await codes()).toStrictEqual(['disk_filling'])
  isFull = true
  expect(await codes()).toStrictEqual(['disk_full'])
})

test('samples of a clock that was ahead are dropped', async () => {
  app = await createTestApp({ ports: { disk } })
  app.clock.advance(1000 * DAY)
  await sampleStorage(app.ports)
  app.clock.advance(-1000 * DAY)
  await sampleStorage(app.ports)
  expect(Object(await read()).storage.samples.map(({ at }: { at: number }) => at)).toStrictEqual([START])
})

test('little room is a problem without any forecast, and so is a database near the limit of its platform', async () => {
  space.free = 200_000_000
  app = await createTestApp({ ports: { disk } })
  expect(await codes()).toStrictEqual(['disk_filling'])
  const within = (limitBytes: number) =>
    createTestApp({ ports: { store: { ...app.store, space: async () => ({ usedBytes: 7e9, limitBytes }) } } })
  expect(await codes(await within(10e9))).toStrictEqual(['disk_filling'])
  const roomy = await within(20e9)
  expect(await codes(roomy)).toStrictEqual([])
  expect(await read(roomy)).toMatchObject({ storage: { limitBytes: 20e9, roomBytes: 13e9, disk: null } })
})

test('deletion that is more than a day late is a problem', async () => {
  app = await createTestApp()
  const late = START - 30 * DAY - DAY - 1000
  app.store.sqlite.prepare("insert into sweeps values ('telemetry', null, ?, ?)").run(late, late)
  const { retention } = Object(await read())
  expect(retention.tables).toContainEqual(
    expect.objectContaining({ table: 'telemetry', lagSeconds: 86_401, isLate: true }),
  )
  expect(await codes()).toStrictEqual(['retention_late telemetry'])
})

test('a table that keeps less than is set is a problem', async () => {
  app = await createTestApp()
  app.store.sqlite.exec(`insert into retention_plans values ('telemetry', 60000000, 6187500, 10000000000, ${START})`)
  const { retention } = Object(await read())
  expect(retention.tables).toContainEqual(expect.objectContaining({ table: 'telemetry', setDays: 30, keptDays: 10 }))
  expect(await codes()).toStrictEqual(['retention_short telemetry'])
})

const backup = { name: '2026-01-15_030000', createdAt: START - 9 * HOUR, kind: 'manual', sizeBytes: 4096 }

async function withBackups(list: readonly object[], schedule: object | null, run: object | null): Promise<TestApp> {
  const backups: Backups = Object({ list: async () => list, running: () => null, nextRun: () => START + HOUR })
  const made = await createTestApp({ ports: { backups } })
  const put = made.store.sqlite.prepare('insert into settings values (?, ?, 1)')
  if (schedule !== null) put.run('backup.settings', JSON.stringify(schedule))
  if (run !== null) put.run('backup.lastRun', JSON.stringify(run))
  return made
}
const DAILY = {
  enabled: true,
  maxBackups: 7,
  keepWeekly: 0,
  keepMonthly: 0,
  backupTime: '03:00',
  since: START - 9 * DAY,
}

test('backups: the last, the next, and all together', async () => {
  const run = { at: START - 9 * HOUR, ok: true, error: null, succeededAt: START - 9 * HOUR, failures: 0 }
  app = await withBackups([backup, { ...backup, createdAt: 1 }], DAILY, run)
  expect((await read())['backups']).toStrictEqual({
    count: 2,
    sizeBytes: 8192,
    last: backup,
    running: null,
    enabled: true,
    since: DAILY.since,
    nextRunAt: START + HOUR,
    lastRun: { at: run.at, ok: true, error: null },
    lastSuccessAt: run.at,
    restoreError: null,
  })
  expect(await codes()).toStrictEqual([])
})

test.each([
  ['none and no schedule', [], null, null, ['backup_off']],
  ['a recent one by hand', [backup], null, null, []],
  ['an old one by hand', [{ ...backup, createdAt: START - 8 * DAY }], null, null, ['backup_off']],
  ['a schedule that is new', [], { ...DAILY, since: START - HOUR }, null, []],
  ['a schedule that never ran', [], DAILY, null, ['backup_overdue']],
  [
    'a schedule that stopped',
    [backup],
    DAILY,
    { at: START - 2 * DAY, ok: true, error: null, succeededAt: START - 2 * DAY, failures: 0 },
    ['backup_overdue'],
  ],
  [
    'a run that failed',
    [backup],
    DAILY,
    { at: START - HOUR, ok: false, error: 'no space left', succeededAt: START - DAY, failures: 1 },
    ['backup_failed'],
  ],
])('backups: %s', async (_, list, schedule, run, problems) => {
  app = await withBackups(list, schedule, run)
  expect(await codes()).toStrictEqual(problems)
})

test('instances are listed, and one of them must have the lease', async () => {
  const self: InstanceInfo = { id: 'a1b2c3d4', isSelf: true, hasLease: true, seenAt: START }
  const other: InstanceInfo = { id: 'b1b2c3d4', isSelf: false, hasLease: false, seenAt: START - 4000 }
  app = await createTestApp({ ports: { instances: { list: () => [self, other] } } })
  expect((await read())['instances']).toStrictEqual([self, other])
  expect(await codes()).toStrictEqual([])
  const alone = await createTestApp({ ports: { instances: { list: () => [other] } } })
  expect(await codes(alone)).toStrictEqual(['nobody_on_duty'])
})

test('failed sign-ins of the last day are counted up to a bound', async () => {
  app = await createTestApp()
  const fail = async () => {
    const answer = await app.client().send('POST', '/api/auth/login', { username: 'admin', password: 'wrong' })
    expect(answer.status).toBe(401)
  }
  await fail()
  app.clock.advance(DAY)
  await fail()
  await fail()
  await app.signIn('admin', ADMIN_PASSWORD)
  expect(await read()).toMatchObject({ signIns: { failed: 2 } })
  app.store.sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 2000)
    insert into audit_log (timestamp, action, resource, details) select ${app.clock.now}, 'login_failed', 'auth', '{}' from i`)
  expect(await read()).toMatchObject({ signIns: { failed: 500 } })
})

test('alert messages that wait are counted, and those that go on failing are a problem', async () => {
  app = await createTestApp()
  const add = app.store.sqlite.prepare(`insert into alert_deliveries (uid, destination_id, owner_id, notification,
    state, attempts, created_at, due_at) values (?, 1, 1, 'fired', ?, ?, ?, ?)`)
  app.store.sqlite.exec(`insert into alert_destinations (id, uid, owner_id, name, kind, settings, enabled, failures,
    created_at, updated_at) values (1, 'd', 1, 'mine', 'webhook', '{}', 1, 3, 1, 1)`)
  add.run('a', 'waiting', 0, START - DAY, START)
  add.run('b', 'waiting', 2, START - 20 * 60_000, START + 1)
  add.run('c', 'delivered', 1, START - 2 * DAY, START)
  expect(await read()).toMatchObject({ queues: { alerts: 2, alertsFailingSince: START - 20 * 60_000 } })
  expect(await codes()).toStrictEqual(['alerts_waiting'])
})

test('an unconfirmed clock and a collector that is refused are problems; errors come first', async () => {
  const collector = () => ({
    target: 'mesh.example.org',
    state: 'refused' as const,
    waiting: 12,
    lastDeliveredAt: START,
    delivered: 90,
    dropped: 1,
    filtered: 4,
    reason: 'the target does not know the token (401)',
  })
  const clockWatch = Object({ state: () => ({ state: 'ahead', confirmed: START - 0.5 }), trusted: () => START })
  app = await createTestApp({ ports: { radio: { ...NO_RADIO, collector }, clockWatch } })
  expect(await codes()).toStrictEqual(['collector_failing mesh.example.org', 'clock_wrong'])
  expect((await read())['collector']).toStrictEqual({
    target: 'mesh.example.org',
    state: 'refused',
    lastDeliveredAt: START,
    reason: 'the target does not know the token (401)',
  })
  expect(await read()).toMatchObject({ queues: { collector: 12 }, clock: { state: 'ahead', confirmed: START } })
})
