import { afterEach, describe, expect, test } from 'vitest'
import { auditedBy } from '../../support/answers.ts'
import { createTestApp, type TestApp } from '../../support/app.ts'

let app: TestApp
afterEach(() => app.close())

test('reports that the service is well, and its uptime in whole seconds', async () => {
  app = await createTestApp()
  app.clock.advance(90_999)
  const audited = await auditedBy(app, async () => {
    const answer = await app.request('/api/health')
    expect([answer.status, await answer.json()]).toStrictEqual([200, { status: 'ok', uptime: 90 }])
    expect(answer.headers.getSetCookie()).toStrictEqual([])
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })
  expect(audited).toStrictEqual([])
})

test('reports 503 when the database does not answer, also to a signed-in browser', async () => {
  app = await createTestApp()
  const admin = await app.admin()
  app.store.close()
  for (const headers of [{}, { cookie: String(admin.cookie) }, { authorization: 'Bearer mm_x' }]) {
    const answer = await app.request('/api/health', { headers })
    expect([answer.status, await answer.json()]).toStrictEqual([
      503,
      { status: 'error', uptime: 0, unavailable: 'database' },
    ])
  }
  expect(app.logged.at(-1)).toContain('"message":"The database does not answer"')
})

test('a part that stays away is logged once a minute, however often somebody asks', async () => {
  app = await createTestApp()
  app.store.close()
  const lines = () => app.logged.filter((line) => line.includes('The database does not answer')).length
  for (let i = 0; i < 59; i++) {
    for (const path of ['/api/health', '/api/ready', '/api/live']) await app.request(path)
    app.clock.advance(1000)
  }
  expect(lines()).toBe(1)
  app.clock.advance(1000)
  await app.request('/api/ready')
  expect(lines()).toBe(2)
})

describe('whether the service should get requests, and whether a restart helps', () => {
  const both = async () =>
    Promise.all(
      ['/api/ready', '/api/live'].map(async (path) => {
        const answer = await app.request(path)
        expect(answer.headers.getSetCookie()).toStrictEqual([])
        return [answer.status, await answer.json()]
      }),
    )
  const LIVE = [200, { status: 'live' }]
  const unready = (reason: string) => [503, { status: 'unready', reason }]
  const disk = { isFull: () => true, makeRoom() {}, space: () => ({ total: 1, free: 0, spare: 0 }) }

  test('while it serves', async () => {
    app = await createTestApp()
    expect(await both()).toStrictEqual([[200, { status: 'ready' }], LIVE])
  })

  test.each(['starting', 'stopping'] as const)('while it is %s', async (phase) => {
    app = await createTestApp({ ports: { phase: () => phase } })
    expect(await both()).toStrictEqual([unready(phase), LIVE])
  })

  test('while the database does not answer, also for a signed-in browser', async () => {
    app = await createTestApp()
    const { cookie } = await app.admin()
    app.store.close()
    expect(await both()).toStrictEqual([unready('database'), [503, { status: 'dead', reason: 'database' }]])
    expect((await app.request('/api/ready', { headers: { cookie: String(cookie) } })).status).toBe(503)
  })

  test('on a full disk, where the database may not answer either', async () => {
    app = await createTestApp({ ports: { disk } })
    expect(await both()).toStrictEqual([[200, { status: 'ready' }], LIVE])
    expect((await app.request('/api/health')).status).toBe(503)
    app.clock.advance(1000)
    app.store.close()
    expect(await both()).toStrictEqual([unready('database'), LIVE])
  })

  test('while the session store does not answer, which no restart helps', async () => {
    app = await createTestApp()
    const sessions = { ...app.ports.sessions, probe: () => Promise.reject(new Error('away')) }
    app.close()
    app = await createTestApp({ ports: { sessions } })
    expect(await both()).toStrictEqual([unready('session store'), LIVE])
  })
})

test('other routes answer with a problem that hides the cause, and the log has it', async () => {
  app = await createTestApp()
  const admin = await app.admin()
  app.store.close()
  const answer = await admin.send('GET', '/api/users')
  expect(answer.status).toBe(500)
  const body = Object(await answer.json())
  expect(body).toMatchObject({ code: 'internal', title: 'Internal error', detail: 'Internal error' })
  const line = app.logged.findLast((text) => text.includes('Request failed'))
  expect(JSON.parse(String(line))).toMatchObject({
    level: 'error',
    requestId: body.requestId,
    method: 'GET',
    path: '/api/users',
  })
  expect(line).toContain('The database connection is not open')
})

test('a locked or full database gives 503', async () => {
  app = await createTestApp()
  const admin = await app.admin()
  const pages = app.store.sqlite.pragma('page_count', { simple: true })
  app.store.sqlite.pragma(`max_page_count = ${String(pages)}`)
  let status = 201
  for (let i = 0; status === 201; i++) {
    const body = { username: `user-${i}`, password: 'a password for everyone', displayName: 'x'.repeat(100) }
    const answer = await admin.send('POST', '/api/users', body)
    status = answer.status
    if (status !== 201) expect(await answer.json()).toMatchObject({ code: 'database_unavailable' })
  }
  expect(status).toBe(503)
})
