import { afterEach, beforeEach, expect, test } from 'vitest'
import { auditRows, type Client, createTestApp, START } from '../../support/app.ts'
import { type OutboundRequest, SendFailure } from '../../../src/app/base/outgoing/ports.ts'
import { createTestAlerts, DAY, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import { eq } from 'drizzle-orm'
import { alertRules, alerts as alertsTable, messages, nodes, users } from '../../../src/db/schema.ts'
import { listWatching, prepareRules } from '../../../src/app/alerts/rules/watch-list.ts'
import { turnsDuring } from '../../support/turns.ts'
import { FAR, heard, packet, text } from '../../support/mesh/mesh.ts'

let alerts: TestAlerts

beforeEach(async () => {
  alerts = await createTestAlerts()
})
afterEach(() => alerts.app.close())

const RULE = { kind: 'node_new', name: 'New nodes' }

async function ask(client: Client, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const answer = await client.send(method, `/api/alerts${path}`, body, headers)
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, body: text === '' ? null : Object(JSON.parse(text)), text }
}

test('creating, replacing and deleting a rule by its version is recorded', async () => {
  const { admin } = alerts
  const made = await ask(admin, 'POST', '/rules', RULE)
  expect(made).toMatchObject({ status: 201, body: { rule: { firing: 0, sees: true, rule: RULE } } })
  const path = `/rules/${made.body.rule.id}`
  expect(made.headers.get('location')).toBe(`/api/alerts${path}`)
  const read = async () => {
    const { headers, body } = await ask(admin, 'GET', path)
    expect(headers.get('etag')).toBe(`"${body.rule.revision}"`)
    return String(headers.get('etag'))
  }
  const first = await read()
  const other = { ...RULE, name: 'Newcomers' }
  expect(await ask(admin, 'PUT', path, other, { 'if-match': first })).toMatchObject({ status: 200 })
  const second = await read()
  // A hash: the numbers of its changes are no versions.
  for (const stale of [first, '"1"', '"2"']) {
    expect(await ask(admin, 'PUT', path, RULE, { 'if-match': stale }), stale).toMatchObject({
      status: 412,
      body: { code: 'alert_rule_changed' },
    })
    expect(await ask(admin, 'DELETE', path, undefined, { 'if-match': stale }), stale).toMatchObject({ status: 412 })
  }
  expect((await ask(admin, 'PUT', path, other)).status).toBe(200)
  expect(await read()).toBe(second)
  expect(await ask(admin, 'DELETE', path, undefined, { 'if-match': second })).toMatchObject({ status: 204 })
  expect(await ask(admin, 'GET', path)).toMatchObject({ status: 404, body: { code: 'alert_rule_not_found' } })
  const entries = auditRows(alerts.app).filter(({ action }) => action === 'alert_rule_updated')
  expect(entries.map(({ details }) => [details['before'] !== null, details['after'] !== null])).toStrictEqual([
    [false, true],
    [true, true],
    [true, false],
  ])
})

test('confirmation e-mails have a daily limit for each address, whoever asks, and for each user', async () => {
  const mail = { send: async () => {} }
  const app = await createTestApp({ ports: { mail } })
  const make = async (client: Client, address: string) => {
    const body = { kind: 'email', name: address, settings: { address } }
    return (await ask(client, 'POST', '/destinations', body)).status
  }
  const admin = await app.admin()
  const [ann, bob] = [await app.user('ann'), await app.user('bob')]
  const toVictim: number[] = []
  for (const client of [ann, bob, admin, ann]) toVictim.push(await make(client, 'Victim@example.org'))
  expect(toVictim).toStrictEqual([201, 201, 201, 429])
  const ofBob: number[] = []
  for (let n = 0; n < 5; n++) ofBob.push(await make(bob, `victim${n}@example.org`))
  expect(ofBob).toStrictEqual([201, 201, 201, 201, 429])
  app.clock.advance(DAY)
  expect(await make(bob, 'victim@example.org')).not.toBe(429)
  app.close()
})

test('a preview of a message rule keeps what it finds, not what it reads', async () => {
  const { app, admin } = alerts
  const texts = Array.from({ length: 3000 }, (_, n) => ({
    packetId: n + 1,
    fromNodeNum: 9,
    toNodeNum: 0xffffffff,
    channel: 0,
    text: n % 1000 === 0 ? 'flood' : 'hello',
    timestamp: START - 3000 + n,
    direction: 'in' as const,
  }))
  for (let from = 0; from < texts.length; from += 500) {
    await app.store.db
      .insert(messages)
      .values(texts.slice(from, from + 500))
      .run()
  }
  const rule = (word: string | null) => ({
    kind: 'message',
    name: 'Words',
    ...(word !== null && { match: { words: [word] } }),
  })
  const few = await ask(admin, 'POST', '/rules/preview', rule('flood'))
  expect(few).toMatchObject({ status: 200, body: { total: 3, note: null } })
  const all = await ask(admin, 'POST', '/rules/preview', rule(null))
  expect(all).toMatchObject({ status: 200, body: { total: 2000, note: 'Only the latest 2,000 are counted.' } })
})

test('other users neither see nor change a rule; administrators see it and can end it', async () => {
  const [ann, bob] = [await alerts.app.user('ann'), await alerts.app.user('bob')]
  const id = await alerts.rule(RULE, ann)
  for (const [method, body] of [
    ['GET', undefined],
    ['PUT', RULE],
    ['DELETE', undefined],
  ] as const) {
    expect(await ask(bob, method, `/rules/${id}`, body)).toMatchObject({ status: 404 })
  }
  expect((await ask(bob, 'GET', '/rules')).body.rules).toStrictEqual([])
  expect(await ask(bob, 'GET', '/rules?all=true')).toMatchObject({ status: 403 })
  expect((await ask(alerts.admin, 'GET', '/rules?all=true')).body.rules).toMatchObject([{ owner: { username: 'ann' } }])
  expect(await ask(alerts.admin, 'PUT', `/rules/${id}`, RULE)).toMatchObject({ status: 404 })
  expect(await ask(alerts.admin, 'DELETE', `/rules/${id}`)).toMatchObject({ status: 204 })
})

test('a rule needs the permission for what it watches, and a destination of the same owner', async () => {
  const ann = await alerts.app.user('ann', { nodes: { read: false, write: false } })
  for (const path of ['/rules', '/rules/preview']) {
    expect(await ask(ann, 'POST', path, RULE)).toMatchObject({
      status: 403,
      body: { required: { resource: 'nodes', action: 'read' } },
    })
    expect(await ask(ann, 'POST', path, { kind: 'backup', name: 'x' })).toMatchObject({
      status: 403,
      body: { code: 'admin_required' },
    })
  }
  const destination = await alerts.webhook()
  const stolen = { kind: 'sign_in', name: 'x', destinations: [destination] }
  expect(await ask(ann, 'POST', '/rules', stolen)).toMatchObject({
    status: 400,
    body: { issues: [{ path: 'destinations' }] },
  })
})

test('the number of rules and destinations is bounded, also for simultaneous requests', async () => {
  const made = await Promise.all(Array.from({ length: 60 }, () => ask(alerts.admin, 'POST', '/rules', RULE)))
  expect(made.filter(({ status }) => status === 201)).toHaveLength(50)
  expect(made.find(({ status }) => status !== 201)).toMatchObject({
    status: 409,
    body: { code: 'too_many_alert_rules' },
  })
  const hook = { kind: 'webhook', name: 'x', settings: { url: 'https://example.org/' } }
  const hooks = await Promise.all(Array.from({ length: 30 }, () => ask(alerts.admin, 'POST', '/destinations', hook)))
  expect(hooks.filter(({ status }) => status === 201)).toHaveLength(20)
})

test.each([
  ['below the bound', { kind: 'node_silent', name: 'x', nodes: { kind: 'all' }, afterMinutes: 14 }],
  [
    '201 nodes',
    { kind: 'key', name: 'x', nodes: { kind: 'list', nodes: Array.from({ length: 201 }, (_, n) => n + 1) } },
  ],
  ['a name with a line break', { ...RULE, name: 'a\nb' }],
  ['an unknown field', { ...RULE, ownerId: 1 }],
  ['an area without a shape', { kind: 'area', name: 'x', nodes: { kind: 'all' }, when: 'enters' }],
])('%s is refused', async (_, rule) => {
  expect(await ask(alerts.admin, 'POST', '/rules', rule)).toMatchObject({
    status: 400,
    body: { code: 'invalid_request' },
  })
})

test('secrets appear in no answer, log line or audit entry', async () => {
  const { admin, app } = alerts
  const secret = `whsec_${Buffer.from('a secret of the webhook, 32 byte').toString('base64')}`
  const settings = { url: 'https://hook.example.org/marker-of-the-url', secret }
  const made = await ask(admin, 'POST', '/destinations', { kind: 'webhook', name: 'Hook', settings })
  const { id } = made.body.destination
  expect(made.body.destination.settings).toStrictEqual({ url: '••••', secret: '••••' })
  const changed = await ask(admin, 'PUT', `/destinations/${id}`, { name: 'Other', settings: { url: '••••' } })
  const list = await ask(admin, 'GET', '/destinations')
  const tested = await ask(admin, 'POST', `/destinations/${id}/test`)
  expect(tested.body).toStrictEqual({ ok: true, result: 'status 200' })
  expect(alerts.sent[0]?.url).toBe(settings.url)
  const all = [made.text, changed.text, list.text, tested.text, ...app.logged, JSON.stringify(auditRows(app))].join()
  expect(all).not.toContain('marker-of-the-url')
  expect(all).not.toContain(secret.slice(6))
})

const MARKER = 'marker00of00the00secret'
const SECRET_SETTINGS: Readonly<Record<string, Record<string, string>>> = {
  webhook: { url: `https://hook.example.org/${MARKER}?token=${MARKER}` },
  ntfy: { topic: MARKER, token: MARKER },
  gotify: { server: 'https://gotify.example.org', token: MARKER },
  discord: { url: `https://discord.com/api/webhooks/1/${MARKER}` },
  slack: { url: `https://hooks.slack.com/services/${MARKER}` },
  telegram: { token: `123:${MARKER}`, chat: '1' },
  matrix: { server: 'https://m.example.org', room: '!a:example.org', token: MARKER },
  pushover: { user: MARKER, token: MARKER },
  apprise: { url: `https://apprise.example.org/notify/${MARKER}` },
}

test.each(Object.entries(SECRET_SETTINGS))(
  'the secrets of %s appear only in requests to it, even if they fail',
  async (kind, settings) => {
    const { admin, app } = alerts
    const made = await ask(admin, 'POST', '/destinations', { kind, name: 'There', settings })
    const { id } = made.body.destination
    await alerts.rule({ kind: 'sign_in', name: 'Account', destinations: [id] })
    const answers = [
      () => ({ status: 401, retryAfterMs: null }),
      () => {
        throw new SendFailure('nobody listens there')
      },
      ({ url, body }: OutboundRequest) => {
        throw new Error(`connect to ${url} with ${String(body)}`)
      },
    ]
    const notification = [made.text]
    for (const answer of answers) {
      alerts.answer = answer
      notification.push((await ask(admin, 'POST', `/destinations/${id}/test`)).text)
      await admin.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'] })
      await alerts.pass(2 * MINUTE)
    }
    const { body, headers, url } = alerts.sent[0] ?? {}
    expect(JSON.stringify([url, headers, body])).toContain(MARKER)
    for (const path of ['/destinations', '/destinations?all=true', '/deliveries', '/rules', '?all=true'])
      notification.push((await ask(admin, 'GET', path)).text)
    for (const path of ['/api/audit-log', '/api/metrics', '/api/status'])
      notification.push(await (await admin.send('GET', path)).text())
    const all = [...notification, ...app.logged, JSON.stringify(auditRows(app))].join('\n')
    expect(all).toContain('There')
    expect(all).not.toContain(MARKER)
  },
)

test('a message that Apprise API passed on to nobody does not count as sent', async () => {
  const settings = { url: 'https://apprise.example.org/notify/key' }
  const made = await ask(alerts.admin, 'POST', '/destinations', { kind: 'apprise', name: 'A', settings })
  alerts.answer = () => ({ status: 204, retryAfterMs: null })
  const tested = await ask(alerts.admin, 'POST', `/destinations/${made.body.destination.id}/test`)
  expect(tested.body).toStrictEqual({ ok: false, result: 'status 204: no service is set up there' })
})

test('a token goes only to the server that it was given for', async () => {
  const settings = { server: 'https://gotify.example.org', token: 'secret-token' }
  const made = await ask(alerts.admin, 'POST', '/destinations', { kind: 'gotify', name: 'G', settings })
  const path = `/destinations/${made.body.destination.id}`
  const moved = await ask(alerts.admin, 'PUT', path, {
    settings: { server: 'https://evil.example.org', token: '••••' },
  })
  expect(moved).toMatchObject({ status: 400, body: { issues: [{ path: 'settings.token' }] } })
  expect(await ask(alerts.admin, 'PUT', path, { settings: { server: settings.server } })).toMatchObject({ status: 200 })
})

test.each([
  ['webhook', { url: 'file:///etc/passwd' }],
  ['webhook', { url: 'https://user:word@example.org/' }],
  ['webhook', { url: 'https://example.org/', secret: 'whsec_short' }],
  ['ntfy', { topic: '../../v1/other' }],
  ['ntfy', { topic: 'ok', token: 'a\r\nx-injected: 1' }],
  ['gotify', { server: 'https://example.org?a=b', token: 'x' }],
  ['discord', { url: 'https://discord.com.evil.example/api/webhooks/1/x' }],
  ['telegram', { token: '1:../../x', chat: '1' }],
  ['matrix', { server: 'https://m.example.org', room: '../x', token: 't' }],
  ['web_push', { endpoint: 'http://push.example.org/', p256dh: 'x', auth: 'y' }],
])('%s with %j is refused', async (kind, settings) => {
  expect(await ask(alerts.admin, 'POST', '/destinations', { kind, name: 'x', settings })).toMatchObject({ status: 400 })
})

test('e-mail without a mail server is not offered', async () => {
  const settings = { address: 'you@example.org' }
  expect(await ask(alerts.admin, 'POST', '/destinations', { kind: 'email', name: 'x', settings })).toMatchObject({
    status: 409,
    body: { code: 'email_disabled' },
  })
})

test('signing out removes the push subscription that the session made, and nothing else', async () => {
  const { app } = alerts
  const may = { read: true, write: false }
  const guest = await app.user('guest', { nodes: may })
  const keys = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, true, ['deriveBits'])
  const text = (bytes: ArrayBuffer | Uint8Array) => Buffer.from(new Uint8Array(bytes)).toString('base64url')
  const p256dh = text(await crypto.subtle.exportKey('raw', keys.publicKey))
  const settings = { endpoint: 'https://push.example.org/abc', p256dh, auth: text(new Uint8Array(16)) }
  const subscribe = (client: Client) =>
    ask(client, 'POST', '/destinations', { kind: 'web_push', name: 'Browser', settings })
  expect([(await subscribe(guest)).status, (await subscribe(alerts.admin)).status]).toEqual([201, 201])
  await alerts.webhook(guest)
  const left = () =>
    app.store.sqlite.prepare('select kind, owner_id = ? as own from alert_destinations order by id').raw().all(guest.id)
  expect(left()).toHaveLength(3)
  expect((await guest.send('POST', '/api/auth/logout')).status).toBe(200)
  expect(left()).toEqual([
    ['web_push', 0],
    ['webhook', 1],
  ])
  expect(auditRows(app).at(-1)).toMatchObject({ action: 'alert_destination_updated', username: 'guest' })
})

test('what only a later version knows is listed as unreadable, and its alerts are not shown', async () => {
  const { admin, app } = alerts
  await alerts.rule({ kind: 'sign_in', name: 'Account' })
  await alerts.pass(MINUTE)
  await admin.send('POST', '/api/tokens', { name: 'cron', scopes: ['nodes:read'] })
  await alerts.pass(MINUTE)
  const [alert] = await alerts.alerts()
  expect(alert).toMatchObject({ kind: 'sign_in' })
  await app.store.db.update(alertRules).set({ kind: 'of_tomorrow', rule: '{"kind":"of_tomorrow"}' }).run()
  await app.store.db.update(alertsTable).set({ kind: 'of_tomorrow' }).run()
  expect((await ask(admin, 'GET', '/rules')).body).toMatchObject({
    rules: [],
    unreadable: [{ name: 'Account', kind: 'of_tomorrow' }],
  })
  expect((await ask(admin, 'GET', '?limit=10&all=true')).body).toMatchObject({ alerts: [] })
  expect(await ask(admin, 'POST', `/${Object(alert).id}/acknowledge`)).toMatchObject({ status: 404 })
})

test('the list of rules tells how many watch how many nodes, each node once, and when they were last evaluated', async () => {
  const watching = async (client = alerts.admin) => (await ask(client, 'GET', '/rules')).body.watching
  expect(await watching()).toStrictEqual({ rules: 0, nodes: 0, evaluatedAt: null, isLate: false })
  await alerts.look()
  expect((await watching()).evaluatedAt).toBeNull()
  const told = [0, 1, 2].map((n) => heard(packet(text('hi'), { from: FAR + n, id: 1 + n })))
  await alerts.ingest.store(told)
  const list = (...nodes: number[]) => ({ kind: 'list', nodes })
  await alerts.rule({ kind: 'node_silent', name: 'Two', nodes: list(FAR, FAR + 1, FAR + 9), afterMinutes: 15 })
  await alerts.rule({ kind: 'key', name: 'Keys', nodes: list(FAR) })
  await alerts.rule({ kind: 'link', name: 'Links', afterMinutes: 10 })
  await alerts.rule({ kind: 'key', name: 'Off', nodes: { kind: 'all' }, enabled: false })
  const before = alerts.app.clock.now
  await alerts.pass(2 * MINUTE)
  expect(await watching()).toStrictEqual({ rules: 3, nodes: 2, evaluatedAt: before + 2 * MINUTE, isLate: false })
  alerts.app.clock.advance(6 * MINUTE)
  expect((await watching()).isLate).toBe(true)
  await alerts.look()
  expect((await watching()).isLate).toBe(false)
  const ann = await alerts.app.user('ann')
  expect(await watching(ann)).toMatchObject({ rules: 0, nodes: 0 })
  const id = await alerts.rule({ kind: 'key', name: 'All', nodes: { kind: 'all' } }, ann)
  expect(await watching(ann)).toMatchObject({ rules: 1, nodes: 3 })
  await alerts.app.store.db.update(nodes).set({ isIgnored: true }).where(eq(nodes.nodeNum, FAR))
  expect(await watching(ann)).toMatchObject({ rules: 1, nodes: 2 })
  await ask(ann, 'DELETE', `/rules/${id}`)
  expect(await watching(ann)).toMatchObject({ rules: 0, nodes: 0 })
})

test('more than a hundred rules are parsed in turns before they are listed, which gives none', async () => {
  const { store } = alerts.app
  const [owner] = await store.db.select({ id: users.id }).from(users)
  const row = (n: number) => ({
    ownerId: owner?.id ?? 0,
    uid: `rule-${n}`,
    name: `New ${n}`,
    kind: 'node_new',
    enabled: true,
    revision: 1,
    rule: JSON.stringify({ ...RULE, name: `New ${n}` }),
    anchorAt: START,
    createdAt: START,
    updatedAt: START,
  })
  await store.db.insert(alertRules).values(Array.from({ length: 120 }, (_, n) => row(n)))
  expect(await turnsDuring(() => prepareRules(store))).toBe(2)
  let names: string[] = []
  const list = async () => (names = (await listWatching(store)).map(({ rule }) => rule.name))
  expect(await turnsDuring(list)).toBe(0)
  expect(names).toStrictEqual(Array.from({ length: 120 }, (_, n) => `New ${n}`))
  await store.db
    .update(alertRules)
    .set({ rule: JSON.stringify({ ...RULE, name: 'Another' }) })
    .where(eq(alertRules.id, 1))
  // Several who ask at once, as after a permission has changed, get the same.
  const lists = await Promise.all([listWatching(store), prepareRules(store), listWatching(store)])
  for (const rules of [lists[0], lists[2]])
    expect(rules.slice(0, 2).map(({ rule }) => rule.name)).toStrictEqual(['Another', 'New 1'])
  expect(await turnsDuring(() => prepareRules(store))).toBe(0)
})
