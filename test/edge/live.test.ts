import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN_PASSWORD, type Client, createClient, refusal, SCENARIO_ENV, signIn } from '../contract/service.ts'
import { hashToken, randomToken, signToken } from '../../src/app/accounts/sessions/session-token.ts'
import { HOUR_MS } from '../../src/shared/time.ts'
import { type EventStream, readEventStream } from '../support/event-stream.ts'
import { item } from '../support/mesh/delivery.ts'
import { packet, text } from '../support/mesh/mesh.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

const SENDER = 0xd0cb0001
const PUBLIC = { read: true, write: false }

let workerd: Workerd
let admin: Client
let token: string
beforeAll(async () => {
  workerd = await openWorkerd(SCENARIO_ENV, { isBreakable: true })
  admin = await signIn(workerd, 'admin', ADMIN_PASSWORD)
  token = String(Object((await admin.send('POST', '/api/tokens', { name: 'hill', scopes: ['ingest'] })).body).token)
})
afterAll(() => workerd.close())

async function say(words: string): Promise<void> {
  const body = { source: 'hill', packets: [item(packet(text(words), { from: SENDER }))] }
  const answer = await createClient(workerd).send('POST', '/api/ingest', body, { authorization: `Bearer ${token}` })
  expect(answer).toMatchObject({ status: 200, body: { accepted: 1 } })
}

async function connect({ cookie }: Client, lastEventId?: string): Promise<EventStream> {
  const answer = await fetch(new URL('/api/events', workerd.url), {
    headers: { cookie: String(cookie), ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) },
  })
  expect(answer.status).toBe(200)
  return readEventStream(answer)
}

/** The text of the next message; null at the end, also of a stream that was cut. */
async function heard(stream: EventStream): Promise<string | null> {
  for (;;) {
    const block = await stream.next().catch(() => null)
    if (block === null) return null
    if (block.event === 'message') return String(Object(block.data).text)
  }
}

test('an object that is evicted cuts its streams, and those who come back learn that events may be missing', async () => {
  const stream = await connect(admin)
  const { id } = (await stream.next()) ?? {}
  await say('before')
  expect(await heard(stream)).toBe('before')
  await workerd.live.die().catch(() => {})
  expect(await heard(stream)).toBeNull()
  await say('meanwhile')
  const next = await connect(admin, id)
  expect(await next.next()).toMatchObject({ event: 'reset' })
  await say('after')
  expect(await heard(next)).toBe('after')
  await next.end()
})

test('a delivery is stored while the object fails, and its readers learn that events are missing', async () => {
  const stream = await connect(admin)
  await stream.next()
  await workerd.live.fail(true)
  await say('lost')
  const logged = () => workerd.logged().join('\n')
  await expect.poll(logged).toContain('Live events were lost')
  expect(await admin.send('GET', '/api/events')).toMatchObject(refusal(503, 'database_unavailable'))
  await workerd.live.fail(false)
  await say('found')
  expect(await stream.next()).toMatchObject({ event: 'reset' })
  // A reset may stand for this one, too.
  await say('again')
  expect(['found', 'again']).toContain(await heard(stream))
  const [stored] = await workerd.sql("select count(*) as n from messages where text = 'lost'")
  expect(stored).toStrictEqual({ n: 1 })
  await stream.end()
})

/** Users with a session of their own: so many sign-ins at once would be refused. */
async function twentyUsers(): Promise<readonly Client[]> {
  const [cookieName = ''] = String(admin.cookie).split('=')
  const now = Date.now()
  const users = Array.from({ length: 20 }, (_, n) => ({ id: 1000 + n, token: randomToken() }))
  const rows = (rowOf: (user: (typeof users)[number]) => string) => users.map(rowOf).join()
  await workerd.sql(`insert into users (id, username, auth_provider, is_admin, created_at) values
    ${rows(({ id }) => `(${id}, 'live-${id}', 'local', 1, ${now})`)}`)
  await workerd.sql(`insert into sessions (id, token_hash, user_id, epoch, created_at, last_seen_at, expires_at) values
    ${rows(({ id, token }) => `(${id}, '${hashToken(token)}', ${id}, 0, ${now}, ${now}, ${now + HOUR_MS})`)}`)
  return users.map(({ token }) => {
    const client = createClient(workerd)
    client.cookie = `${cookieName}=${signToken(token, [SCENARIO_ENV.SESSION_SECRET])}`
    return client
  })
}

test('500 streams get an event, and free their places', async () => {
  const clients = await twentyUsers()
  const streams = await Promise.all(clients.flatMap((client) => Array.from({ length: 25 }, () => connect(client))))
  expect(streams).toHaveLength(500)
  await say('to everybody')
  expect(new Set(await Promise.all(streams.map(heard)))).toStrictEqual(new Set(['to everybody']))
  const [first = admin] = clients
  const further = await Promise.all(Array.from({ length: 5 }, () => connect(first)))
  expect(await first.send('GET', '/api/events')).toMatchObject(refusal(429, 'rate_limited'))
  await Promise.all([...streams, ...further].map((stream) => stream.end()))
  await expect.poll(() => connect(first).then((stream) => stream.end())).toBeUndefined()
})

test('people without an account poll: their lists come with an ETag, and 501 says so', async () => {
  const shown = { dashboard: PUBLIC, nodes: PUBLIC, messages: PUBLIC, info: PUBLIC }
  const changed = await admin.send('PUT', '/api/public-access', {
    enabled: true,
    permissions: shown,
    channels: [0],
    positionPrecisionBits: null,
    hideSilentAfterDays: null,
  })
  expect(changed.status).toBe(200)
  const visitor = createClient(workerd)
  const status = await visitor.send('GET', '/api/auth/status')
  expect(status.headers.get('x-unsupported')?.split(', ')).toContain('events')
  expect((await admin.send('GET', '/api/auth/status')).headers.get('x-unsupported')?.split(', ')).not.toContain(
    'events',
  )
  expect(await visitor.send('GET', '/api/events')).toMatchObject(refusal(501, 'unsupported_on_this_runtime'))
  const list = await visitor.send('GET', '/api/nodes')
  expect([list.status, list.headers.get('cache-control')]).toStrictEqual([200, 'public, max-age=5'])
  const again = await visitor.send('GET', '/api/nodes', undefined, {
    'if-none-match': String(list.headers.get('etag')),
  })
  expect(again.status).toBe(304)
})
