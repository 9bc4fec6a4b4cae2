import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { deleteOld } from '../../../src/app/upkeep/upkeep.ts'
import { eachTurn } from '../../../src/app/base/pacing/slices.ts'
import { createMailApp, type MailApp } from '../../support/account-mail.ts'
import { auditedBy, outcomeOf } from '../../support/answers.ts'
import { auditRows, type Client, type TestApp } from '../../support/app.ts'
import { ANNOUNCE } from '../../support/automation.ts'

const DAY = 86_400_000
const PROVIDER = {
  OIDC_ENABLED: 'true',
  OIDC_ISSUER: 'https://id.example.org',
  OIDC_CLIENT_ID: 'mesh',
  OIDC_CLIENT_SECRET: 'secret',
  OIDC_REDIRECT_URI: 'https://mesh.example.org/api/auth/oidc/callback',
}

let made: MailApp
let app: TestApp
let admin: Client
beforeEach(async () => {
  made = await createMailApp({ env: PROVIDER })
  app = made.app
  admin = await app.admin()
})
afterEach(() => app.close())

const post = (path: string, body: unknown, key: string | null, client = admin) =>
  client.send('POST', path, body, key === null ? {} : { 'Idempotency-Key': key })

async function answered(path: string, body: unknown, key: string | null, client = admin) {
  const answer = await post(path, body, key, client)
  const location = answer.headers.get('location')
  return { status: answer.status, location, body: Object(await answer.json()) }
}

type Creation = {
  readonly path: string
  readonly body: object
  readonly other: object
  readonly status: number
  readonly action: readonly string[]
  readonly table: string
  /** What the answer shows once. */
  readonly secret?: (body: Record<string, never>) => string | null | undefined
}

const NODE_NEW = { kind: 'node_new', name: 'New nodes' }
const WEBHOOK = { kind: 'webhook', name: 'Hook', settings: { url: 'https://hooks.example.org/x' } }
const INVITED = { username: 'gina', email: 'gina@example.org', invite: true }

const CREATIONS: Readonly<Record<string, Creation>> = {
  user: {
    path: '/api/users',
    body: { username: 'bert', permissions: { nodes: { read: true, write: true } } },
    other: { username: 'bert', permissions: { nodes: { read: true, write: false } } },
    status: 201,
    action: ['user_created'],
    table: 'users',
    secret: ({ password }) => password,
  },
  'invited user': {
    path: '/api/users',
    body: INVITED,
    other: { ...INVITED, isAdmin: true },
    status: 201,
    action: ['user_created', 'user_invited'],
    table: 'users',
  },
  'prepared user': {
    path: '/api/users/prepared',
    body: { username: 'carl' },
    other: { username: 'carl', expiresInDays: 8 },
    status: 201,
    action: ['user_created', 'user_invited'],
    table: 'users',
    secret: ({ invitation }) => Object(invitation).url,
  },
  token: {
    path: '/api/tokens',
    body: { name: 'meter', scopes: ['nodes:read'] },
    other: { name: 'meter', scopes: ['nodes:write'] },
    status: 201,
    action: ['token_created'],
    table: 'api_tokens',
    secret: ({ token }) => token,
  },
  'alert rule': {
    path: '/api/alerts/rules',
    body: NODE_NEW,
    other: { ...NODE_NEW, enabled: false },
    status: 201,
    action: ['alert_rule_updated'],
    table: 'alert_rules',
  },
  destination: {
    path: '/api/alerts/destinations',
    body: WEBHOOK,
    other: { ...WEBHOOK, settings: { url: 'https://hooks.example.org/y' } },
    status: 201,
    action: ['alert_destination_updated'],
    table: 'alert_destinations',
    secret: ({ secret }) => secret,
  },
  'rule of automation': {
    path: '/api/automation',
    body: ANNOUNCE,
    other: { ...ANNOUNCE, text: 'Good morning' },
    status: 201,
    action: ['automation_updated'],
    table: 'automations',
  },
}

/** Lets no transaction begin before this many are about to. */
function beginTogether(count: number): void {
  const { atomic } = app.store
  const { promise, resolve } = Promise.withResolvers<void>()
  let arrived = 0
  const together: typeof atomic = async (...statements) => {
    arrived += 1
    if (arrived === count) resolve()
    await promise
    return atomic(...statements)
  }
  Object.assign(app.store, { atomic: together })
}

const countOf = (table: string) => Object(app.store.sqlite.prepare(`select count(*) as n from ${table}`).get()).n

describe.each(Object.entries(CREATIONS))('a %s', (_name, { path, body, other, status, action, table, secret }) => {
  test('is created once, and a repeat shows no secret again', async () => {
    const before = countOf(table)
    const first = await answered(path, body, 'key-1')
    expect(first.status).toBe(status)
    const shown = secret?.(first.body)
    if (secret !== undefined) {
      expect(shown).toEqual(expect.stringMatching(/.{20}/))
      expect(first.body.secretShown).toBe(true)
    }
    // The order of fields is not part of a request.
    const again = await answered(path, Object.fromEntries(Object.entries(body).toReversed()), 'key-1')
    expect(again).toMatchObject({ status, location: first.location })
    const things = ({ user, rule, destination, automation, id }: Record<string, unknown>) =>
      JSON.stringify({ user, rule, destination, automation, id })
    expect(things(again.body)).toBe(things(first.body))
    if (typeof shown === 'string') {
      expect(again.body.secretShown).toBe(false)
      expect(JSON.stringify(again.body)).not.toContain(shown)
    }
    expect(countOf(table)).toBe(before + 1)
  })

  test('is created once by equal requests at the same instant', async () => {
    const before = countOf(table)
    beginTogether(5)
    const actions = await auditedBy(app, async () => {
      const all = await Promise.all(Array.from({ length: 5 }, () => answered(path, body, 'key-1')))
      expect(all.map((one) => one.status)).toStrictEqual(all.map(() => status))
      if (secret !== undefined) expect(all.filter((one) => one.body.secretShown === true)).toHaveLength(1)
    })
    expect(actions).toStrictEqual(action)
    expect(countOf(table)).toBe(before + 1)
  })

  test('is refused with another body under the same key, and with the key of another kind of request', async () => {
    await answered(path, body, 'key-1')
    const before = countOf(table)
    expect(await outcomeOf(post(path, other, 'key-1'))).toBe('422 idempotency_key_reused')
    expect(await outcomeOf(post('/api/alerts/rules', { ...NODE_NEW, name: 'Else' }, 'key-1'))).toBe(
      '422 idempotency_key_reused',
    )
    expect(countOf(table)).toBe(before)
  })
})

test('without a key each request creates', async () => {
  for (const n of [1, 2]) expect((await answered('/api/alerts/rules', NODE_NEW, null)).status, String(n)).toBe(201)
  expect(countOf('alert_rules')).toBe(2)
})

test('the same body on another path is another request', async () => {
  const ids = [
    await answered('/api/users/prepared', { username: 'x' }, null),
    await answered('/api/users/prepared', { username: 'y' }, null),
  ]
  const [x, y] = ids.map(({ body }) => `/api/users/${body.user.id}/invitation`)
  expect((await answered(x ?? '', {}, 'key-1')).status).toBe(200)
  expect(await outcomeOf(post(y ?? '', {}, 'key-1'))).toBe('422 idempotency_key_reused')
})

test('a key belongs to its user', async () => {
  const anna = await app.user('anna')
  const mine = await answered('/api/alerts/rules', NODE_NEW, 'key-1')
  const theirs = await answered('/api/alerts/rules', { ...NODE_NEW, name: 'Mine' }, 'key-1', anna)
  expect(theirs.status).toBe(201)
  expect(theirs.body.rule.id).not.toBe(mine.body.rule.id)
})

test('a link is made once; a repeat does not show it, and says when it is no longer open', async () => {
  const { body } = await answered('/api/users/prepared', { username: 'carl' }, null)
  const path = `/api/users/${body.user.id}/invitation`
  app.clock.advance(1000)
  const first = await answered(path, {}, 'key-1')
  expect(first.body).toMatchObject({ secretShown: true, invitation: { url: expect.stringContaining('invitation=') } })
  app.clock.advance(1000)
  const again = await answered(path, {}, 'key-1')
  expect(again).toMatchObject({
    status: 200,
    body: { secretShown: false, invitation: { url: null, expiresAt: first.body.invitation.expiresAt } },
  })
  // Another link replaces it: the first key must not answer with the new one.
  await answered(path, {}, 'key-2')
  expect(await outcomeOf(post(path, {}, 'key-1'))).toBe('404 not_found')
})

test('an invitation by e-mail is sent once', async () => {
  const { body } = await answered('/api/users', INVITED, 'key-1')
  expect(body).toMatchObject({ secretShown: false, invitation: { url: null, sentTo: INVITED.email } })
  const again = await answered('/api/users', INVITED, 'key-1')
  expect(again.body).toStrictEqual(body)
  expect((await made.post()).map(({ to }) => to)).toStrictEqual([INVITED.email])
})

test.each([
  ['token', (id: string) => `/api/tokens/${id}`, 'token_not_found'],
  ['alert rule', (id: string) => `/api/alerts/rules/${id}`, 'alert_rule_not_found'],
  ['destination', (id: string) => `/api/alerts/destinations/${id}`, 'destination_not_found'],
  ['rule of automation', (id: string) => `/api/automation/${id}`, 'automation_not_found'],
] as const)('a %s that was deleted is not created again', async (name, pathOf, code) => {
  const { path, body, table } = CREATIONS[name] ?? {}
  const first = await answered(path ?? '', body, 'key-1')
  const { rule, destination, automation, id } = first.body
  await admin.send('DELETE', pathOf(rule?.id ?? destination?.id ?? automation?.id ?? id))
  expect(await outcomeOf(post(path ?? '', body, 'key-1'))).toBe(`404 ${code}`)
  expect(countOf(table ?? '')).toBe(0)
})

test('a refused request leaves its key unused', async () => {
  const { path, body } = { path: '/api/users', body: { username: 'bert', password: 'short' } }
  expect(await outcomeOf(post(path, body, 'key-1'))).toBe('422 weak_password')
  expect((await answered(path, { username: 'bert' }, 'key-1')).status).toBe(201)
})

test('a token beyond the limit is refused with a key as without one', async () => {
  const { path, body } = { path: '/api/tokens', body: { name: 'meter', scopes: ['nodes:read'] } }
  for (let n = 0; n < 50; n++) {
    app.clock.advance(10_000)
    expect((await post(path, body, null)).status).toBe(201)
  }
  expect(await outcomeOf(post(path, body, 'key-1'))).toBe('409 too_many_tokens')
  expect(countOf('idempotency_keys')).toBe(0)
})

test.each(['token', 'destination', 'prepared user'])('a repeat of a %s needs a fresh proof too', async (name) => {
  const { path, body } = CREATIONS[name] ?? {}
  await answered(path ?? '', body, 'key-1')
  app.clock.advance(16 * 60_000)
  expect(await outcomeOf(post(path ?? '', body, 'key-1'))).toBe('403 reauthentication_required')
})

test('a key is remembered for a day, and then deleted', async () => {
  await answered('/api/alerts/rules', NODE_NEW, 'key-1')
  app.clock.advance(DAY - 1)
  admin = await app.admin()
  expect((await answered('/api/alerts/rules', NODE_NEW, 'key-1')).body.rule.id).toBe(1)
  app.clock.advance(1)
  await deleteOld(app.ports, eachTurn)
  expect(countOf('idempotency_keys')).toBe(0)
  expect((await answered('/api/alerts/rules', NODE_NEW, 'key-1')).body.rule.id).toBe(2)
})

test('a key can be used again after a day, however many old keys wait to be deleted', async () => {
  await answered('/api/alerts/rules', NODE_NEW, 'key-1')
  app.store.sqlite
    .prepare(
      `with recursive n(i) as (select 1 union all select i + 1 from n where i < 1001)
      insert into idempotency_keys select 1, 'old-' || i, 'POST /', '', 1, 1 from n`,
    )
    .run()
  app.clock.advance(DAY)
  admin = await app.admin()
  const again = await answered('/api/alerts/rules', NODE_NEW, 'key-1')
  expect(again).toMatchObject({ status: 201, body: { rule: { id: 2 } } })
})

test('a stolen database does not let anybody try passwords against a key', async () => {
  const password = 'a password for everyone'
  const body = { username: 'bert', password }
  await answered('/api/users', body, 'key-1')
  const [row] = app.store.sqlite.prepare<[], Record<string, string>>('select * from idempotency_keys').all()
  expect(JSON.stringify(row)).not.toContain(password)
  const hash = row?.['request_hash'] ?? ''
  expect(hash).toMatch(/^[0-9a-f]{64}$/)
  // The same request gives another hash under another secret.
  const elsewhere = await createMailApp({ env: { ...PROVIDER, SESSION_SECRET: 'o'.repeat(40) } })
  await post('/api/users', body, 'key-1', await elsewhere.app.admin())
  const [there] = elsewhere.app.store.sqlite.prepare<[], Record<string, string>>('select * from idempotency_keys').all()
  expect(there?.['request_hash']).toMatch(/^[0-9a-f]{64}$/)
  expect(there?.['request_hash']).not.toBe(hash)
  elsewhere.app.close()
})

test('a key still counts after SESSION_SECRET got a new first value', async () => {
  await answered('/api/alerts/rules', NODE_NEW, 'key-1')
  const { config } = app.ports
  Object.assign(app.ports, { config: { ...config, SESSION_SECRET: ['n'.repeat(40), ...config.SESSION_SECRET] } })
  const again = await answered('/api/alerts/rules', NODE_NEW, 'key-1', await app.admin())
  expect(again).toMatchObject({ status: 201, body: { rule: { id: 1 } } })
})

test('an invalid key is refused', async () => {
  for (const key of ['two words', 'x'.repeat(256)]) {
    const answer = await answered('/api/alerts/rules', NODE_NEW, key)
    expect(answer).toMatchObject({ status: 400, body: { issues: [{ path: 'Idempotency-Key' }] } })
  }
  expect(auditRows(app).map(({ action }) => action)).not.toContain('alert_rule_updated')
})
