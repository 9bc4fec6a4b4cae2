import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { auditRows, START } from '../../support/app.ts'
import { AREA, BATTERY, createTestAlerts, DAY, HOUR, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import { FAR, heard, LOCAL, myInfo, nodeInfo, packet, seconds, telemetry, text } from '../../support/mesh/mesh.ts'

let alerts: TestAlerts

beforeEach(async () => {
  alerts = await createTestAlerts()
})
afterEach(() => alerts.app.close())

const hear = (from: number, more: object = {}) =>
  alerts.ingest.store([heard(packet(text('hi'), { from, id: ++id, ...more }), { at: alerts.app.clock.now })])
let id = 1000

const SILENT = { kind: 'node_silent', name: 'Silent', nodes: { kind: 'all' }, afterMinutes: 15, tellResolved: true }
const numbers = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index)

describe('a silent node', () => {
  test('is reported when it falls silent, again while it stays silent, and when it returns', async () => {
    await hear(FAR)
    const destination = await alerts.webhook()
    await alerts.rule({ ...SILENT, destinations: [destination], repeatHours: 2 })
    await alerts.pass(14 * MINUTE)
    expect(alerts.sent).toHaveLength(0)
    await alerts.pass(2 * MINUTE)
    expect(alerts.bodies()).toMatchObject([{ type: 'alert.fired', data: { total: 1 } }])
    await alerts.pass(HOUR)
    expect(alerts.sent).toHaveLength(1)
    await alerts.pass(61 * MINUTE)
    expect(alerts.bodies().map(({ type }) => type)).toStrictEqual(['alert.fired', 'alert.repeated'])
    await hear(FAR)
    await alerts.pass(2 * MINUTE)
    expect(alerts.bodies().at(-1)).toMatchObject({ type: 'alert.resolved' })
    expect(await alerts.alerts()).toMatchObject([{ state: 'resolved', nodeNum: FAR, ruleName: 'Silent' }])
  })

  test.each([
    ['radios', 1],
    ['any', 0],
  ])('that somebody keeps alive at a broker is reported where %s counts: %d', async (heardBy, count) => {
    await hear(FAR)
    await alerts.rule({ ...SILENT, heardBy, destinations: [await alerts.webhook()] })
    const source = { kind: 'mqtt', name: 'mqtt://broker' } as const
    for (let minutes = 0; minutes < 16; minutes += 4) {
      await alerts.pass(4 * MINUTE)
      const forged = packet(text('alive'), { from: FAR, id: ++id, viaMqtt: true, rxRssi: undefined, rxSnr: 0 })
      await alerts.ingest.store([heard(forged, { at: alerts.app.clock.now, source })])
    }
    await alerts.pass(MINUTE)
    expect(alerts.sent).toHaveLength(count)
  })

  test('is not repeated once acknowledged, but its return is still reported', async () => {
    await hear(FAR)
    await alerts.rule({ ...SILENT, destinations: [await alerts.webhook()], repeatHours: 1 })
    await alerts.pass(16 * MINUTE)
    const [alert] = await alerts.alerts()
    const path = `/api/alerts/${String(alert?.['id'])}/acknowledge`
    expect((await alerts.admin.send('POST', path)).status).toBe(200)
    expect((await alerts.admin.send('POST', path)).status).toBe(200)
    await alerts.pass(3 * HOUR)
    expect(alerts.sent).toHaveLength(1)
    await hear(FAR)
    await alerts.pass(MINUTE)
    expect(alerts.bodies().map(({ type }) => type)).toStrictEqual(['alert.fired', 'alert.resolved'])
    expect(auditRows(alerts.app).filter(({ action }) => action === 'alert_acknowledged')).toHaveLength(1)
  })

  test('is counted only while the radio is connected: an hour without it gives one alert', async () => {
    for (const nodeNum of numbers(5000, 300)) await hear(nodeNum)
    const destinations = [await alerts.webhook()]
    await alerts.rule({ ...SILENT, destinations })
    await alerts.rule({ kind: 'link', name: 'Radio', afterMinutes: 10, destinations })
    const [link] = alerts.links
    if (link === undefined) throw new Error('no link')
    Object.assign(link, { state: 'waiting', since: alerts.app.clock.now })
    await alerts.pass(HOUR)
    expect(alerts.bodies()).toMatchObject([{ type: 'alert.fired', data: { title: 'Radio' } }])
    Object.assign(link, { state: 'connected', since: alerts.app.clock.now })
    await alerts.pass(14 * MINUTE)
    expect(alerts.bodies().map(({ type }) => type)).toStrictEqual(['alert.fired', 'alert.resolved'])
  })

  test('is reported in one message together with three hundred others', async () => {
    for (const nodeNum of numbers(5000, 300)) await hear(nodeNum)
    await alerts.rule({ ...SILENT, destinations: [await alerts.webhook()] })
    await alerts.pass(20 * MINUTE)
    expect(alerts.bodies()).toMatchObject([{ type: 'alert.fired', data: { total: 300 } }])
    expect(alerts.bodies()[0]?.data.text).toMatch(/^300 nodes are silent:/)
  })

  test('keeps its alert firing, marked as inhibited, while its radio is down', async () => {
    await hear(FAR)
    await alerts.rule({ ...SILENT, destinations: [await alerts.webhook()] })
    await alerts.pass(16 * MINUTE)
    Object.assign(alerts.links[0] ?? {}, { state: 'waiting', since: alerts.app.clock.now })
    await alerts.pass(2 * HOUR)
    expect(await alerts.alerts()).toMatchObject([{ state: 'firing', inhibited: true }])
    expect(alerts.sent).toHaveLength(1)
  })

  test('under a silenced rule is reported when the silence ends', async () => {
    await hear(FAR)
    const silencedUntil = START + HOUR
    await alerts.rule({ ...SILENT, destinations: [await alerts.webhook()], silencedUntil })
    await alerts.pass(50 * MINUTE)
    expect(await alerts.alerts()).toMatchObject([{ state: 'firing', notifiedAt: null }])
    expect(alerts.sent).toHaveLength(0)
    await alerts.pass(15 * MINUTE)
    expect(alerts.sent).toHaveLength(1)
  })

  test('under a rule that fires too often is held back, and a single message says so', async () => {
    await alerts.rule({
      ...SILENT,
      kind: 'metric',
      metric: 'deviceMetrics.batteryLevel',
      is: 'below',
      limit: 20,
      afterMinutes: undefined,
      destinations: [await alerts.webhook()],
      tellResolved: false,
    })
    for (let round = 0; round < 12; round++) {
      await measure({ batteryLevel: round % 2 === 0 ? 10 : 90 })
      await alerts.pass(2 * MINUTE)
      await measure({ batteryLevel: 90 })
      await alerts.pass(2 * MINUTE)
    }
    const notification = alerts.bodies().map(({ data }) => data.text)
    expect(notification.filter((text) => text.includes('held'))).toHaveLength(0)
    for (let round = 0; round < 12; round++) {
      await measure({ batteryLevel: 10 })
      await alerts.pass(MINUTE)
      await measure({ batteryLevel: 90 })
      await alerts.pass(MINUTE)
    }
    expect(alerts.bodies().filter(({ data }) => data.text.includes('muted until it fires less often'))).toHaveLength(1)
  })
})

const measure = (values: object, from = FAR) => {
  const at = alerts.app.clock.now
  return alerts.ingest.store([
    heard(
      packet(telemetry({ time: seconds(at), variant: { case: 'deviceMetrics', value: values } }), {
        from,
        id: ++id,
        rxTime: seconds(at),
      }),
      { at },
    ),
  ])
}

test('a measurement fires after its waiting time and resolves beyond the hysteresis', async () => {
  await alerts.rule({ ...BATTERY, destinations: [await alerts.webhook()] })
  await measure({ batteryLevel: 15 })
  await alerts.pass(8 * MINUTE)
  expect(await alerts.alerts()).toMatchObject([{ state: 'pending' }])
  expect(alerts.sent).toHaveLength(0)
  await alerts.pass(4 * MINUTE)
  expect(alerts.bodies()).toMatchObject([{ type: 'alert.fired' }])
  await measure({ batteryLevel: 22 })
  await alerts.pass(MINUTE)
  expect(await alerts.alerts()).toMatchObject([{ state: 'firing' }])
  await measure({ batteryLevel: 26 })
  await alerts.pass(MINUTE)
  expect(await alerts.alerts()).toMatchObject([{ state: 'resolved' }])
})

test('a restart is reported in the step that stores it', async () => {
  await alerts.rule({ kind: 'node_restarted', name: 'Restart', nodes: { kind: 'all' } })
  await measure({ uptimeSeconds: 7200 })
  alerts.app.clock.advance(MINUTE)
  await measure({ uptimeSeconds: 7260 })
  alerts.app.clock.advance(MINUTE)
  await measure({ uptimeSeconds: 5 })
  expect(await alerts.alerts()).toMatchObject([{ kind: 'node_restarted', state: 'resolved', nodeNum: FAR }])
})

describe('a new node', () => {
  test('is reported when it is heard, not in the first hours of an installation or when only a radio remembers it', async () => {
    await alerts.rule({ kind: 'node_new', name: 'New', destinations: [await alerts.webhook()] })
    for (const nodeNum of numbers(100, 5)) await hear(nodeNum)
    expect(await alerts.alerts()).toHaveLength(0)
    alerts.app.clock.advance(2 * HOUR)
    await alerts.ingest.store([
      heard(nodeInfo({ num: 200, user: { longName: 'Remembered' } }), { at: alerts.app.clock.now }),
    ])
    await alerts.ingest.store([
      heard(packet(text('old'), { from: 201, id: ++id }), { at: alerts.app.clock.now, replayed: true }),
    ])
    expect(await alerts.alerts()).toHaveLength(0)
    for (const nodeNum of [300, 301, 302]) await hear(nodeNum)
    expect(await alerts.alerts()).toHaveLength(3)
    await alerts.pass(2 * MINUTE)
    expect(alerts.bodies()).toMatchObject([{ data: { total: 3 } }])
  })
})

describe('a message', () => {
  const RULE = { kind: 'message', name: 'Help', match: { words: ['help'] } }
  const say = (words: string, more: object = {}, packetId = ++id) =>
    alerts.ingest.store([
      heard(packet(text(words), { from: FAR, id: packetId, ...more }), { at: alerts.app.clock.now }),
    ])

  test('is reported once if its words match, but not if it is replayed or sent by one of our radios', async () => {
    await alerts.ingest.store([heard(myInfo, { at: START })])
    await alerts.rule({ ...RULE, destinations: [await alerts.webhook()] })
    await say('please help me', {}, 77)
    await say('please help me', {}, 77)
    await say('no word of it')
    await say('help', { from: LOCAL })
    await alerts.ingest.store([
      heard(packet(text('help'), { from: FAR, id: ++id }), { at: alerts.app.clock.now, replayed: true }),
    ])
    expect(await alerts.alerts()).toMatchObject([{ what: expect.stringContaining('please help me') }])
    await alerts.pass(2 * MINUTE)
    expect(alerts.sent).toHaveLength(1)
  })

  test('is neither sent nor listed when the owner of the rule has lost the permission', async () => {
    const ann = await alerts.app.user('ann')
    await alerts.rule({ ...RULE, destinations: [await alerts.webhook(ann)] }, ann)
    await say('help')
    expect(await alerts.alerts(ann)).toHaveLength(1)
    const permissions = { messages: { read: false, write: false } }
    await alerts.admin.send('PUT', `/api/users/${ann.id}/permissions`, { permissions })
    await alerts.pass(5 * MINUTE)
    expect(alerts.sent).toHaveLength(0)
    expect(await alerts.alerts(ann)).toHaveLength(0)
    await say('help again')
    expect(alerts.app.store.sqlite.prepare('select count(*) from alerts').pluck().get()).toBe(1)
  })

  test('is not sent if the owner of the rule cannot see its channel, now or later, or if it is a direct message', async () => {
    const ann = await alerts.app.user('ann')
    const direct = { read: false, write: false }
    const give = (scope: unknown) =>
      alerts.admin.send('PUT', `/api/users/${ann.id}/permissions`, { permissions: {}, scope })
    expect((await give({ channels: 'all', direct })).status).toBe(200)
    await alerts.rule({ ...RULE, destinations: [await alerts.webhook(ann)] }, ann)
    await say('help, for you alone', { to: LOCAL })
    expect(await alerts.alerts(ann)).toHaveLength(0)
    await say('help, on channel 0')
    expect(await alerts.alerts(ann)).toHaveLength(1)
    expect((await give({ channels: { read: [3], write: [] }, direct })).status).toBe(200)
    await say('help again')
    await alerts.pass(5 * MINUTE)
    expect(alerts.sent).toHaveLength(0)
    expect(await alerts.alerts(ann)).toHaveLength(0)
  })

  test('is not sent when the owner of the rule has been deactivated', async () => {
    const ann = await alerts.app.user('ann')
    await alerts.rule({ ...RULE, destinations: [await alerts.webhook(ann)] }, ann)
    await say('help')
    await alerts.admin.send('DELETE', `/api/users/${ann.id}`)
    await alerts.pass(5 * MINUTE)
    expect(alerts.sent).toHaveLength(0)
  })

  test('is sent without direction marks and mentions', async () => {
    await alerts.rule({ ...RULE, match: null, destinations: [await alerts.webhook()] })
    await say('hello \u202eevil\u202c @everyone')
    await alerts.pass(2 * MINUTE)
    expect(alerts.bodies()[0]?.data.text).not.toMatch(/[\u202a-\u202e]/)
  })
})

test('a link is judged from the start of the service, and one that keeps retrying is down', async () => {
  await alerts.rule({ kind: 'link', name: 'Radio', afterMinutes: 5, destinations: [await alerts.webhook()] })
  for (let minute = 0; minute < 8; minute++) {
    Object.assign(alerts.links[0] ?? {}, {
      state: minute % 2 === 0 ? 'connecting' : 'waiting',
      since: alerts.app.clock.now,
    })
    await alerts.pass(MINUTE)
  }
  expect(alerts.bodies()).toMatchObject([{ type: 'alert.fired' }])
})

test('a failed backup fires an alert, and the next successful one resolves it', async () => {
  await alerts.rule({ kind: 'backup', name: 'Backups', afterHours: 48, destinations: [await alerts.webhook()] })
  const log = (action: string) =>
    alerts.app.store.sqlite
      .prepare("insert into audit_log (timestamp, action, resource, details) values (?, ?, 'system_backup', '{}')")
      .run(alerts.app.clock.now, action)
  await alerts.pass(MINUTE)
  log('backup_failed')
  await alerts.pass(MINUTE)
  expect(alerts.bodies()).toMatchObject([{ data: { text: 'A backup failed' } }])
  log('backup_created')
  await alerts.pass(MINUTE)
  expect(alerts.bodies()).toMatchObject([{}, { type: 'alert.resolved' }])
  await alerts.pass(2 * DAY + 2 * MINUTE)
  expect(alerts.bodies().at(-1)).toMatchObject({ type: 'alert.fired', data: { text: 'No backup succeeded for 2 d' } })
})

test('late deletion, a shortened table and a large database each fire an alert once, which ends when it is over', async () => {
  const space = { usedBytes: 1e9, limitBytes: 10e9 }
  Object.assign(alerts.app.ports, { store: { ...alerts.app.store, space: async () => space } })
  await alerts.rule({ kind: 'retention', name: 'Room', destinations: [await alerts.webhook()] })
  await alerts.pass(MINUTE)
  expect(alerts.bodies()).toStrictEqual([])
  const { sqlite } = alerts.app.store
  const now = alerts.app.clock.now
  sqlite.exec(`insert into sweeps values ('telemetry', '{}', ${now}, ${now - 31 * DAY - HOUR});
    insert into retention_plans values ('positions', 1, 2000000, 10000000000, ${now})`)
  space.usedBytes = 7e9
  await alerts.pass(3 * MINUTE)
  expect(alerts.bodies()).toMatchObject([{ type: 'alert.fired', data: { total: 3 } }])
  expect(
    (await alerts.alerts()).map(({ what, state }) => `${String(what)} (${String(state)})`).toSorted(),
  ).toStrictEqual([
    'Positions: kept for 4 of 90 days; the disk has room for 9,090,909 (firing)',
    'Single measurements: deleted 25 h too late (firing)',
    'The database fills 70 % of the 10.0 GB that it can reach (firing)',
  ])
  space.usedBytes = 6e9
  sqlite.exec('delete from sweeps; delete from retention_plans')
  await alerts.pass(MINUTE)
  expect((await alerts.alerts()).map(({ state }) => state)).toStrictEqual(['resolved', 'resolved', 'resolved'])
})

test('entering an area fires an alert, and leaving it resolves the alert', async () => {
  await alerts.rule({ ...AREA, destinations: [await alerts.webhook()] })
  await hear(FAR)
  const place = (latitude: number) =>
    alerts.app.store.sqlite
      .prepare('update nodes set latitude = ?, longitude = 10 where node_num = ?')
      .run(latitude, FAR)
  place(50)
  await alerts.pass(2 * MINUTE)
  expect(alerts.sent).toHaveLength(0)
  for (const latitude of [51, 50, 51]) {
    place(latitude)
    await alerts.pass(2 * MINUTE)
  }
  expect(alerts.bodies().map(({ type }) => type)).toStrictEqual(['alert.fired', 'alert.resolved'])
})

/** Silent nodes 1 to 5: a favourite, an ignored router, a router, our own radio, and one on the list. */
test.each([
  { nodes: { kind: 'all' }, watched: [1, 3, 4, 5] },
  { nodes: { kind: 'favorites' }, watched: [1] },
  { nodes: { kind: 'own' }, watched: [4] },
  { nodes: { kind: 'role', roles: ['ROUTER'] }, watched: [3] },
  { nodes: { kind: 'list', nodes: ['!00000002', 5] }, watched: [2, 5] },
])('a rule on $nodes watches these nodes only', async ({ nodes, watched }) => {
  const at = alerts.app.clock.now
  await alerts.ingest.store([1, 2, 3, 4, 5].map((from) => heard(packet(text('hi'), { from, id: ++id }), { at })))
  alerts.app.store.sqlite.exec(`
    update nodes set is_favorite = 1 where node_num = 1;
    update nodes set is_ignored = 1 where node_num = 2;
    update nodes set role = 2 where node_num in (2, 3);
    update nodes set is_local = 1 where node_num = 4`)
  await alerts.rule({ kind: 'node_silent', name: 'Silent', nodes, afterMinutes: 15 })
  await alerts.pass(20 * MINUTE)
  const found = (await alerts.alerts()).map(({ nodeNum }) => Number(nodeNum))
  expect(found.toSorted((a, b) => a - b)).toStrictEqual(watched)
})

/** Latitudes at longitude 10, one after the other, and the messages about them. A degree is 111 km. */
const WALKS = [
  {
    of: 'leaving a polygon',
    rule: {
      when: 'leaves',
      shape: {
        kind: 'polygon',
        points: [
          [49, 9],
          [49, 11],
          [51, 11],
          [51, 9],
        ],
      },
    },
    walk: [50, 50.9, 51.1, 52, 50.9],
    types: ['alert.fired', 'alert.resolved'],
  },
  {
    of: 'moving away from the first position, also in small steps',
    rule: { when: 'moves', metres: 1000 },
    walk: [50, 50.004, 50.008, 50.012, 50.02, 50.004],
    types: ['alert.fired', 'alert.resolved'],
  },
  { of: 'moving less than that', rule: { when: 'moves', metres: 1000 }, walk: [50, 50.008, 49.992, 50], types: [] },
]

test.each(WALKS)('$of is reported $types', async ({ rule, walk, types }) => {
  const destinations = [await alerts.webhook()]
  await alerts.rule({ kind: 'area', name: 'Area', nodes: { kind: 'all' }, ...rule, destinations })
  await hear(FAR)
  for (const latitude of walk) {
    alerts.app.store.sqlite
      .prepare('update nodes set latitude = ?, longitude = 10 where node_num = ?')
      .run(latitude, FAR)
    await alerts.pass(2 * MINUTE)
  }
  expect(alerts.bodies().map(({ type }) => type)).toStrictEqual(types)
})

test('a doubtful key is reported once, and acknowledging it is final', async () => {
  await hear(FAR)
  await alerts.rule({ kind: 'key', name: 'Keys', nodes: { kind: 'all' }, destinations: [await alerts.webhook()] })
  alerts.app.store.sqlite.exec('update nodes set key_mismatch = 1')
  await alerts.pass(2 * MINUTE)
  const [alert] = await alerts.alerts()
  expect(alert).toMatchObject({ state: 'firing' })
  await alerts.admin.send('POST', `/api/alerts/${String(alert?.['id'])}/acknowledge`)
  await alerts.pass(5 * MINUTE)
  expect(await alerts.alerts()).toMatchObject([{ state: 'resolved' }])
  expect(alerts.sent).toHaveLength(1)
})

test('a sign-in from a new address and a new token are reported only to the owner of the account', async () => {
  const ann = await alerts.app.user('ann')
  await alerts.rule({ kind: 'sign_in', name: 'Account', destinations: [await alerts.webhook(ann)] }, ann)
  await alerts.app.signIn('ann')
  await alerts.app.admin()
  await alerts.pass(MINUTE)
  expect(alerts.sent).toHaveLength(0)
  alerts.app.ip = '198.51.100.7'
  await alerts.app.signIn('ann')
  await alerts.app.admin()
  await ann.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'] })
  await alerts.pass(2 * MINUTE)
  expect(await alerts.alerts(ann)).toMatchObject([
    { what: expect.stringContaining('API token') },
    { what: expect.stringContaining('198.51.100.7') },
  ])
})

test('nothing is decided or sent while the clock is not trusted', async () => {
  await hear(FAR)
  await alerts.rule({ ...SILENT, destinations: [await alerts.webhook()] })
  Object.assign(alerts.app.ports, { clockWatch: { state: () => ({ state: 'ahead', confirmed: START }) } })
  await alerts.pass(HOUR)
  expect(alerts.sent).toHaveLength(0)
})
