import type { CollectorInfo } from '../../../src/app/mesh/collector/state.ts'
import type { Backups } from '../../../src/app/system/backup/backup.ts'
import type { LinkInfo, Radio } from '../../../src/app/mesh/radios/radio.ts'
import { createMeter, type Meter } from '../../../src/app/system/metrics/meter.ts'
import { beforeEach, expect, it } from 'vitest'
import { formatMetrics } from '../../../src/app/system/metrics/exposition.ts'
import { createIngest } from '../../../src/app/mesh/ingest/ingest.ts'
import { checkRelease } from '../../../src/app/system/status/release.ts'
import { noteRun } from '../../../src/app/system/status/runs.ts'
import { SYSTEM_PROBLEM_NAMES, SYSTEM_PROBLEMS } from '../../../src/shared/system-problems.ts'
import { createTestApp, NO_RADIO, START, type TestApp } from '../../support/app.ts'
import { packet, store, telemetry, text } from '../../support/mesh/mesh.ts'
import { ACKNOWLEDGE, ANNOUNCE, createTestAutomation, HOUR } from '../../support/automation.ts'
import { FAR } from '../../support/mesh/mesh.ts'

const LINK: LinkInfo = {
  name: 'mqtt://[2001:db8::1]:1883',
  kind: 'mqtt',
  state: 'connected',
  since: START,
  lastFrameAt: START - 500,
  reconnects: 2,
  reason: null,
  radio: null,
  queue: null,
  txEnabled: null,
  notice: null,
}
const COLLECTOR: CollectorInfo = {
  target: 'mesh.example.org',
  state: 'refused',
  waiting: 12,
  lastDeliveredAt: START,
  delivered: 90,
  dropped: 1,
  filtered: 4,
  reason: 'the target does not know the token (401)',
}
const LOST: LinkInfo = {
  ...LINK,
  name: '192.0.2.8:4403',
  kind: 'tcp',
  state: 'waiting',
  queue: { free: 3, maxlen: 16 },
}

let elapsed = 0
let meter: Meter

beforeEach(() => {
  elapsed = 0
  meter = createMeter({
    // Each reading of the clock is 2 ms later: that is the duration of a request.
    now: () => (elapsed += 2),
    process: () => [{ name: 'process_made_up', type: 'gauge', help: 'Made up.', samples: [{ value: 1.5 }] }],
  })
})

/** Lines of the text format, keyed by everything before the value; throws on an invalid format. */
async function scrape(app: TestApp, headers?: Record<string, string>): Promise<Map<string, number>> {
  const answer = headers
    ? await app.request('/api/metrics', { headers })
    : await (await app.admin()).send('GET', '/api/metrics')
  expect([answer.status, answer.headers.get('content-type')]).toStrictEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ])
  const text = await answer.text()
  expect(text.endsWith('\n')).toBe(true)
  const found = new Map<string, number>()
  const types = new Map<string, string>()
  for (const line of text.trimEnd().split('\n')) {
    const type = /^# TYPE ([a-z_][a-z0-9_]*) (counter|gauge|histogram)$/.exec(line)
    if (type?.[1] !== undefined) {
      expect(types.has(type[1]), `${type[1]} comes once`).toBe(false)
      types.set(type[1], String(type[2]))
    }
    if (line.startsWith('#')) {
      expect(line).toMatch(/^# (HELP [a-z_0-9]+ \S.*\.|TYPE [a-z_0-9]+ \w+)$/)
      continue
    }
    const sample = /^([a-z_][a-z0-9_]*)(\{(?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+\})? (\S+)$/.exec(line)
    if (sample === null) throw new Error(`not a sample: ${line}`)
    const family = String(sample[1]).replace(/_(bucket|sum|count)$/, (part, _, at) =>
      types.get(String(sample[1]).slice(0, at)) === 'histogram' ? '' : part,
    )
    expect(types.has(family), line).toBe(true)
    const name = `${sample[1]}${sample[2] ?? ''}`
    expect(found.has(name), `${name} comes once`).toBe(false)
    found.set(name, Number(sample[3]))
  }
  return found
}

const requests = (found: Map<string, number>) =>
  Object.fromEntries([...found].filter(([name]) => name.startsWith('mesh_http_requests_total')))

it('counts requests by the pattern of their route, never by names that a client invents', async () => {
  const app = await createTestApp({ ports: { meter } })
  const admin = await app.admin()
  for (const id of ['1', '2', '%21a0cb0001']) await admin.send('GET', `/api/nodes/${id}`)
  await app.request('/api/health')
  await app.request('/api/health', { method: 'HEAD' })
  await app.request('/api/health', { method: 'PUT' })
  await app.request('/api/users/1')
  for (const path of ['/api/made-up', '/api/up/made?x=1']) await app.request(path)
  await app.request('/api/health', { method: 'INVENTED' })
  await app.request('/api/users/7', {
    method: 'DELETE',
    headers: { origin: 'https://elsewhere.example', cookie: 'a=b' },
  })
  const label = (method: string, route: string, status: number) =>
    `mesh_http_requests_total{method="${method}",route="${route}",status="${status}"}`
  expect(requests(await scrape(app, { cookie: String(admin.cookie) }))).toStrictEqual({
    [label('POST', '/api/auth/login', 200)]: 1,
    [label('GET', '/api/nodes/:id', 404)]: 3,
    [label('GET', '/api/health', 200)]: 1,
    [label('HEAD', '/api/health', 200)]: 1,
    [label('PUT', 'none', 405)]: 1,
    [label('GET', '/api/users/:id', 401)]: 1,
    [label('GET', 'none', 404)]: 2,
    [label('other', 'none', 405)]: 1,
    [label('DELETE', '/api/users/:id', 403)]: 1,
  })
})

it('puts durations into cumulative buckets', () => {
  for (const ms of [0.5, 1, 1.001, 60, 9000]) meter.countRequest('GET', '/api/health', 200, ms)
  const text = formatMetrics(meter.families())
  const histogram = text.split('\n').filter((line) => line.startsWith('mesh_http_request_duration_seconds'))
  const labels = 'method="GET",route="/api/health"'
  const bounds = { 0.001: 2, 0.005: 3, 0.01: 3, 0.05: 3, 0.1: 4, 0.5: 4, 1: 4, 5: 4 }
  expect(histogram.slice(0, 8)).toStrictEqual(
    Object.entries(bounds)
      .toSorted(([a], [b]) => Number(a) - Number(b))
      .map(([le, n]) => `mesh_http_request_duration_seconds_bucket{${labels},le="${le}"} ${n}`),
  )
  expect(histogram.slice(8)).toStrictEqual([
    `mesh_http_request_duration_seconds_bucket{${labels},le="+Inf"} 5`,
    `mesh_http_request_duration_seconds_sum{${labels}} ${0.0005 + 0.001 + 0.001001 + 0.06 + 9}`,
    `mesh_http_request_duration_seconds_count{${labels}} 5`,
  ])
})

it('measures links, packets, the database, backups, sessions and the process', async () => {
  const backup = { name: '2026-01-15_030000', createdAt: START - 9000, kind: 'manual', sizeBytes: 4096 }
  const backups: Backups = Object({
    list: async () => [backup, { ...backup, createdAt: 1 }],
    running: () => null,
    nextRun: () => START + 5000,
  })
  const radio: Radio = Object({
    links: () => [LINK, LOST],
    waiting: () => 17,
    sending: () => 2,
    collector: () => COLLECTOR,
  })
  const disk = { isFull: () => false, makeRoom() {}, space: () => ({ total: 9e9, free: 4e9, spare: 4096 }) }
  const instances = { list: () => [{ id: 'a1b2c3d4', isSelf: true, hasLease: true, seenAt: START }] }
  const app = await createTestApp({ ports: { meter, backups, radio, disk, instances } })
  const admin = await app.admin()
  const run = { at: START - 4000, ok: false, error: 'disk full', succeededAt: null, failures: 1 }
  app.store.sqlite.prepare(`insert into settings values ('backup.lastRun', ?, 1)`).run(JSON.stringify(run))
  for (const port of [
    'TEXT_MESSAGE_APP',
    'TEXT_MESSAGE_APP',
    null,
    'UNKNOWN_131',
    'UNKNOWN_132',
    'UNKNOWN_-5',
    'UNKNOWN_APP',
  ]) {
    meter.countPacket(port)
  }
  app.clock.advance(60_000)
  const found = await scrape(app, { cookie: String(admin.cookie) })
  const size = Number(app.store.sqlite.pragma('page_count', { simple: true })) * 4096
  expect(
    Object.fromEntries([...found].filter(([name]) => !/_retention_|_http_|link_state|problems/.test(name))),
  ).toStrictEqual({
    'mesh_build_info{version="1.2.3"}': 1,
    mesh_uptime_seconds: 60,
    mesh_nodes: 0,
    mesh_nodes_active: 0,
    mesh_database_size_bytes: size,
    mesh_disk_size_bytes: 9e9,
    mesh_disk_free_bytes: 4e9,
    mesh_disk_full: 0,
    mesh_storage_room_bytes: 4e9 + 4096,
    mesh_alerts_firing: 0,
    mesh_sessions: 1,
    mesh_alert_outbox_messages: 0,
    mesh_sign_ins_failed_last_day: 0,
    mesh_instances: 1,
    mesh_instance_on_duty: 1,
    mesh_sending_queue_packets: 2,
    mesh_backups: 2,
    mesh_backup_schedule_enabled: 0,
    mesh_backup_next_run_timestamp_seconds: START / 1000 + 5,
    mesh_backup_last_timestamp_seconds: START / 1000 - 9,
    mesh_backup_last_size_bytes: 4096,
    mesh_backup_run_timestamp_seconds: START / 1000 - 4,
    mesh_backup_run_success: 0,
    'mesh_link_up{link="mqtt://[2001:db8::1]:1883",kind="mqtt"}': 1,
    'mesh_link_up{link="192.0.2.8:4403",kind="tcp"}': 0,
    'mesh_link_last_frame_timestamp_seconds{link="mqtt://[2001:db8::1]:1883",kind="mqtt"}': START / 1000 - 0.5,
    'mesh_link_last_frame_timestamp_seconds{link="192.0.2.8:4403",kind="tcp"}': START / 1000 - 0.5,
    'mesh_link_queue_free{link="192.0.2.8:4403",kind="tcp"}': 3,
    'mesh_link_reconnects_total{link="mqtt://[2001:db8::1]:1883",kind="mqtt"}': 2,
    'mesh_link_reconnects_total{link="192.0.2.8:4403",kind="tcp"}': 2,
    mesh_collector_up: 0,
    mesh_collector_waiting: 12,
    mesh_collector_last_delivery_timestamp_seconds: START / 1000,
    mesh_collector_delivered_total: 90,
    mesh_collector_dropped_total: 1,
    mesh_collector_filtered_total: 4,
    mesh_ingest_queue_events: 17,
    'mesh_packets_total{port="TEXT_MESSAGE_APP"}': 2,
    'mesh_packets_total{port="encrypted"}': 1,
    'mesh_packets_total{port="other"}': 3,
    'mesh_packets_total{port="UNKNOWN_APP"}': 1,
    process_made_up: 1.5,
  })
  expect(found.get('mesh_problems{problem="link_down",severity="error"}')).toBe(0)
  expect(found.get('mesh_problems{problem="collector_failing",severity="error"}')).toBe(1)
  const states = [...found].filter(([name, value]) => name.startsWith('mesh_link_state') && value === 1)
  expect(states.map(([name]) => name)).toStrictEqual([
    'mesh_link_state{link="mqtt://[2001:db8::1]:1883",kind="mqtt",state="connected"}',
    'mesh_link_state{link="192.0.2.8:4403",kind="tcp",state="waiting"}',
  ])
})

it('escapes special characters in a label', () => {
  const samples = [{ labels: { link: 'a"b\\c\nd\ud800' }, value: Number.NaN }]
  const text = formatMetrics([{ name: 'x', type: 'gauge', help: 'X.', samples }])
  expect(text).toBe('# HELP x X.\n# TYPE x gauge\nx{link="a\\"b\\\\c\\nd\ufffd"} NaN\n')
})

it('is for administrators and for tokens with the scope', async () => {
  const app = await createTestApp({ ports: { meter } })
  const user = await app.user('somebody')
  expect((await app.request('/api/metrics')).status).toBe(401)
  expect((await user.send('GET', '/api/metrics')).status).toBe(403)
  const { token } = Object(await (await user.send('POST', '/api/tokens', { name: 'm', scopes: ['metrics'] })).json())
  expect((await scrape(app, { authorization: `Bearer ${token}` })).get('mesh_nodes')).toBe(0)
})

it('has the figures of the database on a runtime that measures nothing else', async () => {
  const app = await createTestApp({ ports: { radio: null, backups: null } })
  const names = [...(await scrape(app)).keys()].filter((name) => !name.includes('_retention_'))
  expect(names).toStrictEqual([
    'mesh_build_info{version="1.2.3"}',
    'mesh_uptime_seconds',
    'mesh_nodes',
    'mesh_nodes_active',
    ...SYSTEM_PROBLEM_NAMES.map(
      (problem) => `mesh_problems{problem="${problem}",severity="${SYSTEM_PROBLEMS[problem]}"}`,
    ),
    'mesh_database_size_bytes',
    'mesh_alert_outbox_messages',
    'mesh_sign_ins_failed_last_day',
    'mesh_alerts_firing',
    'mesh_sessions',
  ])
})

it('shows every problem from the start, with the number of its occurrences', async () => {
  const links = [LOST, { ...LOST, name: '192.0.2.9:4403' }].map((each) => ({ ...each, reason: 'nobody listens there' }))
  const app = await createTestApp({ ports: { radio: { ...NO_RADIO, links: () => links } } })
  const problems = [...(await scrape(app))].filter(([name]) => name.startsWith('mesh_problems'))
  expect(problems).toHaveLength(SYSTEM_PROBLEM_NAMES.length)
  expect(problems.filter(([, value]) => value > 0)).toStrictEqual([
    ['mesh_problems{problem="link_down",severity="error"}', 2],
  ])
})

it('says before the first scheduled backup that none has run, without reporting a failure', async () => {
  const backups: Backups = Object({ list: async () => [], running: () => null, nextRun: () => null })
  const app = await createTestApp({ ports: { backups } })
  const found = await scrape(app)
  expect(found.get('mesh_backup_run_success')).toBe(Number.NaN)
  expect(found.get('mesh_backup_schedule_enabled')).toBe(0)
  expect(found.has('mesh_backup_run_timestamp_seconds')).toBe(false)
})

it('describes the radios, jobs of the platform and a newer release', async () => {
  const radioInfo = { nodeNum: 0xa0cb0001, firmwareVersion: '2.7.1', hwModel: null, role: 'ROUTER' }
  const app = await createTestApp({
    env: { UPDATE_CHECK_URL: 'https://releases.example.org/latest' },
    ports: { radio: { ...NO_RADIO, links: () => [{ ...LINK, radio: radioInfo }] } },
  })
  await noteRun(app.store, 'upkeep', false, START - 1000)
  const answer = { status: 200, text: '{"version":"2.0.0"}' }
  await checkRelease({ ...app.ports, outbound: Object({ read: async () => answer }) })
  const found = await scrape(app)
  for (const name of [
    'mesh_radio_info{link="mqtt://[2001:db8::1]:1883",node="!a0cb0001",firmware="2.7.1",model="",role="ROUTER"}',
    'mesh_newer_release_info{version="2.0.0"}',
  ]) {
    expect([name, found.get(name)]).toStrictEqual([name, 1])
  }
  expect(found.get('mesh_release_check_timestamp_seconds')).toBe(START / 1000)
  expect(found.get('mesh_job_last_run_timestamp_seconds{task="upkeep"}')).toBe(START / 1000 - 1)
  expect(found.get('mesh_job_last_run_success{task="upkeep"}')).toBe(0)
  expect(found.get('mesh_problems{problem="job_late",severity="error"}')).toBe(1)
})

it('tells how long rows are kept, how far deletion is behind, and the size that the database can reach', async () => {
  const app = await createTestApp()
  const limits = { usedBytes: 7e9, limitBytes: 10e9 }
  Object.assign(app.ports, { store: { ...app.store, space: async () => limits } })
  const day = 86_400
  app.store.sqlite
    .exec(`insert into sweeps values ('telemetry', null, ${START - 32 * day * 1000}, ${START - 32 * day * 1000});
    insert into retention_plans values ('telemetry', 60000000, 6187500, 10000000000, ${START})`)
  const found = [...(await scrape(app))].filter(([name]) =>
    /_retention_.*"telemetry"|_database_(?:used|limit)/.test(name),
  )
  expect(Object.fromEntries(found)).toStrictEqual({
    mesh_database_used_bytes: 7e9,
    mesh_database_limit_bytes: 10e9,
    'mesh_retention_lag_seconds{table="telemetry"}': 2 * day,
    'mesh_retention_set_seconds{table="telemetry"}': 30 * day,
    'mesh_retention_kept_seconds{table="telemetry"}': 10 * day,
    'mesh_retention_max_rows{table="telemetry"}': 68_750_000,
  })
})

it('counts runs of rules by kind and by result', async () => {
  const { add, app, pass, radio, say } = await createTestAutomation(meter)
  await add({ ...ANNOUNCE, channels: [0, 1] })
  await add(ACKNOWLEDGE)
  await pass(6 * HOUR)
  await say('ping', { from: FAR, id: 1 })
  await say('ping', { from: FAR, id: 2 })
  radio.isFull = true
  await pass(6 * HOUR)
  radio.isFull = false
  radio.reserve = () => {
    throw new Error('the radio is on fire')
  }
  await pass(6 * HOUR)
  const found = [...(await scrape(app))].filter(([name]) => name.startsWith('mesh_automation'))
  expect(found).toStrictEqual([
    ['mesh_automation_runs_total{kind="announce",result="sent"}', 1],
    ['mesh_automation_runs_total{kind="acknowledge",result="sent"}', 1],
    ['mesh_automation_runs_total{kind="acknowledge",result="skipped"}', 1],
    ['mesh_automation_runs_total{kind="announce",result="skipped"}', 1],
    ['mesh_automation_runs_total{kind="announce",result="failed"}', 1],
  ])
})

it('counts values that no radio can send, by field', async () => {
  const app = await createTestApp({ ports: { meter } })
  const ingest = createIngest(app.store, { onCounted: (counts) => meter.countBatch(counts) })
  const power = { case: 'deviceMetrics', value: { batteryLevel: 200, voltage: 4 } } as const
  await store(ingest, [
    packet(telemetry({ variant: power })),
    packet(telemetry({ variant: power })),
    packet(text('hi'), { hopStart: 200 }),
  ])
  const found = await scrape(app)
  expect([...found].filter(([name]) => name.startsWith('mesh_refused_values_total'))).toStrictEqual([
    ['mesh_refused_values_total{field="batteryLevel"}', 2],
    ['mesh_refused_values_total{field="hopStart"}', 1],
  ])
})
