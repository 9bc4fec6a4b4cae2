import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ADMIN_PASSWORD, createClient, refusal, SCENARIO_ENV, signIn } from '../contract/service.ts'
import { createTestApp } from '../support/app.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

const open: Workerd[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((workerd) => workerd.close()))
})

async function start(env: Record<string, string>, options?: Parameters<typeof openWorkerd>[1]): Promise<Workerd> {
  const workerd = await openWorkerd(env, options)
  open.push(workerd)
  return workerd
}

/** The log entries of this level. */
function entries(workerd: Workerd, level: string): Record<string, unknown>[] {
  return workerd
    .logged()
    .filter((line) => line.startsWith('{'))
    .map((line) => Object(JSON.parse(line)))
    .filter((entry) => entry.level === level)
}

test.each([
  [{}, 'SESSION_SECRET: found nothing, expected one or more secrets of at least 32 characters, comma-separated'],
  [
    { SESSION_SECRET: 'short' },
    'SESSION_SECRET: found (not shown), expected one or more secrets of at least 32 characters, comma-separated',
  ],
  [
    { ...SCENARIO_ENV, SESSION_STORE: 'memory' },
    'SESSION_STORE: found "memory", expected database, the only one on the edge',
  ],
  [
    { ...SCENARIO_ENV, ADMIN_PASSWORD: 'short' },
    'ADMIN_PASSWORD: found (not shown), expected a password with: at least 15 characters',
  ],
])('an impossible configuration is refused on every request and named in the log: %j', async (env, problem) => {
  // How long a password must be is stored in the database; everything else is checked before that is opened.
  const workerd = await start(env, { migrated: problem.startsWith('ADMIN_PASSWORD') })
  const client = createClient(workerd)
  for (const path of ['/api/health', '/api/auth/status']) {
    expect(await client.send('GET', path)).toMatchObject(refusal(500, 'internal'))
  }
  const errors = () => entries(workerd, 'error')
  await expect.poll(errors).toMatchObject([{ problems: [problem] }, { problems: [problem] }])
  expect(JSON.stringify(errors())).not.toMatch(/ {4}at /)
})

test('unknown variables are named with the nearest known one, and that no administrator can sign in', async () => {
  const oidc = {
    OIDC_ENABLED: 'true',
    OIDC_ISSUER: 'https://id.example.org',
    OIDC_CLIENT_ID: 'mesh',
    OIDC_CLIENT_SECRET: 'secret',
    OIDC_REDIRECT_URI: 'https://mesh.example.org/api/auth/oidc/callback',
  }
  const workerd = await start({ ...SCENARIO_ENV, ...oidc, DISABLE_LOCAL_AUTH: 'true', OIDC_ISUER: 'l3aked' })
  expect((await createClient(workerd).send('GET', '/api/health')).status).toBe(200)
  const said = () => [...entries(workerd, 'warn'), ...entries(workerd, 'error')].map(({ message }) => message)
  await expect
    .poll(said)
    .toEqual([
      'The variable OIDC_ISUER is unknown and has no effect; did you mean OIDC_ISSUER?',
      'No administrator can sign in: set OIDC_ADMIN_SUBJECT, or use promote or create-admin at the console',
    ])
  expect(workerd.logged().join('\n')).not.toContain('l3aked')
})

test('a database without tables is distinguished from a broken one, and works without a restart once it has them', async () => {
  const workerd = await start(SCENARIO_ENV, { migrated: false })
  expect(await createClient(workerd).send('GET', '/api/health')).toMatchObject(refusal(500, 'internal'))
  await expect
    .poll(() => entries(workerd, 'error'))
    .toMatchObject([
      { problems: ['DB: found no tables, expected the result of: wrangler d1 migrations apply DB --remote'] },
    ])
  await workerd.migrate()
  await signIn(workerd, 'admin', ADMIN_PASSWORD)
})

test('simultaneous requests create one first administrator, whose random password is printed once', async () => {
  const { SESSION_SECRET } = SCENARIO_ENV
  const workerd = await start({ SESSION_SECRET }, { hasAllRounds: true })
  const answers = await Promise.all([1, 2, 3].map(() => createClient(workerd).send('GET', '/api/health')))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  const printed = () => workerd.logged().filter((line) => line.includes('temporary password'))
  await expect.poll(printed).toHaveLength(1)
  const password = /temporary password (\w{20}) /.exec(printed().join(''))?.[1] ?? ''
  const client = await signIn(workerd, 'admin', password)
  expect((await client.send('GET', '/api/auth/status')).body).toMatchObject({ mustChangePassword: true })
  const made = await workerd.sql("select count(*) as n from audit_log where action = 'admin_bootstrapped'")
  expect(made).toEqual([{ n: 1 }])
  expect(printed()).toHaveLength(1)
})

test('under a path the name of the cookie ends with it', async () => {
  const workerd = await start({ ...SCENARIO_ENV, PUBLIC_URL: 'https://mesh.example.org/my_mesh' })
  const login = await workerd.dispatch('https://mesh.example.org/api/auth/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: 'https://mesh.example.org' },
    body: JSON.stringify({ username: 'admin', password: ADMIN_PASSWORD }),
  })
  const [set = ''] = login.headers.getSetCookie()
  expect(set).toMatch(/^__Host-mesh_session\.my%5Fmesh=.*; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
  const headers = { cookie: String(set.split(';')[0]) }
  const status = await workerd.dispatch('https://mesh.example.org/api/auth/status', { headers })
  expect(await status.json()).toMatchObject({ authenticated: true })
})

test('over HTTPS the cookie is a __Host- one; only CF-Connecting-IP is trusted for addresses', async () => {
  const workerd = await start({ ...SCENARIO_ENV, TRUSTED_PROXIES: '127.0.0.1' })
  const login = (headers: Record<string, string>) =>
    workerd.dispatch('https://mesh.example.org/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.9', ...headers },
      body: JSON.stringify({ username: 'admin', password: ADMIN_PASSWORD }),
    })
  const answer = await login({ 'cf-connecting-ip': '198.51.100.200', origin: 'https://mesh.example.org' })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('set-cookie')).toMatch(/^__Host-mesh_session=.*; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
  // The state of D1 after the sign-in.
  const bookmark = /^__Host-mesh_bookmark=[0-9a-f-]{20,100}; Max-Age=10; Path=\/; HttpOnly; Secure; SameSite=Lax$/
  expect(answer.headers.getSetCookie().at(-1)).toMatch(bookmark)
  expect(answer.headers.get('strict-transport-security')).toBe('max-age=31536000')
  expect((await login({ origin: 'http://mesh.example.org' })).status).toBe(403)
  expect((await login({})).status).toBe(200)
  const rows = await workerd.sql("select ip from audit_log where action = 'login_success' order by id")
  // Without the header, the local runtime fills in the address of its client, as Cloudflare's edge does.
  expect(rows).toEqual([{ ip: '198.51.100.200' }, { ip: '127.0.0.1' }])
  await expect.poll(() => entries(workerd, 'warn')).toMatchObject([{ variables: ['TRUSTED_PROXIES'] }])
})

describe('one worker, asked by one test after the other', () => {
  let workerd: Workerd
  beforeAll(async () => {
    workerd = await openWorkerd(SCENARIO_ENV, { hasAllRounds: true })
  })
  afterAll(() => workerd.close())

  // The first one: nobody has used the database yet.
  test('the database of a newer version is refused with one line, also by the schedule', async () => {
    await workerd.sql("insert into d1_migrations (name) values ('9999_tomorrow.sql')")
    expect(await createClient(workerd).send('GET', '/api/health')).toMatchObject(refusal(500, 'internal'))
    const line = 'DB: found the migration 9999_tomorrow.sql of a newer version, expected this version or an older one'
    await expect.poll(() => entries(workerd, 'error')).toMatchObject([{ problems: [line] }])
    await expect(workerd.runSchedule()).rejects.toThrow()
    expect(await workerd.sql('select count(*) as n from users')).toEqual([{ n: 0 }])
    await workerd.sql("delete from d1_migrations where name = '9999_tomorrow.sql'")
    await signIn(workerd, 'admin', ADMIN_PASSWORD)
  })

  test('the cron trigger removes expired data and nothing else', async () => {
    const client = await signIn(workerd, 'admin', ADMIN_PASSWORD)
    const kept = await workerd.sql('select count(*) as n from sessions')
    await workerd.sql(`insert into sessions (id, token_hash, user_id, epoch, created_at, last_seen_at, expires_at)
      values (1, 'old', 1, 0, 1, 1, 2)`)
    await workerd.sql(
      "insert into rate_limits (key, count, expires_at) values ('old', 3, 2), ('new', 3, 8640000000000000)",
    )
    await workerd.runSchedule()
    expect(await workerd.sql('select count(*) as n from sessions')).toEqual(kept)
    expect(await workerd.sql("select key from rate_limits where key in ('old', 'new')")).toEqual([{ key: 'new' }])
    expect((await client.send('GET', '/api/auth/sessions')).status).toBe(200)
  })

  test('one cron trigger rolls measurements up, another one deletes what is no longer kept', async () => {
    await createClient(workerd).send('GET', '/api/health')
    const day = 86_400_000
    // Its first hour is over.
    const today = Math.floor(Date.now() / day) * day - day
    const old = today - 40 * day
    const ids = JSON.stringify(Array.from({ length: 120 }, (_, n) => n + 1))
    await workerd.sql("insert into metrics (id, name) values (1, 'deviceMetrics.voltage')")
    await workerd.sql(`insert into nodes (id, node_num, first_heard) select value, value, 1 from json_each('${ids}')`)
    for (const table of ['telemetry', 'telemetry_dirty']) {
      const v = table === 'telemetry' ? ', 4, 0' : ''
      await workerd.sql(`insert into ${table} select value, 1, ${today}${v} from json_each('${ids}')`)
      await workerd.sql(`insert into ${table} select value, 1, ${old}${v} from json_each('${ids}')`)
    }
    await workerd.sql(
      `insert into telemetry_hourly (node_id, metric, t, n, min, max, sum, last) select value, 1, ${today - 500 * day}, 1, 4, 4, 4, 4 from json_each('${ids}')`,
    )
    await workerd.sql(
      `insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
        values (1, 1, 2, 0, 'old', ${today - 400 * day}, 'in'), (2, 1, 2, 0, 'new', ${today}, 'in')`,
    )
    const count = async (table: string, where = 'true') =>
      Number((await workerd.sql(`select count(*) as n from ${table} where ${where}`))[0]?.['n'])
    const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000
    await workerd.runSchedule(new Date(hour + 20 * 60_000))
    expect(await count('telemetry_dirty')).toBe(0)
    expect([await count('telemetry_hourly', `t >= ${old}`), await count('telemetry_daily')]).toEqual([240, 240])
    expect([await count('telemetry'), await count('messages')]).toEqual([240, 2])
    await workerd.runSchedule(new Date(hour + 25 * 60_000), '5-55/10 * * * *')
    expect(await workerd.sql('select distinct t from telemetry')).toEqual([{ t: today }])
    expect([await count('telemetry'), await count('telemetry_hourly'), await count('telemetry_daily')]).toEqual([
      120, 240, 240,
    ])
    expect(await workerd.sql('select text from messages')).toEqual([{ text: 'new' }])
    await workerd.sql('delete from nodes where id = 120')
    await workerd.runSchedule(new Date(hour + 20 * 60_000))
    expect([await count('telemetry'), await count('telemetry_hourly'), await count('telemetry_daily')]).toEqual([
      119, 238, 238,
    ])
  })

  test('many simultaneous sign-ins are checked or refused, and the next one is served', async () => {
    await createClient(workerd).send('GET', '/api/health')
    const names = Array.from({ length: 24 }, (_, i) => `nobody ${i}`)
    const answers = await Promise.all(
      names.map((username) =>
        createClient(workerd).send('POST', '/api/auth/login', { username, password: 'anything' }),
      ),
    )
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length + answers.filter(({ status }) => status === 401).length).toBe(names.length)
    for (const { headers } of refused) expect(headers.get('retry-after')).toBe('5')
    await signIn(workerd, 'admin', ADMIN_PASSWORD)
  })

  test.each(['openapi.json', 'docs', 'docs/style.css'])('/api/%s is identical to the answer on Node', async (name) => {
    const node = await createTestApp()
    const answers = [await workerd.dispatch(`http://localhost/api/${name}`), await node.request(`/api/${name}`)]
    node.close()
    const [there, here] = await Promise.all(
      answers.map(async (answer) => {
        const told = Object.fromEntries(answer.headers)
        // Only Node compresses these by itself, and so depends on what the client accepts.
        for (const own of ['content-length', 'x-request-id', 'transfer-encoding', 'mf-content-encoding', 'vary'])
          delete told[own]
        return { status: answer.status, told, text: await answer.text() }
      }),
    )
    expect(there).toEqual(here)
  })

  test('features missing on the edge answer 501, and the API document says so', async () => {
    const admin = await signIn(workerd, 'admin', ADMIN_PASSWORD)
    const { paths } = Object((await admin.send('GET', '/api/openapi.json')).body)
    const unsupported = Object.entries<Record<string, { responses: object }>>(paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { responses }]) => '501' in responses && path !== '/api/events')
        .map(([method]) => ({
          method: method.toUpperCase(),
          path: path
            .replace('{name}', '2026-01-15_120000')
            .replace('/nodes/{id}/requests', '/nodes/!000000e5/requests'),
        })),
    )
    await workerd.sql('insert into nodes (node_num, first_heard, last_heard) values (229, 1, 1)')
    expect(unsupported).not.toContainEqual({ method: 'GET', path: '/api/info' })
    expect(await admin.send('GET', '/api/info')).toMatchObject({
      status: 200,
      body: { version: expect.stringMatching(/^\d+\.\d+\.\d+(?:-rc\.\d+)?$/), links: [], sources: [] },
    })
    expect(unsupported).toContainEqual({ method: 'POST', path: '/api/system/backup' })
    const bodies: Record<string, object> = {
      '/api/messages': { text: 'hello' },
      '/api/traceroutes': { to: 1 },
      '/api/nodes/!000000e5/requests': { kind: 'position' },
      '/api/configuration/{section}': { values: {} },
      '/api/configuration/transfer/channels/share': { channels: [0] },
      '/api/configuration/transfer/channels/preview': { url: 'x' },
      '/api/configuration/transfer/channels': { url: 'x' },
      '/api/configuration/transfer/file/export': {},
      '/api/configuration/transfer/file/preview': { yaml: 'x' },
      // Of the destinations only e-mail needs something that is missing here.
      '/api/alerts/destinations': { kind: 'email', name: 'mail', settings: { address: 'a@example.org' } },
    }
    // Without a bucket they answer so, too: test/app/system/backup-unsupported.test.ts.
    const needsBucket = (path: string) => /^\/api\/system\/backup(?!.*\/restore$)/.test(path)
    for (const { method, path } of unsupported.filter(({ path }) => !needsBucket(path))) {
      const body = method === 'GET' || method === 'DELETE' ? undefined : bodies[path]
      const answer = await admin.send(method, path, body)
      expect(answer, `${method} ${path}`).toMatchObject(refusal(501, 'unsupported_on_this_runtime'))
    }
  })

  // The last one: it breaks the database.
  test('a failed query reveals nothing to the client and none of its values to the log', async () => {
    await createClient(workerd).send('GET', '/api/health')
    await workerd.sql('alter table rate_limits rename to elsewhere')
    const body = { username: 'the name of somebody', password: 'anything' }
    const answer = await createClient(workerd).send('POST', '/api/auth/login', body)
    expect(answer).toMatchObject({ ...refusal(500, 'internal'), body: { detail: 'Internal error' } })
    const logged = () => JSON.stringify(entries(workerd, 'error'))
    await expect.poll(logged).toContain('no such table: rate_limits')
    expect(logged()).not.toMatch(/somebody|198\.51\.100/)
  })
})
