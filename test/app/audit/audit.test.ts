import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { AUDIT_ACTIONS } from '../../../src/shared/access/audit-actions.ts'
import { csvCell } from '../../../src/shared/csv.ts'
import { outcomeOf } from '../../support/answers.ts'
import {
  ADMIN_PASSWORD,
  auditRows,
  type Client,
  createTestApp,
  START,
  type TestApp,
  USER_PASSWORD,
} from '../../support/app.ts'

let app: TestApp
let admin: Client
beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
})
afterEach(() => app.close())

type Entry = { id: number; timestamp: number; username: string; action: string; details: Record<string, unknown> }

async function page(query = '', client = admin): Promise<{ entries: Entry[]; nextCursor: number | null }> {
  const answer = await client.send('GET', `/api/audit${query}`)
  expect(answer.status).toBe(200)
  return Object(await answer.json())
}

/** Adds entries of the past, one a minute, with an `insert` like the service's own. */
function fill(count: number, entry: Record<string, unknown> = {}) {
  const insert = app.store.sqlite.prepare(
    `insert into audit_log (timestamp, user_id, username, action, resource, details, ip, request_id)
      values (@timestamp, @userId, @username, @action, @resource, @details, @ip, null)`,
  )
  const all = app.store.sqlite.transaction(() => {
    for (let i = 0; i < count; i++) {
      const defaults = {
        userId: 7,
        username: 'old',
        action: 'node_updated',
        resource: 'nodes',
        details: '{}',
        ip: null,
      }
      insert.run({ ...defaults, timestamp: START + i * 60_000, ...entry })
    }
  })
  all()
}

describe('the list', () => {
  test('is complete, starts with the newest, and holds a hundred entries by default', async () => {
    fill(150)
    const { entries, nextCursor } = await page()
    expect(entries).toHaveLength(100)
    expect(entries[0]).toStrictEqual({
      id: 152,
      timestamp: START + 149 * 60_000,
      userId: 7,
      username: 'old',
      action: 'node_updated',
      resource: 'nodes',
      details: {},
      ip: null,
      requestId: null,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      previousHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(nextCursor).toBe(53)
  })

  test('pages by cursor show each entry once, also while others are added', async () => {
    fill(25)
    const seen: number[] = []
    let cursor: number | null = null
    do {
      const next: { entries: Entry[]; nextCursor: number | null } = await page(
        `?limit=10${cursor === null ? '' : `&cursor=${cursor}`}`,
      )
      seen.push(...next.entries.map(({ id }) => id))
      cursor = next.nextCursor
      fill(3)
    } while (cursor !== null)
    expect(seen).toStrictEqual(Array.from({ length: 27 }, (_, i) => 27 - i))
  })

  test('a page that ends exactly with the last entry has no next page', async () => {
    fill(8)
    expect((await page('?limit=10')).nextCursor).toBeNull()
    expect((await page('?limit=9')).nextCursor).toBe(2)
    expect(await page('?limit=5&cursor=1')).toStrictEqual({ entries: [], nextCursor: null })
  })

  test('a search goes back through windows of ids to the oldest entry', async () => {
    fill(1, { details: '{"note":"needle"}' })
    fill(25_000)
    fill(1, { details: '{"note":"needle"}' })
    const ids = async (query: string) => (await page(query)).entries.map(({ id }) => id)
    expect(await ids('?q=needle')).toStrictEqual([25_004, 3])
    expect(await ids('?q=needle&limit=1')).toStrictEqual([25_004])
    expect((await page('?q=needle&limit=1')).nextCursor).toBe(25_004)
    expect(await ids('?q=needle&cursor=25004')).toStrictEqual([3])
    expect(await ids('?q=needle&cursor=9007199254740991')).toStrictEqual([25_004, 3])
    expect(await ids(`?resource=auth&from=${START}`)).toStrictEqual([2])
  })

  test('failed sign-ins are found together, whether by password or by OpenID Connect', async () => {
    fill(1, { action: 'oidc_login_failed', resource: 'auth', userId: null, username: null })
    fill(1, { action: 'login_failed', resource: 'auth', userId: null })
    fill(1)
    const ids = async (query: string) => (await page(query)).entries.map(({ id }) => id)
    expect(await ids('?action=login_failed')).toStrictEqual([4, 3])
    expect(await ids('?action=login_failed&limit=1&cursor=4')).toStrictEqual([3])
    expect(await ids('?action=oidc_login_failed')).toStrictEqual([3])
  })

  test('reading it writes nothing', async () => {
    const before = auditRows(app).length
    await page()
    await admin.send('GET', '/api/audit/export?format=csv')
    expect(auditRows(app)).toHaveLength(before)
  })
})

describe('filters', () => {
  beforeEach(() => {
    fill(1, {
      username: 'Zoe',
      userId: 9,
      timestamp: START + 1000,
      details: '{"note":"100% of_it"}',
      ip: '2001:db8::9',
    })
    fill(1, { action: 'message_sent', resource: 'messages', timestamp: START + 2000, details: '{"text":"a\\\\b"}' })
    fill(1, { action: 'settings_updated', resource: 'settings', timestamp: START + 3000 })
  })

  test.each([
    ['userId=9', ['node_updated']],
    ['userId=1', ['login_success']],
    ['action=message_sent', ['message_sent']],
    ['action=nothing', []],
    ['resource=settings', ['settings_updated']],
    [`from=${START + 2000}`, ['settings_updated', 'message_sent']],
    [`to=${START + 1000}`, ['node_updated', 'login_success', 'admin_bootstrapped']],
    [`from=${START + 1000}&to=${START + 2000}`, ['message_sent', 'node_updated']],
    [`from=${START + 5000}`, []],
    ['q=zoe', ['node_updated']],
    ['q=ADMIN', ['login_success', 'admin_bootstrapped']],
    ['q=sent', ['message_sent']],
    ['q=%25', ['node_updated']],
    ['q=f_i', ['node_updated']],
    ['q=a%5C%5Cb', ['message_sent']],
    ['q=db8::9', ['node_updated']],
    ["q='%20or%201=1", []],
    [`q=${'x'.repeat(200)}`, []],
    ['userId=7&action=message_sent&resource=messages&q=text', ['message_sent']],
    ['userId=9&action=message_sent', []],
    ['unknown=1', ['settings_updated', 'message_sent', 'node_updated', 'login_success', 'admin_bootstrapped']],
  ])('%s finds %j', async (query, actions) => {
    expect((await page(`?${query}`)).entries.map(({ action }) => action)).toStrictEqual(actions)
    const lines = await (await admin.send('GET', `/api/audit/export?format=ndjson&${query}`)).text()
    expect(
      lines
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line).action),
    ).toStrictEqual(actions)
  })

  test.each([
    'limit=0',
    'limit=501',
    'limit=x',
    'cursor=0',
    'cursor=-1',
    'cursor=x',
    'userId=x',
    'userId=0',
    'from=x',
    'from=-1',
    'from=2026-13-01',
    'to=1e3',
    'to=8640000000000001',
    'q=',
    `q=${'x'.repeat(201)}`,
    `action=${'x'.repeat(101)}`,
    'from=1&from=2',
  ])('%s is refused', async (query) => {
    expect(await outcomeOf(admin.send('GET', `/api/audit?${query}`))).toBe('400 invalid_request')
    const isPage = query.startsWith('limit') || query.startsWith('cursor')
    expect(await outcomeOf(admin.send('GET', `/api/audit/export?format=csv&${query}`))).toBe(
      isPage ? '200' : '400 invalid_request',
    )
  })
})

describe('the export', () => {
  test('as CSV has all rows in order, with quoted cells', async () => {
    fill(1203)
    fill(1, { username: 'a,"b"', details: '{"x":"line\\nbreak, \\"quoted\\""}' })
    const answer = await admin.send('GET', '/api/audit/export?format=csv')
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="audit.csv"')
    const lines = (await answer.text()).split('\r\n')
    expect(lines[0]).toBe('id,timestamp,userId,username,action,resource,details,ip,requestId,previousHash,hash')
    const [previousHash, hash] = lines[1]?.split(',').slice(-2) ?? []
    expect([previousHash, hash]).toStrictEqual([
      expect.stringMatching(/^[0-9a-f]{64}$/),
      expect.stringMatching(/^[0-9a-f]{64}$/),
    ])
    expect(lines[1]).toBe(
      `1206,${START},7,"a,""b""",node_updated,nodes,"{""x"":""line\\nbreak, \\""quoted\\""""}",,,${previousHash},${hash}`,
    )
    expect(lines).toHaveLength(1 + 1206 + 1)
    expect(lines.slice(1, -1).map((line) => Number(line.split(',')[0]))).toStrictEqual(
      Array.from({ length: 1206 }, (_, i) => 1206 - i),
    )
  })

  test('goes on after pages of which none has an entry that was asked for', async () => {
    fill(1, { username: 'long ago' })
    fill(40_000)
    // Each query of a search takes long, so a page ends soon.
    let at = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (at += 1000))
    try {
      const answer = await admin.send('GET', '/api/audit/export?format=ndjson&resource=nodes&q=lo')
      expect((await answer.text()).split('\n').filter((line) => line.includes('long ago'))).toHaveLength(1)
    } finally {
      clock.mockRestore()
    }
  })

  test('as NDJSON has the entries of the list, one per line', async () => {
    fill(700)
    const answer = await admin.send('GET', '/api/audit/export?format=ndjson')
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson')
    const lines = (await answer.text()).split('\n')
    expect(lines.pop()).toBe('')
    expect(lines).toHaveLength(702)
    const { entries } = await page('?limit=500')
    expect(lines.slice(0, 500).map((line) => JSON.parse(line))).toStrictEqual(entries)
  })

  test.each([
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    ['\r=1', '"\'\r=1"'],
    ['\n=1', '"\'\n=1"'],
    ['＝1＋1', "'＝1＋1"],
    ['=HYPERLINK("x","y")', '"\'=HYPERLINK(""x"",""y"")"'],
    ['a=1', 'a=1'],
    ['a\nb', '"a\nb"'],
    ['', ''],
  ])('a cell of %j is written as %j', (text, cell) => {
    expect(csvCell(text)).toBe(cell)
  })

  test('a name that a spreadsheet would execute is made harmless', async () => {
    await app.client().send('POST', '/api/auth/login', { username: '=cmd|calc', password: 'x' })
    const csv = await (await admin.send('GET', '/api/audit/export?format=csv&action=login_failed')).text()
    expect(csv).toContain(",'=cmd|calc,login_failed,")
  })

  test.each(['', '?format=', '?format=xml', '?format=csv&format=ndjson'])(
    '%s is not accepted as a format',
    async (query) => {
      expect(await outcomeOf(admin.send('GET', `/api/audit/export${query}`))).toBe('400 invalid_request')
    },
  )

  test('streams the rows as it reads them', async () => {
    fill(2000)
    const answer = await admin.send('GET', '/api/audit/export?format=ndjson')
    const reader = answer.body?.getReader()
    const first = await reader?.read()
    expect(new TextDecoder().decode(first?.value).split('\n').length).toBeLessThanOrEqual(501)
    await reader?.cancel()
  })

  test.each([
    ['every entry', '', 20],
    ['the few matching entries', '&q=nothing+like+it', 1],
  ])('of %s yields to other work after each page', async (_, query, pages) => {
    fill(20_000)
    let turns = 0
    const turn = () => {
      turns++
      timer = setImmediate(turn)
    }
    let timer = setImmediate(turn)
    const answer = await admin.send('GET', `/api/audit/export?format=ndjson${query}`)
    turns = 0
    await answer.text()
    clearImmediate(timer)
    expect(turns).toBeGreaterThanOrEqual(pages)
  })
})

describe('an entry', () => {
  test('cannot be changed or deleted, and the API offers no way to do so', async () => {
    for (const statement of [
      "update audit_log set details = '{}'",
      'update audit_log set username = null where id = 1',
      'delete from audit_log',
      'delete from audit_log where id = 1',
      'update or replace audit_log set id = 2 where id = 1',
    ]) {
      expect(() => app.store.sqlite.prepare(statement).run(), statement).toThrow(/append-only/)
    }
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await admin.send(method, '/api/audit')
      expect([answer.status, answer.headers.get('allow')], method).toStrictEqual([405, 'GET, HEAD'])
    }
  })

  test('keeps the name as it was at the time', async () => {
    const anna = await app.user('anna')
    await admin.send('PUT', `/api/users/${anna.id}`, { username: 'berta' })
    const { entries } = await page(`?userId=${anna.id}`)
    expect(entries.map(({ username }) => username)).toStrictEqual(['anna'])
  })

  test('is not written when nothing changes', async () => {
    const anna = await app.user('anna', { nodes: { read: true, write: true } })
    const settings = Object(await (await admin.send('GET', '/api/settings')).json())
    const before = auditRows(app).length
    const same: [string, unknown][] = [
      [`/api/users/${anna.id}`, { username: 'anna', displayName: null }],
      [`/api/users/${anna.id}/permissions`, { permissions: { nodes: { read: true, write: true } } }],
      [`/api/users/${anna.id}/admin`, { isAdmin: false }],
      ['/api/settings', settings],
    ]
    for (const [path, body] of same)
      expect([path, (await admin.send('PUT', path, body)).status]).toStrictEqual([path, 200])
    expect(auditRows(app).slice(before)).toStrictEqual([])
  })

  test('belongs to the resource given in the table', () => {
    expect(Object.keys(AUDIT_ACTIONS)).toHaveLength(new Set(Object.keys(AUDIT_ACTIONS)).size)
    const resources = [
      'alerts',
      'auth',
      'users',
      'permissions',
      'tokens',
      'settings',
      'system_backup',
      'nodes',
      'messages',
    ]
    expect(new Set(Object.values(AUDIT_ACTIONS))).toStrictEqual(
      new Set([...resources, 'configuration', 'automation', 'audit']),
    )
  })
})

test('no audit entry, log line or answer ever contains a password, hash, token or cookie', async () => {
  const anna = await app.user('anna')
  const { token } = Object(await (await anna.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'] })).json())
  const reset = await admin.send('POST', `/api/users/${anna.id}/reset-password`)
  const { password } = Object(await reset.json())
  const again = await app.signIn('anna', password)
  const chosen = 'quite another password'
  await again.send('POST', '/api/auth/change-password', { currentPassword: password, newPassword: chosen })
  await app.client().send('POST', '/api/auth/login', { username: 'anna', password: 'a wrong password' })
  app.store.sqlite.exec("create trigger t before insert on users begin select raise(abort, 'broken'); end")
  await admin.send('POST', '/api/users', { username: 'b', password: USER_PASSWORD, email: 'b@example.org' })
  await app.request('/api/auth/status', { headers: { authorization: `Bearer ${token}` } })
  await app.request(`/api/nothing?token=${token}`, { headers: { cookie: String(again.cookie) } })
  expect(app.logged.filter((line) => line.includes('Request failed'))).toHaveLength(1)
  const hashes = app.store.sqlite.prepare('select password_hash from users').pluck().all().map(String)
  const secrets = [
    token,
    password,
    chosen,
    'a wrong password',
    ADMIN_PASSWORD,
    USER_PASSWORD,
    'b@example.org',
    ...hashes,
  ]
  const cookies = [admin, anna, again].map(({ cookie }) => String(cookie).split('=')[1]?.split('.')[0] ?? '')
  const written = JSON.stringify([app.store.sqlite.prepare('select * from audit_log').all(), app.logged])
  const exported = await (await admin.send('GET', '/api/audit/export?format=ndjson')).text()
  const listed = await (await admin.send('GET', '/api/users')).text()
  for (const secret of [...secrets, ...cookies]) {
    expect(secret.length).toBeGreaterThan(10)
    expect(written + exported).not.toContain(secret)
    if (secret !== 'b@example.org') expect(listed).not.toContain(secret)
  }
  expect(listed).not.toMatch(/hash|epoch|mustChange/i)
})
