import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type EventStream, readEventStream } from '../../support/event-stream.ts'
import { item } from '../../support/mesh/delivery.ts'
import { packet, text, user } from '../../support/mesh/mesh.ts'
import { type Client, makeUser, refusal, signIn } from '../service.ts'

const READ = { read: true, write: false }
const NONE = { read: false, write: false }
const SENDER = 0xc0cb0001
const OTHER = 0xc0cb0002
/** A stream must say something within this time. */
const PATIENCE_MS = 30_000

/**
 * Live events through HTTP, caused by what a collector delivers and users change. Returns what to test some time later:
 * a runtime may notice the end of a stream after half a minute.
 */
export function eventScenarios(admin: () => Client): () => void {
  let deliver: (...packets: Parameters<typeof item>[0][]) => Promise<void>
  const open: EventStream[] = []
  beforeAll(async () => {
    const { token } = Object((await admin().send('POST', '/api/tokens', { name: 'events', scopes: ['ingest'] })).body)
    deliver = async (...packets) => {
      const body = { source: 'events', packets: packets.map((each) => item(each)) }
      const answer = await admin().send('POST', '/api/ingest', body, { authorization: `Bearer ${token}`, cookie: '' })
      expect(answer).toMatchObject({ status: 200, body: { rejected: [] } })
    }
    await deliver(packet(user({ longName: 'Event Hill', shortName: 'EVH' }), { from: SENDER }))
  })
  afterEach(async () => {
    for (const stream of open.splice(0)) await stream.end()
  })

  const say = (words: string, channel = 0) => deliver(packet(text(words), { from: SENDER, channel }))

  function ask({ cookie, service }: Client, init: { headers?: Record<string, string>; signal?: AbortSignal } = {}) {
    const headers = {
      [service.addressHeader]: '198.51.100.250',
      ...(cookie !== null && { cookie }),
      ...init.headers,
    }
    return fetch(new URL('/api/events', service.url), { ...init, headers })
  }

  async function connect(client: Client, headers: Record<string, string> = {}): Promise<EventStream> {
    const answer = await ask(client, { headers, signal: AbortSignal.timeout(PATIENCE_MS) })
    expect([answer.status, answer.headers.get('content-type')]).toStrictEqual([200, 'text/event-stream'])
    const stream = readEventStream(answer)
    open.push(stream)
    return stream
  }

  /** A user with a stream that is open. */
  async function reader(name: string, permissions: object, scope?: object) {
    const id = await makeUser(admin(), name)
    await grant(id, permissions, scope)
    const client = await signIn(admin().service, name)
    const stream = await connect(client)
    const { id: place } = (await stream.next()) ?? {}
    return { id, client, stream, place: String(place) }
  }

  async function grant(id: number, permissions: object, scope?: object): Promise<void> {
    const answer = await admin().send('PUT', `/api/users/${id}/permissions`, { permissions, scope })
    expect(answer.status).toBe(200)
  }

  /** The kinds and texts of the events up to the first one of this kind, which has this text. */
  async function until(stream: EventStream, kind: string, words?: string): Promise<string[]> {
    const found: string[] = []
    for (;;) {
      const block = await stream.next()
      if (block === null) return [...found, 'end']
      if (block.event === undefined) continue
      const said = Object(Object(block.data).message).text
      found.push(said === undefined ? block.event : `${block.event} ${said}`)
      if (block.event === kind && said === words) return found
    }
  }

  test('each viewer gets what they may see, as it is stored', async () => {
    const townScope = { channels: { read: [0], write: [] }, direct: { read: false, write: false } }
    const [nodes, town, all] = await Promise.all([
      reader('live-nodes', { nodes: READ, messages: NONE }),
      reader('live-town', { nodes: NONE, messages: READ }, townScope),
      reader('live-all', { nodes: READ, messages: READ }),
    ])
    await say('for the family', 2)
    await say('for the town')
    expect(await until(all.stream, 'message', 'for the town')).toStrictEqual([
      'node',
      'message for the family',
      'node',
      'message for the town',
    ])
    expect(await until(town.stream, 'message', 'for the town')).toStrictEqual(['message for the town'])
    const favourite = await admin().send('PUT', `/api/nodes/${SENDER}`, { isFavorite: true })
    expect(favourite.status).toBe(200)
    for (let changes: object = {}; !('isFavorite' in changes);) {
      const block = await nodes.stream.next()
      expect(block?.event).toBe('node')
      changes = Object(Object(block?.data).changes)
      expect(JSON.stringify(block)).not.toContain('for the')
    }
    expect((await admin().send('PUT', `/api/nodes/${SENDER}`, { hidden: true })).status).toBe(200)
    await say('out of sight')
    await deliver(packet(text('in plain sight'), { from: OTHER }))
    expect(await until(town.stream, 'message', 'in plain sight')).not.toContain('message out of sight')
    expect((await admin().send('PUT', `/api/nodes/${SENDER}`, { hidden: false })).status).toBe(200)
    await say('seen again')
    await until(town.stream, 'message', 'seen again')
  })

  test('a right that is withdrawn while the stream is open counts for the next event', async () => {
    const rights = { nodes: NONE, messages: READ }
    const [loser, witness] = await Promise.all([reader('live-loser', rights), reader('live-witness', rights)])
    await say('before')
    expect(await until(loser.stream, 'message', 'before')).toStrictEqual(['message before'])
    await until(witness.stream, 'message', 'before')
    await grant(loser.id, { nodes: READ, messages: NONE })
    await say('after')
    await until(witness.stream, 'message', 'after')
    expect(await until(loser.stream, 'node')).toStrictEqual(['access', 'node'])
    await grant(loser.id, { messages: READ })
    await say('again')
    const told = await until(loser.stream, 'message', 'again')
    expect(told).toContain('access')
    expect(told).not.toContain('message after')
  })

  test('the stream ends with the session, the account and the token', async () => {
    const leaver = await reader('live-leaver', { messages: READ })
    const other = await signIn(admin().service, 'live-leaver')
    const second = await connect(other)
    await second.next()
    expect((await other.send('POST', '/api/auth/logout')).status).toBe(200)
    await say('one')
    expect(await until(second, 'never')).toStrictEqual(['end'])
    expect(await until(leaver.stream, 'message', 'one')).toContain('message one')
    const made = Object(
      (await leaver.client.send('POST', '/api/tokens', { name: 't', scopes: ['messages:read'] })).body,
    )
    const byToken = await connect({ ...leaver.client, cookie: null }, { authorization: `Bearer ${made.token}` })
    await byToken.next()
    await say('two')
    expect(await until(byToken, 'message', 'two')).toStrictEqual(['message two'])
    expect((await leaver.client.send('DELETE', `/api/tokens/${made.id}`)).status).toBe(204)
    await say('three')
    expect(await until(byToken, 'never')).toStrictEqual(['end'])
    expect((await admin().send('DELETE', `/api/users/${leaver.id}`)).status).toBe(204)
    await say('four')
    expect(await until(leaver.stream, 'never')).not.toContain('message four')
  })

  test('a stream resumes after the last event, and says if events are missing', async () => {
    const { stream, client, place } = await reader('live-resumer', { nodes: NONE, messages: READ })
    await say('first')
    await say('second')
    await until(stream, 'message', 'second')
    const resumed = await connect(client, { 'last-event-id': place })
    expect(await resumed.next()).toStrictEqual({ comment: 'open', id: place })
    expect(await until(resumed, 'message', 'second')).toStrictEqual(['message first', 'message second'])
    const lost = await connect(client, { 'last-event-id': 'another-1' })
    expect(await lost.next()).toMatchObject({ event: 'reset', data: {} })
    await say('third')
    expect(await until(lost, 'message', 'third')).toStrictEqual(['message third'])
  })

  /** An account with as many streams as it may have, of which one was ended. */
  let crowd: { readonly client: Client; readonly streams: EventStream[] } | undefined

  test('an account has only so many streams, and people without one are told what to do', async () => {
    await makeUser(admin(), 'live-greedy')
    const client = await signIn(admin().service, 'live-greedy')
    const most = client.service.streamsOfAccount ?? 10
    const answers = await Promise.all(Array.from({ length: most }, () => ask(client)))
    expect(answers.map(({ status }) => status)).toStrictEqual(answers.map(() => 200))
    crowd = { client, streams: answers.map(readEventStream) }
    for (const stream of crowd.streams) await stream.next()
    const refused = await client.send('GET', '/api/events')
    expect(refused).toMatchObject(refusal(429, 'rate_limited'))
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await client.send('HEAD', '/api/events')).status).toBe(200)
    await crowd.streams.pop()?.end()
    expect((await client.send('GET', '/api/events?heard=perhaps')).status).toBe(400)
    expect(await admin().send('GET', '/api/events', undefined, { cookie: '' })).toMatchObject(
      refusal(401, 'unauthenticated'),
    )
  })

  return () => {
    afterAll(async () => {
      for (const stream of crowd?.streams ?? []) await stream.end()
    })

    test('an ended stream leaves its place to one other', async () => {
      const { client, streams } = crowd ?? expect.unreachable('there are no streams')
      const open = async () => {
        const answer = await ask(client)
        if (answer.status === 200) streams.push(readEventStream(answer))
        else await answer.body?.cancel()
        return answer.status
      }
      await expect.poll(open).toBe(200)
      expect(await open()).toBe(429)
    })
  }
}
