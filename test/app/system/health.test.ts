import { afterEach, expect, test } from 'vitest'
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
