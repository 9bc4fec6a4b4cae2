import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SCOPES } from '../../../src/shared/access/token-scopes.ts'
import type { Rule } from '../../../src/app/http/describe.ts'
import type { ErrorCode } from '../../../src/app/http/errors.ts'
import { listOperations } from '../../../src/app/http/openapi/document.ts'
import { type Client, createTestApp, type TestApp } from '../../support/app.ts'
import { PUBLIC_REQUESTS, REQUESTS } from '../../support/mesh/said.ts'
import { CONTENTS, RULES } from './access-matrix-rules.ts'

/** The request reached the handler or its input checks: anything but 401 and 403. */
type Outcome = 'passed' | ErrorCode

const FULL = { read: true, write: true }
const READ = { read: true, write: false }
const NONE = { read: false, write: false }
const RESOURCES = ['dashboard', 'nodes', 'messages', 'settings', 'configuration', 'info', 'automation']
const all = (grant: { read: boolean; write: boolean }) => Object.fromEntries(RESOURCES.map((name) => [name, grant]))

let app: TestApp
/** Scopes that only administrators give. */
const ONLY_ADMINS: ReadonlySet<string> = new Set(['backup', 'radio'])
/** Tokens by owner and by scope. */
const tokens = new Map<string, string>()

beforeAll(async () => {
  app = await createTestApp()
  const admin = await app.admin()
  await app.user('nothing', all(NONE))
  await app.user('reader', all(READ))
  const writer = await app.user('writer', all(FULL))
  const temporary = await app.user('temporary', all(FULL))
  const gone = await app.user('gone', all(FULL))
  for (const scope of SCOPES) {
    tokens.set(`only ${scope}`, await tokenOf(ONLY_ADMINS.has(scope) ? admin : writer, [scope]))
    tokens.set(
      `all but ${scope}`,
      await tokenOf(
        admin,
        SCOPES.filter((other) => other !== scope),
      ),
    )
  }
  tokens.set('everything', await tokenOf(admin, SCOPES))
  tokens.set('expired', await tokenOf(admin, SCOPES, 1))
  app.clock.advance(86_400_000)
  const again = await app.admin()
  tokens.set('revoked', await revokedToken(again))
  const scopes = SCOPES.filter((scope) => !ONLY_ADMINS.has(scope))
  tokens.set('deactivated', await tokenOf(await app.signIn('gone'), scopes))
  await again.send('DELETE', `/api/users/${gone.id}`)
  tokens.set('temporary', await tokenOf(await app.signIn('temporary'), scopes))
  app.store.sqlite.prepare('update users set must_change_password = 1 where id = ?').run(temporary.id)
  app.store.sqlite
    .prepare(
      `insert into users (username, auth_provider, password_hash, must_change_password, is_admin, created_at)
        select 'temporary-admin', auth_provider, password_hash, 1, 1, 1 from users where id = ?`,
    )
    .run(temporary.id)
})
afterAll(() => app.close())

async function tokenOf(client: Client, scopes: readonly string[], expiresInDays?: number): Promise<string> {
  const body = { name: 'matrix', scopes, ...(expiresInDays !== undefined && { expiresInDays }) }
  const answer = await client.send('POST', '/api/tokens', body)
  expect(answer.status).toBe(201)
  return String(Object(await answer.json()).token)
}

async function revokedToken(client: Client): Promise<string> {
  const token = await tokenOf(client, SCOPES)
  const { tokens: own } = Object(await (await client.send('GET', '/api/tokens')).json())
  expect((await client.send('DELETE', `/api/tokens/${own[0].id}`)).status).toBe(204)
  return token
}

/** The scope that a token needs for a route; null if no scope helps. */
function scopeOf(rule: Rule): string | null {
  if (rule.kind === 'permission') return `${rule.resource}:${rule.action}`
  return rule.kind === 'admin' || rule.kind === 'token' ? rule.scope : null
}

type Caller = {
  readonly credentials: (rule: Rule) => Promise<Record<string, string>> | Record<string, string>
  readonly outcome: (rule: Rule) => Outcome
}

const bySession = (username: string) => async () => ({ cookie: String((await app.signIn(username)).cookie) })
const byToken = (name: string) => () => ({ authorization: `Bearer ${tokens.get(name)}` })

const anonymous = (rule: Rule): Outcome => (rule.kind === 'anyone' ? 'passed' : 'unauthenticated')

const regular =
  (action: 'read' | 'write' | 'none') =>
  (rule: Rule): Outcome => {
    if (rule.kind === 'admin') return 'admin_required'
    if (rule.kind === 'token') return 'forbidden'
    if (rule.kind !== 'permission') return 'passed'
    return action === 'write' || rule.action === action ? 'passed' : 'forbidden'
  }

const tokenHolder =
  (hasScope: boolean) =>
  (rule: Rule): Outcome => {
    if (rule.kind === 'anyone' || (rule.kind === 'signed-in' && rule.tokens)) return 'passed'
    if (rule.kind === 'signed-in') return 'forbidden'
    if (hasScope && scopeOf(rule) !== null) return 'passed'
    return rule.kind === 'admin' && rule.scope === null ? 'admin_required' : 'forbidden'
  }

const newcomer =
  (byToken: boolean) =>
  (rule: Rule): Outcome => {
    if (rule.kind === 'anyone') return 'passed'
    if (rule.kind !== 'signed-in' || !rule.temporaryPassword) return 'password_change_required'
    return byToken ? 'forbidden' : 'passed'
  }

const CALLERS: Readonly<Record<string, Caller>> = {
  anonymous: { credentials: () => ({}), outcome: anonymous },
  'a user with nothing': { credentials: bySession('nothing'), outcome: regular('none') },
  'a user with read': { credentials: bySession('reader'), outcome: regular('read') },
  'a user with write': { credentials: bySession('writer'), outcome: regular('write') },
  'an administrator': {
    credentials: async () => ({ cookie: String((await app.admin()).cookie) }),
    outcome: (rule) => (rule.kind === 'token' ? 'forbidden' : 'passed'),
  },
  'a token with the scope alone': {
    credentials: (rule) => byToken(scopeOf(rule) === null ? 'everything' : `only ${scopeOf(rule)}`)(),
    outcome: tokenHolder(true),
  },
  "an administrator's token with every other scope": {
    credentials: (rule) => byToken(scopeOf(rule) === null ? 'everything' : `all but ${scopeOf(rule)}`)(),
    outcome: tokenHolder(false),
  },
  'a revoked token': { credentials: byToken('revoked'), outcome: anonymous },
  'an expired token': { credentials: byToken('expired'), outcome: anonymous },
  'a token of a deactivated user': { credentials: byToken('deactivated'), outcome: anonymous },
  'a bad token beside a good cookie': {
    credentials: async () => ({ ...byToken('revoked')(), cookie: String((await app.admin()).cookie) }),
    outcome: anonymous,
  },
  'a temporary password': { credentials: bySession('temporary'), outcome: newcomer(false) },
  'an administrator with a temporary password': {
    credentials: bySession('temporary-admin'),
    outcome: newcomer(false),
  },
  'a token of a user with a temporary password': { credentials: byToken('temporary'), outcome: newcomer(true) },
}

// Ids that do not exist and invalid bodies: an admitted caller changes nothing for the next one.
const emptyPath = (path: string) => path.replace(/:\w+(\{[^}]*\})?/g, '999999999')

async function send(method: string, path: string, credentials: Record<string, string>): Promise<Response> {
  const hasBody = method !== 'GET' && method !== 'HEAD' && method !== 'DELETE'
  const answer = await app.request(path, {
    method,
    headers: { ...credentials, ...(hasBody && { 'content-type': 'application/json' }) },
    ...(hasBody && { body: '[]' }),
  })
  return answer
}

async function outcomeOf(answer: Response): Promise<string> {
  if (answer.status === 401 || answer.status === 403) return String(Object(await answer.json()).code)
  await answer.body?.cancel()
  if (answer.status >= 500 && answer.status !== 501 && answer.status !== 503) return `status ${answer.status}`
  return 'passed'
}

const operations = listOperations((await createTestApp()).routes)

test('every route is listed here, and every listed route exists', () => {
  const declared = Object.keys(RULES).toSorted()
  const found = operations.map(({ method, path }) => `${method} ${path}`).toSorted()
  const missing = found.filter((route) => !declared.includes(route))
  const gone = declared.filter((route) => !found.includes(route))
  expect(missing, 'add a line with its access rule to RULES in access-matrix-rules.ts for each of these').toStrictEqual(
    [],
  )
  expect(gone, 'these routes are in RULES in access-matrix-rules.ts and no longer in the app').toStrictEqual([])
})

test('no route matches every method, which would hide it from this test', () => {
  const open = app.routes.filter(({ method, path }) => method === 'ALL' && path !== '/*').map(({ path }) => path)
  expect(open).toStrictEqual([])
})

test('each route for users has its contents listed, and those with data of the mesh are tried by every viewer', () => {
  const guarded = operations.filter(
    ({ method, rule }) => method === 'GET' && (rule.kind === 'permission' || rule.kind === 'signed-in'),
  )
  const found = guarded.map(({ method, path }) => `${method} ${path}`).toSorted()
  expect(Object.keys(CONTENTS).toSorted(), 'name what each of these routes shows, in CONTENTS').toStrictEqual(found)
  const viewed = found.filter((name) => CONTENTS[name] === 'view' && name !== 'GET /api/events')
  expect(Object.keys(REQUESTS).toSorted(), 'add requests to REQUESTS in said.ts').toStrictEqual(viewed)
})

test('each public route is tried without an account', () => {
  const found = operations.filter(({ descriptions }) => descriptions.some(({ shared }) => shared !== undefined))
  const named = found.map(({ method, path }) => `${method} ${path}`).toSorted()
  // `everythingPublic` in seen-mesh.ts tries the stream, which is not among the requests.
  const tried = ['GET /api/events', ...Object.keys(PUBLIC_REQUESTS)].toSorted()
  expect(tried, 'add requests to PUBLIC_REQUESTS in said.ts').toStrictEqual(named)
})

describe.each(operations.map((operation) => ({ ...operation, name: `${operation.method} ${operation.path}` })))(
  '$name',
  ({ name, method, path, rule }) => {
    const declared = RULES[name]

    test('has the declared rule', () => {
      expect(rule, `${name}: the app's rule differs from RULES in access-matrix-rules.ts`).toStrictEqual(declared)
    })

    test('treats each caller by that rule', async () => {
      if (declared === undefined) throw new Error(`add '${name}' with its rule to RULES in access-matrix-rules.ts`)
      const expected: Record<string, string> = {}
      const found: Record<string, string> = {}
      for (const [who, { credentials, outcome }] of Object.entries(CALLERS)) {
        expected[who] = outcome(declared)
        found[who] = await outcomeOf(await send(method, emptyPath(path), await credentials(declared)))
      }
      expect(found).toStrictEqual(expected)
    })

    if (rule.kind === 'anyone') return
    test('refuses anonymous callers in every spelling of its path', async () => {
      const plain = emptyPath(path)
      const variants = [
        plain,
        `${plain}/`,
        `/${plain}`,
        `${plain}//`,
        `${plain}?x=1`,
        `${plain}%2f`,
        plain.replace('/api/', '/API/'),
        plain.replace('/api/', '/api//'),
        plain.replace('/api/', '/api/./'),
        plain.replace('/api/', '/x/../api/'),
        plain.replace(/[a-z](?=[^a-z]*$)/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
      ]
      for (const variant of variants) {
        for (const verb of method === 'GET' ? ['GET', 'HEAD'] : [method]) {
          const { status } = await send(verb, variant, {})
          expect([401, 404, 405], `${verb} ${variant}`).toContain(status)
        }
      }
      if (method === 'GET') expect((await send('HEAD', plain, {})).status).toBe(401)
    })
  },
)
