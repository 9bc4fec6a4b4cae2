import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN_PASSWORD, type Client, createClient, SCENARIO_ENV, signIn } from '../contract/service.ts'
import { item } from '../support/mesh/delivery.ts'
import { packet, text } from '../support/mesh/mesh.ts'
import { portOf } from '../support/servers/port-of.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

let workerd: Workerd
let admin: Client
let hook: Server
const received: { id: unknown; body: Record<string, unknown> }[] = []

beforeAll(async () => {
  workerd = await openWorkerd(SCENARIO_ENV, { isBreakable: true })
  admin = await signIn(workerd, 'admin', ADMIN_PASSWORD)
  hook = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      received.push({ id: request.headers['webhook-id'], body: Object(JSON.parse(body)) })
      response.end()
    })
  })
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  hook.close()
  await workerd.close()
})

/** A collector delivers a text. */
async function say(words: string, id: number): Promise<void> {
  const { token } = Object((await admin.send('POST', '/api/tokens', { name: words, scopes: ['ingest'] })).body)
  const body = { source: words, packets: [{ data: item(packet(text(words), { id })), receivedAt: Date.now() }] }
  const headers = { authorization: `Bearer ${token}` }
  expect(await createClient(workerd).send('POST', '/api/ingest', body, headers)).toMatchObject({ status: 200 })
}

test("a collector's message with a watched word fires an alert in the same step, and an alarm sends it once", async () => {
  const url = `http://127.0.0.1:${portOf(hook)}/hook`
  const made = await admin.send('POST', '/api/alerts/destinations', {
    kind: 'webhook',
    name: 'Hook',
    settings: { url },
  })
  const destinations = [Object(made.body).destination.id]
  for (const rule of [
    { kind: 'message', name: 'Help', match: { words: ['help'] }, destinations },
    { kind: 'node_silent', name: 'Silent', nodes: { kind: 'all' }, afterMinutes: 15, destinations },
    {
      kind: 'metric',
      name: 'Low',
      nodes: { kind: 'all' },
      metric: 'deviceMetrics.batteryLevel',
      is: 'below',
      limit: 20,
    },
    { kind: 'area', name: 'Area', nodes: { kind: 'all' }, when: 'moves', metres: 100 },
    { kind: 'key', name: 'Keys', nodes: { kind: 'all' } },
    { kind: 'link', name: 'Links', afterMinutes: 10 },
    { kind: 'backup', name: 'Backups' },
    { kind: 'retention', name: 'Room' },
    { kind: 'sign_in', name: 'Account' },
    { kind: 'node_new', name: 'New' },
    { kind: 'node_restarted', name: 'Restarts', nodes: { kind: 'all' } },
  ]) {
    expect(await admin.send('POST', '/api/alerts/rules', rule)).toMatchObject({ status: 201 })
    expect(await admin.send('POST', '/api/alerts/rules/preview', rule)).toMatchObject({ status: 200 })
  }
  await say('all is well', 1)
  expect(await workerd.live.alarms()).toEqual({ rings: 0, next: null })
  // The platform lets an alarm that fails ring again.
  await workerd.live.failAlarms(1)
  const { token } = Object((await admin.send('POST', '/api/tokens', { name: 'hill', scopes: ['ingest'] })).body)
  const body = { source: 'hill', packets: [{ data: item(packet(text('help me'), { id: 2 })), receivedAt: Date.now() }] }
  for (const _ of [1, 2]) {
    const headers = { authorization: `Bearer ${token}` }
    expect(await createClient(workerd).send('POST', '/api/ingest', body, headers)).toMatchObject({ status: 200 })
  }
  const { alerts } = Object((await admin.send('GET', '/api/alerts')).body)
  expect(alerts).toMatchObject([{ kind: 'message', what: expect.stringContaining('help me') }])
  await expect.poll(() => workerd.live.alarms()).toEqual({ rings: 2, next: null })
  expect(received).toHaveLength(1)
  await workerd.runSchedule()
  expect(received).toMatchObject([{ body: { type: 'alert.fired', data: { total: 1 } } }])
  const { deliveries } = Object((await admin.send('GET', '/api/alerts/deliveries')).body)
  expect(deliveries).toMatchObject([{ state: 'delivered', attempts: 1, uid: received[0]?.id }])
  // Each trigger records that it has evaluated the rules.
  const { watching } = Object((await admin.send('GET', '/api/alerts/rules')).body)
  expect(watching).toMatchObject({ rules: 11, nodes: 1 })
  expect(Date.now() - watching.evaluatedAt).toBeLessThan(60_000)
  expect(workerd.logged().filter((line) => line.includes('"error"'))).toStrictEqual([])
})

test('quiet hours hold a message, and it follows when they are given up', async () => {
  const HOUR = 3_600_000
  const clock = (t: number) => new Date(t).toISOString().slice(11, 16)
  const quietHours = {
    from: clock(Date.now() - HOUR),
    to: clock(Date.now() + 2 * HOUR),
    timeZone: 'UTC',
    days: [1, 2, 3, 4, 5, 6, 7],
  }
  const before = received.length
  expect(await admin.send('PUT', '/api/alerts/quiet-hours', { quietHours })).toMatchObject({ status: 200 })
  const { token } = Object((await admin.send('POST', '/api/tokens', { name: 'ridge', scopes: ['ingest'] })).body)
  const body = {
    source: 'ridge',
    packets: [{ data: item(packet(text('help us'), { id: 5 })), receivedAt: Date.now() }],
  }
  const headers = { authorization: `Bearer ${token}` }
  expect(await createClient(workerd).send('POST', '/api/ingest', body, headers)).toMatchObject({ status: 200 })
  await workerd.sql('update alert_deliveries set due_at = 0')
  await workerd.runSchedule()
  expect(received).toHaveLength(before)
  const { alerts } = Object((await admin.send('GET', '/api/alerts')).body)
  const held = alerts.filter((alert: { heldUntil: number | null }) => alert.heldUntil !== null)
  expect(held).toMatchObject([{ kind: 'message', what: expect.stringContaining('help us') }])
  expect(await admin.send('PUT', '/api/alerts/quiet-hours', { quietHours: null })).toMatchObject({ status: 200 })
  await workerd.runSchedule()
  const told = { type: 'alert.quiet', data: { total: 1, text: expect.stringContaining('help us') } }
  // Or the alarm of the object took it first.
  await expect.poll(() => received.slice(before)).toMatchObject([{ body: told }])
  expect(workerd.logged().filter((line) => line.includes('"error"'))).toStrictEqual([])
})

test('an alarm rings though its object was evicted; without the object the trigger sends', async () => {
  const before = received.length
  await workerd.sql('update alert_deliveries set due_at = 0')
  await say('help her', 3)
  await expect.poll(async () => (await workerd.live.alarms()).next).not.toBeNull()
  await workerd.live.die().catch(() => {})
  await expect.poll(() => received.length).toBe(before + 1)
  await expect.poll(async () => (await workerd.live.alarms()).next).toBeNull()

  await workerd.live.fail(true)
  await say('help him', 4)
  await expect.poll(() => workerd.logged().join('\n')).toContain('Live events were lost')
  expect(await workerd.live.alarms()).toMatchObject({ next: null })
  await workerd.live.fail(false)
  await workerd.sql("update alert_deliveries set due_at = 0 where state = 'waiting'")
  await workerd.runSchedule(new Date(), '* * * * *')
  await workerd.runSchedule(new Date(), '* * * * *')
  const told = received.slice(before).map(({ body: { data } }) => Object(data).text)
  expect(told).toMatchObject([expect.stringContaining('help her'), expect.stringContaining('help him')])
})
