import { afterEach, beforeEach, expect, test } from 'vitest'
import { lookForFindings } from '../../../src/app/mesh/findings/look.ts'
import type { Client } from '../../support/app.ts'
import { createTestAlerts, DAY, HOUR, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import { FAR, heard, packet, text } from '../../support/mesh/mesh.ts'

let alerts: TestAlerts
let id = 0

beforeEach(async () => {
  alerts = await createTestAlerts()
  await hear(FAR, FAR + 1, FAR + 2)
})
afterEach(() => alerts.app.close())

const READ = { read: true, write: false }
const ALL = { channels: 'all' as const, direct: { read: false, write: false } }
const RULE = { kind: 'finding', name: 'Wrong', findings: ['firmware', 'depends'], nodes: { kind: 'all' } }

const run = (query: string, ...values: unknown[]) => alerts.app.store.sqlite.prepare(query).run(...values)
const hear = (...nodes: number[]) =>
  alerts.ingest.store(nodes.map((from) => heard(packet(text('hi'), { from, id: ++id }), { at: alerts.app.clock.now })))
const runs = (nodeNum: number, version: string) =>
  run('update nodes set firmware_version = ?, last_heard = last_heard + 1 where node_num = ?', version, nodeNum)

/** The hourly look, and the evaluation of the rules after it. */
async function look(): Promise<void> {
  await lookForFindings(alerts.app.store, alerts.app.clock.now, async () => true)
  await alerts.pass(2 * MINUTE)
}

test('what is found anew is told, and that it is gone; what was there before is not', async () => {
  runs(FAR, '2.5.0')
  await look()
  await alerts.rule({ ...RULE, destinations: [await alerts.webhook()] })
  await look()
  expect(alerts.sent).toHaveLength(0)
  runs(FAR + 1, '2.6.1')
  await look()
  const what = '!a0cb0003 runs firmware that is known to be broken'
  expect(await alerts.alerts()).toMatchObject([{ state: 'firing', kind: 'finding', nodeNum: FAR + 1, what }])
  expect(alerts.bodies()).toMatchObject([{ type: 'alert.fired', data: { total: 1 } }])
  // Nothing new, however often it looks.
  await alerts.pass(3 * HOUR)
  await look()
  expect(alerts.sent).toHaveLength(1)
  runs(FAR + 1, '2.7.9')
  await look()
  expect(await alerts.alerts()).toMatchObject([{ state: 'resolved' }])
  expect(alerts.bodies().map(({ type }) => type)).toStrictEqual(['alert.fired', 'alert.resolved'])
  // It was gone, so it is new again; muted, it counts nowhere.
  runs(FAR + 1, '2.6.1')
  await look()
  expect(alerts.bodies().at(-1)).toMatchObject({ type: 'alert.fired' })
  expect((await alerts.admin.send('PUT', `/api/findings/firmware/${FAR + 1}`, { muted: true })).status).toBe(204)
  await alerts.pass(2 * MINUTE)
  expect((await alerts.alerts())[0]).toMatchObject({ state: 'resolved' })
})

test('what another program knew of nodes is not told, until they are heard', async () => {
  await alerts.rule({ ...RULE, findings: ['firmware', 'routers'] })
  const beside = [FAR, FAR + 1]
  run('update nodes set days_heard = 0, last_heard_day = null where node_num in (?, ?)', FAR + 1, FAR + 2)
  run('update nodes set role = 2 where node_num in (?, ?)', ...beside)
  run(
    'insert into neighbors (node_num, neighbor_num, snr, t, channel) values (?, ?, 8, ?, 0)',
    ...beside,
    alerts.app.clock.now,
  )
  runs(FAR + 1, '2.5.0')
  runs(FAR + 2, '2.5.0')
  await look()
  expect(Number(alerts.app.store.sqlite.prepare('select count(*) from findings').pluck().get())).toBe(3)
  expect(await alerts.alerts()).toStrictEqual([])
  await hear(FAR + 1)
  await look()
  const told = (await alerts.alerts()).map(({ what }: Record<string, unknown>) => String(what))
  expect(told.toSorted()).toStrictEqual([
    '!a0cb0002 and a router beside it repeat the same packets',
    '!a0cb0003 runs firmware that is known to be broken',
  ])
})

test('a rule about one node, or about another finding, is not told of others', async () => {
  await alerts.rule({ ...RULE, name: 'One', nodes: { kind: 'list', nodes: [FAR] } })
  await alerts.rule({ ...RULE, name: 'Other', findings: ['busy'] })
  runs(FAR + 1, '2.5.0')
  await look()
  expect(await alerts.alerts()).toStrictEqual([])
  runs(FAR, '2.5.0')
  await look()
  expect(await alerts.alerts()).toMatchObject([{ ruleName: 'One', nodeNum: FAR }])
  // For the story of a node.
  const about = async (node: number) =>
    Object(await (await alerts.admin.send('GET', `/api/alerts?node=${node}`)).json()).alerts.length
  expect([await about(FAR), await about(FAR + 1)]).toStrictEqual([1, 0])
})

test('nobody is told what the page of findings would not tell them', async () => {
  const reader = await alerts.app.user('reader', { nodes: READ, info: READ }, ALL)
  const narrow = await alerts.app.user(
    'narrow',
    { nodes: READ, info: READ },
    { channels: { read: [3], write: [] }, direct: { read: false, write: false } },
  )
  const blind = await alerts.app.user('blind', { nodes: READ, info: { read: false, write: false } }, ALL)
  expect((await blind.send('POST', '/api/alerts/rules', RULE)).status).toBe(403)
  expect((await blind.send('POST', '/api/alerts/rules/preview', RULE)).status).toBe(403)
  for (const client of [reader, narrow]) await alerts.rule(RULE, client)
  const told = async (client: Client) => {
    const { alerts: all } = Object(await (await client.send('GET', '/api/alerts')).json())
    return all.map(({ what, state }: Record<string, unknown>) => [what, state])
  }
  // On channel 0: three that are reached only over FAR.
  const hears = (a: number, b: number) =>
    run(
      'insert or replace into neighbors (node_num, neighbor_num, snr, t, channel) values (?, ?, 5, ?, 0)',
      a,
      b,
      alerts.app.clock.now,
    )
  run('update nodes set is_local = 0')
  run(
    'insert or replace into nodes (node_num, first_heard, last_heard, is_local) values (5, 0, ?, 1)',
    alerts.app.clock.now,
  )
  hears(5, FAR)
  for (const node of [FAR + 1, FAR + 2, FAR + 3]) hears(FAR, node)
  run('insert into nodes (node_num, first_heard, last_heard) values (?, 0, 1)', FAR + 3)
  run('update nodes set is_hidden = 1 where node_num = ?', FAR + 2)
  runs(FAR + 2, '2.5.0')
  await look()
  expect(await told(reader)).toStrictEqual([])
  run('update nodes set is_hidden = 0')
  await look()
  const depends = ['Several nodes are reached only over !a0cb0002', 'firing']
  expect(await told(reader)).toStrictEqual(
    expect.arrayContaining([depends, ['!a0cb0004 runs firmware that is known to be broken', 'firing']]),
  )
  expect(await told(narrow)).toStrictEqual([['!a0cb0004 runs firmware that is known to be broken', 'firing']])
  // Hidden since the last look: it is over for whoever does not see it.
  run('update nodes set is_hidden = 1 where node_num = ?', FAR + 2)
  await alerts.pass(2 * MINUTE)
  expect(await told(reader)).toStrictEqual([[depends[0], 'resolved']])
})

test('a preview says how often it would have been told in 30 days, and what is not stored', async () => {
  const preview = async (rule: object, client: Client = alerts.admin) => {
    const answer = await client.send('POST', '/api/alerts/rules/preview', { ...RULE, ...rule })
    expect(answer.status).toBe(200)
    return Object(await answer.json())
  }
  const { now } = alerts.app.clock
  const today = Math.floor(now / DAY)
  run("insert into metrics (name) values ('deviceMetrics.channelUtilization')")
  for (let day = 0; day < 40; day += 1) {
    for (const node of [FAR, FAR + 1]) {
      run("insert into node_days (node_num, day, hours, packets, direct) values (?, ?, '0', 24, 0)", node, today - day)
      for (let hour = 0; hour < 24; hour += 3) {
        const t = (today - day) * DAY + hour * HOUR
        const isBusy = node === FAR && (day === 3 || day === 4 || day === 20)
        run(
          `insert into telemetry_hourly (node_id, metric, t, n, min, max, sum, last, channel)
            select id, (select id from metrics where name = 'deviceMetrics.channelUtilization'), ?, 1, v, v, v, v, 0
            from nodes, (select ? as v) where node_num = ?`,
          t,
          isBusy ? 60 : 10,
          node,
        )
      }
    }
  }
  const found = await preview({ findings: ['busy'] })
  expect(found).toMatchObject({ from: now - 30 * DAY, total: 2, note: null })
  for (const { at, resolvedAt, nodeNum, what } of found.fires) {
    expect(nodeNum).toBe(FAR)
    expect(what).toBe('The channel is nearly full at !a0cb0002')
    expect(resolvedAt - at).toBeGreaterThan(6 * HOUR)
  }
  // It ends when its reader has gone.
  const left = await alerts.app.request('/api/alerts/rules/preview', {
    method: 'POST',
    headers: { cookie: String(alerts.admin.cookie), origin: alerts.app.origin, 'content-type': 'application/json' },
    body: JSON.stringify({ ...RULE, findings: ['busy'] }),
    signal: AbortSignal.abort(),
  })
  expect(Object(await left.json())).toMatchObject({ total: 0 })
  expect(await preview({ findings: ['busy'], nodes: { kind: 'list', nodes: [FAR + 1] } })).toMatchObject({ total: 0 })
  const narrow = await alerts.app.user(
    'narrow',
    { nodes: READ, info: READ },
    { channels: { read: [3], write: [] }, direct: { read: false, write: false } },
  )
  expect(await preview({ findings: ['busy'] }, narrow)).toMatchObject({ total: 0 })
  const reader = await alerts.app.user('reader', { nodes: READ, info: READ }, ALL)
  run('update nodes set is_hidden = 1 where node_num = ?', FAR)
  expect(await preview({ findings: ['busy'] }, reader)).toMatchObject({ total: 0 })
  run('update nodes set is_hidden = 0')
  // Stored for a shorter time, or not at all.
  run('delete from telemetry_hourly where t < ?', now - 10 * DAY)
  expect(await preview({ findings: ['busy'] })).toMatchObject({
    total: 1,
    note: 'What this is judged by is stored only for the last 10 days.',
  })
  runs(FAR, '2.5.0')
  expect(await preview({ findings: ['firmware', 'one_way'] })).toMatchObject({
    fires: [{ what: '!a0cb0002 runs firmware that is known to be broken', resolvedAt: null }],
    note: expect.stringMatching(/^Of 1 of these 2 findings only the present is stored/),
  })
  expect(await preview({ findings: ['one_way'] })).toMatchObject({
    total: 0,
    note: 'Only the present state is stored, not the history.',
  })
})

test('each person has one preview at a time, and each is answered', async () => {
  run("insert into node_days (node_num, day, hours, packets, direct) values (?, ?, '0', 24, 0)", FAR, 20_000)
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => alerts.admin.send('POST', '/api/alerts/rules/preview', RULE)),
  )
  expect(answers.map(({ status }) => status)).toStrictEqual([200, 200, 200, 200])
})
