import * as fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { item } from '../../support/mesh/delivery.ts'
import { LOCAL, packet, text } from '../../support/mesh/mesh.ts'
import { EMPTY_PAGES } from '../../support/mesh/measurements.ts'
import {
  channelsAmong,
  type Eyes,
  HIDDEN,
  markOf,
  marksFor,
  marksForAnonymous,
  marksIn,
  MESH,
  meshesOn,
  namingOf,
  namingPackets,
  NODES,
  packetOf,
  pathsOf,
  PUBLIC_REQUESTS,
  REQUESTS,
  type Said,
  someEyes,
  someNodes,
} from '../../support/mesh/said.ts'
import { type Client, createClient, makeUser, refusal, signIn } from '../service.ts'

const READ = { read: true, write: false }
const NONE = { read: false, write: false }
const ALL = { dashboard: READ, nodes: READ, messages: READ, info: READ }
const PUBLIC_MESH = '/api/public-access'

/** All requests except those that need an automation rule. */
const ASKED = Object.fromEntries(Object.entries(REQUESTS).filter(([route]) => route !== 'GET /api/automation/:id/runs'))

const EMPTIED =
  'receptions messages packets proven_packets traceroutes neighbors waypoints positions telemetry telemetry_dirty telemetry_runs telemetry_hourly_runs telemetry_daily_runs channel_positions channel_metrics channel_statuses'

/** What each viewer sees of the mesh, down to the channel, in all answers together. */
export function sharingScenarios(admin: () => Client): void {
  let deliver: (packets: object[]) => Promise<void>
  let user: Client
  let userId: number
  beforeAll(async () => {
    const { token } = Object((await admin().send('POST', '/api/tokens', { name: 'sharing', scopes: ['ingest'] })).body)
    deliver = async (packets) => {
      const body = { source: 'sharing', packets }
      const answer = await admin().send('POST', '/api/ingest', body, { authorization: `Bearer ${token}`, cookie: '' })
      expect(answer).toMatchObject({ status: 200, body: { rejected: [] } })
    }
    userId = await makeUser(admin(), 'sally')
    user = await signIn(admin().service, 'sally')
  })

  /** Empties the mesh and stores these items, one after the other. */
  async function play(all: readonly Said[], hidden: ReadonlySet<number>): Promise<void> {
    for (const table of EMPTIED.split(' ')) await admin().service.sql(`delete from ${table}`)
    for (const statement of EMPTY_PAGES) await admin().service.sql(statement)
    // Also the other end of the traceroutes: other scenarios leave it as a node that has been silent for years.
    await admin().service.sql(`delete from nodes where node_num in (${[...NODES, LOCAL].join()})`)
    await admin().service.sql('delete from deleted_nodes')
    const start = Date.now() - 600_000
    const told = [
      ...NODES.map((from) => packet(text('hello'), { from })),
      ...namingPackets(),
      ...all.map((said, index) => packetOf(said, index)),
    ]
    await deliver(told.map((each, index) => ({ data: item(each), receivedAt: start + 1000 * index })))
    for (const nodeNum of hidden) {
      expect((await admin().send('PUT', `/api/nodes/${nodeNum}`, { hidden: true })).status).toBe(200)
    }
  }

  async function open({ read, direct, seesHidden }: Eyes): Promise<void> {
    const scope = { channels: read === 'all' ? read : { read, write: [] }, direct: { read: direct, write: false } }
    const permissions = { ...ALL, nodes: { read: true, write: seesHidden } }
    const answer = await admin().send('PUT', `/api/users/${userId}/permissions`, { permissions, scope })
    expect(answer.status).toBe(200)
  }

  let shares = 0
  /** Bodies for strangers may be 5 s old unless the settings change: each call changes one. */
  async function share(channels: readonly number[]): Promise<void> {
    shares += 1
    const changes = { enabled: true, permissions: ALL, channels, positionPrecisionBits: null }
    const answer = await admin().send('PUT', PUBLIC_MESH, { ...changes, hideSilentAfterDays: shares })
    expect(answer.status).toBe(200)
  }

  async function answersTo(client: Client, requests: typeof REQUESTS): Promise<Map<string, string>> {
    const found = new Map<string, string>()
    for (const path of pathsOf(requests, Date.now())) {
      const { status, body } = await client.send('GET', path)
      expect([path, status]).not.toEqual([path, 429])
      found.set(path, typeof body === 'string' ? body : JSON.stringify(body))
    }
    return found
  }

  /** An anonymous caller at this address: each address has its own limit. */
  function anonymousAt(address: string): Client {
    const anonymous = createClient(admin().service)
    const { addressHeader } = anonymous.service
    return {
      ...anonymous,
      send: (method, path, body, headers) =>
        anonymous.send(method, path, body, { ...headers, [addressHeader]: address }),
    }
  }

  const VIEWERS: Readonly<Record<string, Eyes>> = {
    'a guest with channel 0': { read: [0], direct: false, seesHidden: false },
    'a member with channels 0 and 2': { read: [0, 2], direct: false, seesHidden: false },
    'a user with direct messages alone': { read: [], direct: true, seesHidden: false },
  }

  describe('a mesh with a private channel, a tracker on it, and a hidden node', () => {
    beforeAll(async () => {
      await play(MESH, HIDDEN)
    })

    test.each(Object.entries(VIEWERS))(
      '%s sees everything they may see and nothing else, in all answers together',
      async (_, eyes) => {
        await open(eyes)
        const answers = await answersTo(user, ASKED)
        expect(marksIn(answers, MESH)).toEqual(marksFor(eyes, MESH, HIDDEN))
        expect(namingOf(answers, HIDDEN)).toEqual([])
      },
    )

    test('an administrator sees everything', async () => {
      const everything: Eyes = { read: 'all', direct: true, seesHidden: true }
      expect(marksIn(await answersTo(admin(), ASKED), MESH)).toEqual(marksFor(everything, MESH, HIDDEN))
    })

    test('charts of a long time have measurements that no summary contains yet, as far as the viewer may see', async () => {
      const query = `nodeId=${NODES[0]}&metric=deviceMetrics.uptimeSeconds&from=${Date.now() - 300 * 86_400_000}`
      const highest = async (client: Client) => {
        const { resolution, series } = Object((await client.send('GET', `/api/telemetry?${query}`)).body)
        return [resolution, Math.max(...series.map((point: readonly number[]) => Number(point[2] ?? point[1])))]
      }
      const markIn = (isSeen: (said: Said) => boolean) =>
        Number(
          MESH.map((said, index) =>
            said.kind === 'metrics' && said.node === 0 && isSeen(said) ? markOf(said, index) : '0',
          ).reduce((a, b) => (Number(a) > Number(b) ? a : b)),
        )
      await open({ read: [2], direct: false, seesHidden: false })
      expect(await highest(user)).toEqual(['day', markIn(({ channel, isDirect }) => channel === 2 && !isDirect)])
      expect(await highest(admin())).toEqual(['day', markIn(() => true)])
    })

    test('an anonymous visitor sees only the chosen channels, and nothing before and after public access', async () => {
      const anonymous = createClient(admin().service)
      expect(await anonymous.send('GET', '/api/nodes')).toMatchObject(refusal(401, 'unauthenticated'))
      await share([0])
      const answers = await answersTo(anonymous, PUBLIC_REQUESTS)
      expect(marksIn(answers, MESH)).toEqual(marksForAnonymous([0], MESH, HIDDEN))
      expect(namingOf(answers, HIDDEN)).toEqual([])
      const { status, headers } = await anonymous.send('GET', '/api/nodes')
      expect([status, headers.get('cache-control')]).toEqual([200, 'public, max-age=5'])
      expect((await admin().send('GET', '/api/nodes')).headers.get('cache-control')).toBe('no-store')
      expect((await admin().send('PUT', PUBLIC_MESH, { enabled: false })).status).toBe(200)
      expect(await anonymous.send('GET', '/api/nodes')).toMatchObject(refusal(401, 'unauthenticated'))
    })

    test('an administrator sees as a user, and previews public access, with the same rules', async () => {
      const guest: Eyes = { read: [0], direct: false, seesHidden: false }
      await open(guest)
      const begun = await admin().send('POST', `/api/users/${userId}/see-as`)
      const as = (seeAs: unknown): Client => ({
        ...admin(),
        send: (method, path) => admin().send(method, path, undefined, { 'x-see-as': String(seeAs) }),
      })
      expect(marksIn(await answersTo(as(Object(begun.body).seeAs), ASKED), MESH)).toEqual(marksFor(guest, MESH, HIDDEN))
      const wanted = { enabled: false, permissions: ALL, channels: [0], positionPrecisionBits: null }
      const previewed = await admin().send('POST', `${PUBLIC_MESH}/preview`, { ...wanted, hideSilentAfterDays: 900 })
      expect(marksIn(await answersTo(as(Object(previewed.body).seeAs), PUBLIC_REQUESTS), MESH)).toEqual(
        marksForAnonymous([0], MESH, HIDDEN),
      )
    })
  })

  test('an anonymous visitor who already has an answer gets 304', async () => {
    await share([0])
    const anonymous = createClient(admin().service)
    for (const path of [
      'nodes',
      'messages',
      'channels',
      'waypoints',
      'neighbors',
      'traceroutes',
      'dashboard',
      'info',
    ]) {
      const { status, headers } = await anonymous.send('GET', `/api/${path}`)
      const known = { 'if-none-match': String(headers.get('etag')) }
      const again = await anonymous.send('GET', `/api/${path}`, undefined, known)
      expect([path, status, again.status, again.body]).toEqual([path, 200, 304, ''])
    }
  })

  test('the API document names each answer 304, to users and to anonymous visitors', async () => {
    await play(MESH, new Set())
    await share([0])
    const { paths } = Object((await admin().send('GET', '/api/openapi.json')).body)
    const documented: Record<string, { get?: { responses: object } }> = paths
    const wanted: string[] = []
    const found = new Set<string>()
    const unsupported = new Set<string>()
    // A client of the scenarios fails if an answer is not documented.
    const anonymous = anonymousAt('198.18.255.1')
    for (const [path, { get }] of Object.entries(documented)) {
      if (get === undefined || path === '/api/events') continue
      if ('304' in get.responses) wanted.push(path)
      const url = path.replace(/\{\w+\}/, String(NODES[0])) + (path === '/api/telemetry' ? `?nodeId=${NODES[0]}` : '')
      for (const client of [admin(), anonymous]) {
        const answer = await client.send('GET', url, undefined, { 'if-none-match': '*' })
        if (answer.status === 304) found.add(path)
        if (answer.status === 501) unsupported.add(path)
      }
    }
    // There are no map files and no overlays here.
    const absent = ['/api/map/archive', '/api/map/region.pmtiles', '/api/map/overlays/{id}']
    expect(wanted.filter((path) => !absent.includes(path) && !unsupported.has(path)).toSorted()).toEqual(
      [...found].toSorted(),
    )
    expect(found.size).toBeGreaterThan(10)
  })

  test('anonymous visitors share the processor by address, a network of IPv6 as one', async () => {
    await play(MESH, new Set())
    await share([0])
    const ask = async (address: string, from: number) => {
      const { status } = await anonymousAt(address).send('GET', `/api/nodes/${NODES[0]}/positions?from=${from}`)
      return status
    }
    const greedy: number[] = []
    for (let n = 0; n < 400 && !greedy.includes(429); n += 20) {
      const some = Array.from({ length: 20 }, (_, index) => n + index)
      greedy.push(...(await Promise.all(some.map((from) => ask(`2001:db8:1:1::${from.toString(16)}`, from)))))
    }
    expect(new Set(greedy)).toEqual(new Set([200, 429]))
    // At once, because the share grows again while one waits for answers.
    const others = Array.from({ length: 20 }, (_, index) => ask(`2001:db8:1:1:ffff::${index}`, 1000 + index))
    expect(await Promise.all(others)).toContain(429)
    expect(await ask('2001:db8:1:2::1', 2000)).toBe(200)
    expect((await admin().send('GET', `/api/nodes/${NODES[0]}/positions?from=7`)).status).toBe(200)
  })

  test('the scope of a user also limits their tokens', async () => {
    await open({ read: [0], direct: false, seesHidden: false })
    const made = await user.send('POST', '/api/tokens', { name: 'mine', scopes: ['messages:read'] })
    const bearer = createClient(admin().service)
    const authorization = `Bearer ${Object(made.body).token}`
    const { body } = await bearer.send('GET', '/api/auth/status', undefined, { authorization })
    expect(Object(body).scope).toEqual({ channels: { read: [0], write: [] }, direct: NONE })
  })

  test('with any mesh and any scope a viewer sees nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(meshesOn(3), someEyes(3), channelsAmong(3), someNodes, async (all, eyes, channels, hidden) => {
        await play(all, hidden)
        await open(eyes)
        const answers = await answersTo(user, ASKED)
        expect(marksIn(answers, all)).toEqual(marksFor(eyes, all, hidden))
        if (!eyes.seesHidden) expect(namingOf(answers, hidden)).toEqual([])
        await share(channels)
        const shown = await answersTo(anonymousAt(`198.18.${shares >> 8}.${shares & 255}`), PUBLIC_REQUESTS)
        expect(marksIn(shown, all)).toEqual(marksForAnonymous(channels, all, hidden))
        expect(namingOf(shown, hidden)).toEqual([])
      }),
      { numRuns: Number(process.env['SHARING_RUNS'] ?? 5), endOnFailure: true },
    )
  })
}
