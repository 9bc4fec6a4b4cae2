import { afterEach, beforeEach, expect, test } from 'vitest'
import { type QuietHours, quietUntil } from '../../../src/app/alerts/quiet/hours.ts'
import { auditRows, type Client } from '../../support/app.ts'
import { createTestAlerts, HOUR, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import { FAR, heard, packet, text } from '../../support/mesh/mesh.ts'

const EVERY_DAY = [1, 2, 3, 4, 5, 6, 7]
const NIGHT: QuietHours = { from: '22:00', to: '07:00', timeZone: 'Europe/Berlin', days: EVERY_DAY }
const PATH = '/api/alerts/quiet-hours'

const untilOf = (hours: Partial<QuietHours>, at: string) => {
  const until = quietUntil({ ...NIGHT, ...hours }, Date.parse(at))
  return until === null ? null : new Date(until).toISOString()
}

test.each([
  ['2026-01-15T20:59:59Z', null],
  ['2026-01-15T21:00:00Z', '2026-01-16T06:00:00.000Z'],
  ['2026-01-16T05:59:59Z', '2026-01-16T06:00:00.000Z'],
  ['2026-01-16T06:00:00Z', null],
])('a night across midnight: %s', (at, until) => {
  expect(untilOf({}, at)).toBe(until)
})

test.each([
  // On 29 March the clocks go from 02:00 to 03:00, on 25 October from 03:00 back to 02:00.
  [{}, '2026-03-28T21:00:00Z', '2026-03-29T05:00:00.000Z'],
  [{}, '2026-10-24T20:00:00Z', '2026-10-25T06:00:00.000Z'],
  [{}, '2026-10-25T05:59:00Z', '2026-10-25T06:00:00.000Z'],
  [{ to: '02:30' }, '2026-03-28T23:30:00Z', '2026-03-29T01:30:00.000Z'],
  [{ to: '02:30' }, '2026-10-24T23:30:00Z', '2026-10-25T00:30:00.000Z'],
  // The clocks show 02:15 again.
  [{ to: '02:30' }, '2026-10-25T01:15:00Z', null],
  [{ from: '02:30', to: '04:00' }, '2026-03-29T01:20:00Z', null],
  [{ from: '02:30', to: '04:00' }, '2026-03-29T01:30:00Z', '2026-03-29T02:00:00.000Z'],
])('when the clocks change: %j at %s', (hours, at, until) => {
  expect(untilOf(hours, at)).toBe(until)
})

test('a night belongs to the day on which it begins', () => {
  const friday = { days: [5] }
  expect(untilOf(friday, '2026-01-15T23:30:00Z')).toBeNull()
  expect(untilOf(friday, '2026-01-16T21:30:00Z')).toBe('2026-01-17T06:00:00.000Z')
  expect(untilOf(friday, '2026-01-17T05:30:00Z')).toBe('2026-01-17T06:00:00.000Z')
  expect(untilOf(friday, '2026-01-17T21:30:00Z')).toBeNull()
})

let alerts: TestAlerts
let anna: Client & { id: number }
let id = 0

beforeEach(async () => {
  alerts = await createTestAlerts()
  anna = await alerts.app.user('anna', { nodes: { read: true, write: false }, messages: { read: true, write: false } })
})
afterEach(() => alerts.app.close())

/** Moves the clock to a time of day in UTC, on this day or the next one. */
async function until(time: string): Promise<void> {
  const { now } = alerts.app.clock
  const today = Date.parse(`${new Date(now).toISOString().slice(0, 10)}T${time}:00Z`)
  await alerts.pass((today > now ? today : today + 24 * HOUR) - now)
}
const keep = (quietHours: object | null, client = alerts.admin) => client.send('PUT', PATH, { quietHours })
const UTC_NIGHT = { ...NIGHT, timeZone: 'UTC' }
const say = (words: string, from = FAR) =>
  alerts.ingest.store([heard(packet(text(words), { from, id: ++id }), { at: alerts.app.clock.now })])
/** Tells the one destination of a user. */
async function watch(rule: object = {}, client = alerts.admin): Promise<number> {
  const { destinations } = Object(await (await client.send('GET', '/api/alerts/destinations')).json())
  const hook = destinations[0]?.id ?? (await alerts.webhook(client))
  return alerts.rule({ kind: 'message', name: 'All', destinations: [hook], ...rule }, client)
}
const textsOf = () => alerts.bodies().map(({ type, data }) => [type, data.text] as const)
const heldUntil = async () => (await alerts.alerts()).map((alert) => alert['heldUntil'])

test('what happens in quiet hours is told in one message when they end, and says how long it waits', async () => {
  expect((await keep(UTC_NIGHT)).status).toBe(200)
  await watch()
  await watch({ kind: 'node_silent', name: 'Silent', nodes: { kind: 'all' }, afterMinutes: 60 })
  await until('23:00')
  await say('first')
  await alerts.pass(2 * HOUR)
  await say('second')
  await alerts.pass(5 * MINUTE)
  expect(alerts.sent).toHaveLength(0)
  const end = Date.parse(`${new Date(alerts.app.clock.now).toISOString().slice(0, 10)}T07:00:00Z`)
  expect(await heldUntil()).toStrictEqual([end, end, end])
  const stated = await (await alerts.admin.send('GET', PATH)).json()
  expect(stated).toStrictEqual({ quietHours: UTC_NIGHT, until: end })
  await until('06:59')
  expect(alerts.sent).toHaveLength(0)
  await alerts.pass(MINUTE)
  const [sent] = textsOf()
  expect(sent?.[0]).toBe('alert.quiet')
  const lines = sent?.[1].split('\n') ?? []
  // It was silent twice: once it was heard again, once it still is.
  expect(lines).toHaveLength(5)
  expect(lines[0]).toBe('4 alerts:')
  expect(lines[1]).toMatch(/^• 23:00 .*“first”/)
  expect(lines[2]).toMatch(/^• 00:0\d .* was not heard for 60 min \(over at 01:0\d\)$/)
  expect(lines[3]).toMatch(/^• 01:00 .*“second”/)
  expect(lines[4]).toMatch(/^• 02:0\d .* was not heard for 60 min$/)
  expect(alerts.sent).toHaveLength(1)
  expect(await heldUntil()).toStrictEqual([null, null, null, null])
  // By day messages are sent at once again.
  await say('third')
  await alerts.pass(2 * MINUTE)
  expect(
    textsOf()
      .slice(1)
      .some(([type, words]) => type === 'alert.fired' && words.includes('third')),
  ).toBe(true)
})

test('what is urgent, news of the own account and a test are sent at once', async () => {
  await keep(UTC_NIGHT)
  const hook = await alerts.webhook()
  await watch({ name: 'Urgent', urgent: true, match: { mode: 'word', words: ['help'] } })
  await watch()
  await watch({ kind: 'sign_in', name: 'Account' })
  await until('23:00')
  const before = alerts.sent.length
  await say('help')
  const admin = await alerts.app.admin()
  await admin.send('POST', '/api/tokens', { name: 'cron', scopes: ['nodes:read'] })
  await admin.send('POST', `/api/alerts/destinations/${hook}/test`)
  await alerts.pass(3 * MINUTE)
  const types = alerts
    .bodies()
    .slice(before)
    .map(({ type, data }) => `${type} ${data.title}`)
  expect(types.toSorted()).toStrictEqual(['alert.fired Account', 'alert.fired Urgent', 'alert.test Test'])
  await until('07:00')
  expect(alerts.bodies().at(-1)?.type).toBe('alert.quiet')
})

test('quiet hours that end sooner, later or altogether lose nothing and tell nothing twice', async () => {
  await watch()
  await keep(UTC_NIGHT)
  await until('23:00')
  await say('first')
  await alerts.pass(5 * MINUTE)
  // Later: held again.
  await keep({ ...UTC_NIGHT, to: '09:00' })
  await alerts.pass(5 * MINUTE)
  await say('second')
  await until('08:00')
  expect(alerts.sent).toHaveLength(0)
  // Sooner: they are over.
  await keep({ ...UTC_NIGHT, to: '07:30' })
  await alerts.pass(MINUTE)
  expect(textsOf()).toMatchObject([['alert.quiet', expect.stringMatching(/first[^]*second/)]])
  await until('23:00')
  await say('third')
  await alerts.pass(5 * MINUTE)
  expect(alerts.sent).toHaveLength(1)
  await keep(null)
  await alerts.pass(MINUTE)
  expect(textsOf().slice(1)).toMatchObject([['alert.quiet', expect.stringContaining('third')]])
  await alerts.pass(10 * HOUR)
  expect(alerts.sent).toHaveLength(2)
})

test('a receiver that is down when quiet hours end gets the message later, even after the next quiet hours', async () => {
  await watch()
  await keep({ ...UTC_NIGHT, from: '07:30' })
  await until('08:00')
  await say('early')
  await until('06:59')
  alerts.answer = () => ({ status: 503, retryAfterMs: null })
  await until('07:29')
  expect(new Set(textsOf().map(([type]) => type))).toStrictEqual(new Set(['alert.quiet']))
  const tries = alerts.sent.length
  expect(tries).toBeGreaterThan(1)
  await until('06:00')
  expect(alerts.sent).toHaveLength(tries)
  alerts.answer = () => ({ status: 200, retryAfterMs: null })
  await alerts.pass(2 * HOUR)
  expect(alerts.sent).toHaveLength(tries + 1)
  expect(alerts.bodies().at(-1)?.data.text).toContain('early')
})

test('a message that waits tells only what its owner may still see, and of rules that are on', async () => {
  await keep(UTC_NIGHT, anna)
  await watch({ channels: 'all' }, anna)
  const rule = await watch({ name: 'Other', match: { mode: 'word', words: ['help'] } }, anna)
  await until('23:00')
  await say('help')
  await say('nothing')
  await alerts.pass(5 * MINUTE)
  await anna.send('DELETE', `/api/alerts/rules/${rule}`)
  await until('07:00')
  expect(textsOf()).toMatchObject([['alert.quiet', expect.stringMatching(/^2 alerts:/)]])
  await until('23:00')
  await say('secret')
  await alerts.pass(5 * MINUTE)
  const permissions = { nodes: { read: true, write: false }, messages: { read: false, write: false } }
  const admin = await alerts.app.admin()
  expect((await admin.send('PUT', `/api/users/${anna.id}/permissions`, { permissions })).status).toBe(200)
  await until('07:00')
  expect(alerts.sent).toHaveLength(1)
})

test('hundreds of held messages are one, and other people are told at once', async () => {
  await keep(UTC_NIGHT, anna)
  await watch({}, anna)
  await watch()
  await until('23:00')
  for (let n = 0; n < 60; n++) {
    await say(`text ${n}`, 1000 + n)
    await alerts.pass(MINUTE)
  }
  await alerts.pass(2 * MINUTE)
  const told = alerts.sent.length
  expect(told).toBeGreaterThan(20)
  await until('07:00')
  const rest = alerts
    .bodies()
    .slice(told)
    .filter(({ type }) => type === 'alert.quiet')
  expect(rest.map(({ data }) => data.total)).toStrictEqual([60])
})

test('a change is in the audit log, the same again is not, and what makes no sense is refused', async () => {
  await keep(UTC_NIGHT)
  await keep(UTC_NIGHT)
  await keep(null)
  const entries = auditRows(alerts.app).filter(({ action }) => action === 'quiet_hours_updated')
  expect(entries.map(({ details }) => details)).toStrictEqual([
    { before: null, after: UTC_NIGHT },
    { before: UTC_NIGHT, after: null },
  ])
  for (const wrong of [
    { to: '22:00' },
    { from: '25:00' },
    { timeZone: 'Mars/Olympus' },
    { days: [] },
    { days: [1, 1] },
    { days: [8] },
  ]) {
    expect((await keep({ ...UTC_NIGHT, ...wrong })).status, JSON.stringify(wrong)).toBe(400)
  }
  expect(await (await anna.send('GET', PATH)).json()).toStrictEqual({ quietHours: null, until: null })
})

/** Stores so many alerts of a rule, each in a message of its own that is due; from the 2401st on on channel 1. */
function storeDue(rule: number, count: number): void {
  const { now } = alerts.app.clock
  const { sqlite } = alerts.app.store
  const { owner_id: owner } = Object(sqlite.prepare('select owner_id from alert_rules where id = ?').get(rule))
  const [hook] = Object(sqlite.prepare('select id from alert_destinations where owner_id = ?').all(owner))
  sqlite.exec(`
    with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count})
    insert into alerts (rule_id, rule_name, owner_id, kind, subject, key, state, what, channel, direct, step, started_at, fired_at)
      select ${rule}, 'All', ${owner}, 'message', 'm', 'm' || i, 'resolved', 'text', i > 2400, 0, 's', ${now}, ${now} from n;
    insert into alert_deliveries (uid, destination_id, owner_id, rule_id, notification, state, created_at, due_at)
      select 'msg_' || id, ${hook.id}, ${owner}, ${rule}, 'fired', 'waiting', ${now}, ${now} from alerts;
    insert into alert_delivery_items (delivery_id, alert_id)
      select d.id, a.id from alert_deliveries d join alerts a on d.uid = 'msg_' || a.id;`)
}

test('thousands of messages that wait when quiet hours begin are all held, and counted', async () => {
  await keep(UTC_NIGHT)
  const rule = await watch()
  await until('22:00')
  storeDue(rule, 2500)
  await alerts.pass(2 * MINUTE)
  expect(alerts.sent).toHaveLength(0)
  await until('07:00')
  expect(alerts.bodies().map(({ type, data }) => [type, data.total])).toStrictEqual([['alert.quiet', 2500]])
})

test('of thousands of held alerts those are told that their owner may still see', async () => {
  await keep(UTC_NIGHT, anna)
  const rule = await watch({ channels: 'all' }, anna)
  await until('22:00')
  storeDue(rule, 2500)
  await alerts.pass(2 * MINUTE)
  const permissions = { nodes: { read: true, write: false }, messages: { read: true, write: false } }
  const scope = { channels: { read: [1], write: [] }, direct: { read: false, write: false } }
  const admin = await alerts.app.admin()
  expect((await admin.send('PUT', `/api/users/${anna.id}/permissions`, { permissions, scope })).status).toBe(200)
  await until('07:00')
  expect(alerts.bodies().map(({ data }) => data.total)).toStrictEqual([100])
})

test('a receiver that is down for good gets no messages from days ago when it is back', async () => {
  await watch()
  await keep(UTC_NIGHT)
  alerts.answer = () => ({ status: 503, retryAfterMs: null })
  await until('20:00')
  await say('old')
  await until('23:00')
  await say('old night')
  await alerts.pass(100 * HOUR)
  alerts.answer = () => ({ status: 200, retryAfterMs: null })
  alerts.sent.length = 0
  await alerts.pass(12 * HOUR)
  expect(textsOf()).toStrictEqual([])
})
