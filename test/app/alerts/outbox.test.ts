import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { deliverDue } from '../../../src/app/alerts/outbox/outbox.ts'
import { createTestAlerts, HOUR, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import { FAR, heard, packet, text } from '../../support/mesh/mesh.ts'

let alerts: TestAlerts
let id = 1

beforeEach(async () => {
  alerts = await createTestAlerts()
})
afterEach(() => alerts.app.close())

const say = (words = 'help', from = FAR) =>
  alerts.ingest.store([heard(packet(text(words), { from, id: ++id }), { at: alerts.app.clock.now })])
const watch = async () => alerts.rule({ kind: 'message', name: 'All', destinations: [await alerts.webhook()] })
const header = (index: number, name: string) => alerts.sent[index]?.headers[name]
const deliveries = async (query = '') =>
  Object(await (await (await alerts.app.admin()).send('GET', `/api/alerts/deliveries${query}`)).json()).deliveries

test('a failed delivery is retried under the same id with growing pauses, and given up after a day', async () => {
  alerts.answer = () => ({ status: 500, retryAfterMs: null })
  await watch()
  await say()
  await alerts.pass(30 * MINUTE)
  const early = alerts.sent.length
  expect(early).toBeGreaterThan(3)
  await alerts.pass(25 * HOUR)
  expect(alerts.sent.length - early).toBeLessThan(30)
  expect(new Set(alerts.sent.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(await deliveries('?state=failed')).toMatchObject([{ result: 'status 500' }])
  const tries = alerts.sent.length
  await alerts.pass(2 * HOUR)
  expect(alerts.sent).toHaveLength(tries)
})

test('a webhook is signed as Standard Webhooks specifies', async () => {
  const made = await alerts.admin.send('POST', '/api/alerts/destinations', {
    kind: 'webhook',
    name: 'x',
    settings: { url: 'https://example.org/' },
  })
  const { secret, destination } = Object(await made.json())
  await alerts.admin.send('POST', `/api/alerts/destinations/${destination.id}/test`)
  const [sent] = alerts.sent
  const signed = `${header(0, 'webhook-id')}.${header(0, 'webhook-timestamp')}.${String(sent?.body)}`
  const mac = createHmac('sha256', Buffer.from(String(secret).slice(6), 'base64'))
    .update(signed)
    .digest('base64')
  expect(header(0, 'webhook-signature')).toBe(`v1,${mac}`)
})

test('the pause that a receiver asks for is kept', async () => {
  await watch()
  alerts.answer = () => ({ status: 429, retryAfterMs: 30 * MINUTE })
  await say()
  await alerts.pass(29 * MINUTE)
  expect(alerts.sent).toHaveLength(1)
  alerts.answer = () => ({ status: 200, retryAfterMs: null })
  await alerts.pass(5 * MINUTE)
  expect(await deliveries()).toMatchObject([{ state: 'delivered', attempts: 2 }])
})

test('a receiver that answers 410 gets nothing more', async () => {
  alerts.answer = () => ({ status: 410, retryAfterMs: null })
  await watch()
  await say()
  await alerts.pass(5 * MINUTE)
  await say()
  await alerts.pass(5 * MINUTE)
  expect(alerts.sent).toHaveLength(1)
})

test('the first text is told after three seconds, and those of the following minute together', async () => {
  await watch()
  const told = async (seconds: number) => {
    alerts.app.clock.advance(seconds * 1000)
    while ((await deliverDue(alerts.app.ports)) > 0);
    return alerts.bodies().map(({ data }) => data.total)
  }
  await say('first')
  await say('with it')
  expect(await told(2)).toStrictEqual([])
  expect(await told(1)).toStrictEqual([2])
  for (const words of ['one', 'two', 'three']) {
    await say(words)
    expect(await told(10)).toStrictEqual([2])
  }
  expect(await told(29)).toStrictEqual([2])
  expect(await told(1)).toStrictEqual([2, 3])
  // What follows within a minute waits for its end.
  await say('soon after')
  expect(await told(59)).toStrictEqual([2, 3])
  expect(await told(1)).toStrictEqual([2, 3, 1])
  expect(await told(60)).toStrictEqual([2, 3, 1])
  await say('after a quiet minute')
  expect(await told(3)).toStrictEqual([2, 3, 1, 1])
})

test('steady texts are one message a minute after the first one', async () => {
  const rule = { kind: 'message', name: 'All' }
  await watch()
  const sentAt: number[] = []
  for (let second = 0; second < 600; second += 2) {
    await say('again', 1000 + second)
    for (const _ of [1, 2]) {
      alerts.app.clock.advance(1000)
      const before = alerts.sent.length
      while ((await deliverDue(alerts.app.ports)) > 0);
      if (alerts.sent.length > before) sentAt.push(alerts.app.clock.now)
    }
  }
  expect(sentAt).toHaveLength(alerts.sent.length)
  expect(sentAt.slice(1).map((at, index) => at - (sentAt[index] ?? 0))).toStrictEqual(Array(9).fill(MINUTE))
  const { messages } = Object(await (await alerts.admin.send('POST', '/api/alerts/rules/preview', rule)).json())
  expect(messages).toBe(11)
})

test('a text in the millisecond in which the first message is due is told once', async () => {
  await watch()
  await say('one')
  alerts.app.clock.advance(3000)
  await say('two')
  await alerts.pass(3 * MINUTE)
  expect(alerts.bodies().map(({ data }) => data.total)).toStrictEqual([2])
})

test('more than thirty messages in an hour become one summary', async () => {
  await watch()
  for (let minute = 0; minute < 50; minute++) {
    await say('help', 1000 + minute)
    await alerts.pass(61_000)
  }
  expect(alerts.bodies().filter(({ type }) => type === 'alert.fired').length).toBeLessThanOrEqual(31)
  await alerts.pass(HOUR)
  expect(alerts.bodies().filter(({ type }) => type === 'alert.summary')).toHaveLength(1)
})

test('a destination that fails does not delay another one behind ten thousand messages', async () => {
  await watch()
  const other = await alerts.webhook()
  alerts.app.store.sqlite.exec(
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < 10000)
      insert into alert_deliveries (uid, destination_id, owner_id, notification, state, created_at, due_at)
      select 'msg_' || i, 1, 1, 'fired', 'waiting', ${alerts.app.clock.now}, ${alerts.app.clock.now} from n`,
  )
  alerts.app.store.sqlite.exec("update alert_deliveries set notification = 'test'")
  alerts.answer = () => ({ status: 503, retryAfterMs: null })
  alerts.app.store.sqlite.exec(
    `insert into alert_deliveries (uid, destination_id, owner_id, notification, state, created_at, due_at)
      values ('msg_other', ${other}, 1, 'test', 'waiting', ${alerts.app.clock.now}, ${alerts.app.clock.now})`,
  )
  await alerts.look()
  expect(alerts.sent.map(({ headers }) => headers['webhook-id'])).toContain('msg_other')
  expect(alerts.sent.length).toBeLessThan(5)
  await alerts.pass(3 * HOUR)
  // Both destinations fail. Retries come after 10 s, 30 s, 2, 5, 15 and 30 min, then hourly; the test moves by minutes.
  expect(alerts.sent).toHaveLength(2 * 9)
})

test('a deleted rule and a switched-off destination send nothing any more', async () => {
  const rule = await watch()
  await say()
  await alerts.admin.send('DELETE', `/api/alerts/rules/${rule}`)
  await alerts.pass(5 * MINUTE)
  expect(alerts.sent).toHaveLength(0)
  expect(await deliveries()).toMatchObject([{ state: 'dropped' }])
})

test('two processes with one database send each message once', async () => {
  await watch()
  for (const destination of [await alerts.webhook(), await alerts.webhook()])
    await alerts.rule({ kind: 'message', name: 'Also', destinations: [destination] })
  await say()
  alerts.app.clock.advance(2 * MINUTE)
  await Promise.all(Array.from({ length: 4 }, () => deliverDue(alerts.app.ports)))
  const ids = alerts.sent.map(({ headers }) => headers['webhook-id'])
  expect([ids.length, new Set(ids).size]).toStrictEqual([3, 3])
})

test('a database that refuses everything is logged once, and due messages are sent when it works again', async () => {
  await watch()
  await say()
  const { sqlite } = alerts.app.store
  sqlite.exec(
    "create temp trigger full before update on alert_deliveries begin select raise(abort, 'disk is full'); end",
  )
  alerts.app.clock.advance(2 * MINUTE)
  for (let second = 0; second < 30; second++) await deliverDue(alerts.app.ports)
  expect(alerts.sent).toHaveLength(0)
  expect(alerts.app.logged.filter((line) => line.includes('could not be sent'))).toHaveLength(1)
  sqlite.exec('drop trigger full')
  await alerts.look()
  expect(alerts.sent).toHaveLength(1)
})
