import { afterEach, expect, test } from 'vitest'
import { auditedBy, outcomeOf } from '../../support/answers.ts'
import { auditRows, type Client, createTestApp, type TestApp } from '../../support/app.ts'
import { RULES } from './access-matrix-rules.ts'

let app: TestApp
afterEach(() => app.close())

const makeToken = (client: Client) => client.send('POST', '/api/tokens', { name: 'loop', scopes: ['nodes:read'] })

/** Creates a token and revokes it again: two changes. */
async function loop(client: Client): Promise<void> {
  const made = await makeToken(client)
  expect(made.status).toBe(201)
  const revoked = await client.send('DELETE', `/api/tokens/${Object(await made.json()).id}`)
  expect(revoked.status).toBe(204)
}

test('a user without any permission cannot write without limit', async () => {
  app = await createTestApp({ env: { WRITE_BURST: '6', WRITES_PER_MINUTE: '30' } })
  const anna = await app.user('anna')
  const bert = await app.user('bert')
  for (let n = 0; n < 3; n++) await loop(anna)
  const audited = await auditedBy(app, async () => {
    const refused = await makeToken(anna)
    expect(await outcomeOf(refused)).toBe('429 rate_limited')
    expect(refused.headers.get('retry-after')).toBe('2')
    expect(Object(await refused.json()).detail).toBe('Too many changes; try again in 2 s')
  })
  expect(audited).toStrictEqual([])
  expect(await outcomeOf(anna.send('GET', '/api/tokens'))).toBe('200')
  await loop(bert)
  app.clock.advance(4000)
  await loop(anna)
  expect(await outcomeOf(makeToken(anna))).toBe('429 rate_limited')
  expect(await outcomeOf(anna.send('POST', '/api/auth/logout'))).toBe('200')
})

test('refused requests change nothing and do not count', async () => {
  app = await createTestApp({ env: { WRITE_BURST: '4', WRITES_PER_MINUTE: '1' } })
  const anna = await app.user('anna')
  for (let n = 0; n < 30; n++) {
    expect(await outcomeOf(anna.send('PUT', '/api/nodes/7', { notes: 'x' }))).toBe('403 forbidden')
    expect(await outcomeOf(anna.send('POST', '/api/tokens', {}))).toBe('400 invalid_request')
    expect(await outcomeOf(anna.send('DELETE', '/api/tokens/99'))).toBe('404 token_not_found')
  }
  await loop(anna)
})

test('one address may write five times as much, over all its users', async () => {
  app = await createTestApp({ env: { WRITE_BURST: '4', WRITES_PER_MINUTE: '1' } })
  // Each is created by the administrator and signs in from its own address.
  const users: Client[] = []
  for (let n = 0; n < 11; n++) {
    app.ip = `192.0.2.${n}`
    app.clock.advance(60_000)
    users.push(await app.user(`user${n}`))
  }
  app.ip = '2001:db8::1'
  for (const user of users.slice(0, 10)) await loop(user)
  const last = users[10]
  if (last === undefined) throw new Error('there is no such user')
  app.ip = '2001:db8::2'
  expect(await outcomeOf(makeToken(last))).toBe('429 rate_limited')
  // What the address limit refused did not count against the user.
  app.ip = '192.0.2.99'
  await loop(last)
  await loop(last)
  expect(await outcomeOf(makeToken(last))).toBe('429 rate_limited')
})

test('a token uses up the allowance of its owner', async () => {
  app = await createTestApp({ env: { WRITE_BURST: '6', WRITES_PER_MINUTE: '1' } })
  const anna = await app.user('anna', { settings: { read: true, write: true } })
  const made = await anna.send('POST', '/api/tokens', { name: 'script', scopes: ['settings:read', 'settings:write'] })
  const { token } = Object(await made.json())
  const script = app.client()
  const headers = { authorization: `Bearer ${token}` }
  const put = () => script.send('PUT', '/api/settings', {}, headers)
  for (let n = 0; n < 5; n++) expect(await outcomeOf(put())).toBe('200')
  expect(await outcomeOf(put())).toBe('429 rate_limited')
  expect(await outcomeOf(makeToken(anna))).toBe('429 rate_limited')
})

test('deliveries of a collector have their own allowance', async () => {
  app = await createTestApp({ env: { WRITE_BURST: '6', WRITES_PER_MINUTE: '1' } })
  const admin = await app.admin()
  const made = await admin.send('POST', '/api/tokens', { name: 'collector', scopes: ['ingest'] })
  const { token } = Object(await made.json())
  const deliver = () =>
    app.client().send('POST', '/api/ingest', { source: 'far', packets: ['AAAA'] }, { authorization: `Bearer ${token}` })
  for (let n = 0; n < 40; n++) expect(await outcomeOf(deliver())).toBe('200')
  for (let n = 0; n < 2; n++) await loop(admin)
})

test('every route that writes is limited', async () => {
  app = await createTestApp({ env: { WRITE_BURST: '1', WRITES_PER_MINUTE: '1' } })
  const admin = await app.admin()
  expect((await makeToken(admin)).status).toBe(201)
  const writing = Object.keys(RULES).filter((route) => !route.startsWith('GET '))
  expect(writing.length).toBeGreaterThan(30)
  const outcomes = await Promise.all(
    writing.map(async (route) => {
      const [method = '', path = ''] = route.split(' ')
      return [route, await outcomeOf(admin.send(method, path.replace(/:\w+/g, '1')))]
    }),
  )
  // Signing in has its own limits, and signing out is not limited.
  const free = new Set(['POST /api/auth/login', 'POST /api/auth/logout'])
  const unlimited = outcomes.filter(([, outcome]) => outcome !== '429 rate_limited').map(([route]) => route)
  expect(new Set(unlimited)).toStrictEqual(free)
  expect(auditRows(app).at(-1)?.action).toBe('logout')
})
