import { announce } from '../../../src/app/mesh/ingest/announce.ts'
import { createIngest } from '../../../src/app/mesh/ingest/ingest.ts'
import { createEvents } from '../../../src/app/mesh/live/events.ts'
import { surveyRoutes } from '../../../src/app/mesh/survey/route-links.ts'
import { surveyPackets } from '../../../src/app/mesh/survey/survey.ts'
import { rollUp } from '../../../src/app/mesh/telemetry/roll-up.ts'
import { type Client, createTestApp, START, type TestApp } from '../app.ts'
import { openEventStream } from '../event-stream.ts'
import { createManualClock } from '../manual-clock.ts'
import { heard, myInfo, packet, text } from './mesh.ts'
import { type Eyes, namingPackets, NODES, packetOf, pathsOf, PUBLIC_REQUESTS, REQUESTS, type Said } from './said.ts'

export type SeenMesh = {
  readonly app: TestApp
  readonly user: Client & { id: number }
  readonly admin: Client
  readonly anonymous: Client
  /** Empties the mesh and stores these items, one after the other; returns the id of the last event before them. */
  play(all: readonly Said[], hidden: ReadonlySet<number>): Promise<string>
  /** Lets the user see this much. */
  open(eyes: Eyes): void
  /** Shows these channels to strangers, with positions of this many bits. */
  share(channels: readonly number[], precisionBits: number | null): void
  /** Makes these nodes ignored, and no others. */
  ignore(nodeNums: ReadonlySet<number>): void
  /** Every byte that the client gets, by path. */
  everything(client: Client, since: string): Promise<Map<string, string>>
  /** The same for a stranger. */
  everythingPublic(since: string): Promise<Map<string, string>>
}

/** An app with a mesh in which every item has a mark, and a user whose scope can be set. */
export async function createSeenMesh(): Promise<SeenMesh> {
  const clock = createManualClock(START)
  const events = createEvents(clock)
  const app = await createTestApp({ ports: { events, now: () => clock.now() } })
  const admin = await app.admin()
  const may = { read: true, write: false }
  const user = await app.user('anna', { dashboard: may, nodes: may, messages: may, info: may })
  const exec = (sql: string) => app.store.sqlite.exec(sql)
  const anonymous = app.client()
  const charts = JSON.stringify([{ title: '', metrics: ['deviceMetrics.uptimeSeconds'], nodes: NODES }])
  exec(`insert into boards (uid, owner_id, name, position, sharing, charts)
    values ('1', (select id from users where username = 'admin'), 'Everybody', 1, 'everybody', '${charts}')`)
  return {
    app,
    user,
    admin,
    anonymous,
    async play(all, hidden) {
      for (const table of EMPTIED) exec(`delete from ${table}`)
      const before = `${events.epoch}-${events.last()}`
      const ingest = createIngest(app.store)
      const hello = NODES.map((from) => packet(text('hello'), { from }))
      await ingest.store([myInfo, ...hello, ...namingPackets()].map((told) => heard(told)))
      for (const nodeNum of hidden) exec(`update nodes set is_hidden = 1 where node_num = ${nodeNum}`)
      for (const [index, said] of all.entries()) {
        await announce(
          app.ports,
          await ingest.store([heard(packetOf(said, index), { at: START + 1000 * (index + 1) })]),
        )
      }
      await rollUp(app.store, async () => true)
      await surveyPackets(app.store, async () => true)
      await surveyRoutes({ store: app.store, now: () => START + 86_400_000 }, async () => true)
      return before
    },
    open({ read, direct, seesHidden }) {
      const channels = read === 'all' ? 'null' : `'${JSON.stringify({ read, write: [] })}'`
      exec(`update users set channels = ${channels}, direct_read = ${Number(direct)}, direct_write = 0 where id = ${user.id};
        update user_permissions set can_write = ${Number(seesHidden)} where user_id = ${user.id} and resource = 'nodes'`)
    },
    share(channels, positionPrecisionBits) {
      const access = { enabled: true, permissions: SHARED, channels, positionPrecisionBits, hideSilentAfterDays: null }
      exec(
        `insert or replace into settings (key, value, updated_at) values ('publicAccess', '${JSON.stringify(access)}', 1)`,
      )
    },
    ignore(nodeNums) {
      exec(`update nodes set is_ignored = node_num in (${[...nodeNums].join()})`)
    },
    async everythingPublic(since) {
      // The limits for anonymous callers are full again.
      clock.advance(30_000)
      const found = new Map<string, string>()
      for (const path of pathsOf(PUBLIC_REQUESTS, START))
        found.set(path, await (await anonymous.send('GET', path)).text())
      for (const path of pathsOf(REQUESTS, START)) {
        if (!found.has(path)) found.set(path, await (await anonymous.send('GET', path)).text())
      }
      found.set('/api/events', await eventsForAnonymous(since))
      return found
    },
    async everything(client, since) {
      const found = new Map<string, string>()
      for (const path of pathsOf(REQUESTS, START)) found.set(path, await (await client.send('GET', path)).text())
      found.set('/api/events', await eventsSince(client, since))
      return found
    },
  }

  /** The events that a stranger gets while they happen. */
  async function eventsForAnonymous(since: string): Promise<string> {
    const stream = await openEventStream(anonymous)
    const happened = events.since(Number(since.split('-')[1]), Number.MAX_SAFE_INTEGER)
    events.publish([...(happened ?? []), { kind: 'node', data: { nodeId: 'the last one' } }])
    clock.advance(1000)
    let all = ''
    for (let block = await stream.next(); block !== null; block = await stream.next()) {
      all += JSON.stringify(block)
      if (all.includes('the last one')) break
    }
    await stream.end()
    return all
  }

  /** The events up to one that everybody gets. */
  async function eventsSince(client: Client, since: string): Promise<string> {
    events.publish([{ kind: 'link', data: { name: 'the last one' } }])
    const stream = await openEventStream(client, since, '?packets=true')
    let all = ''
    for (let block = await stream.next(); block !== null; block = await stream.next()) {
      all += JSON.stringify(block)
      if (block.event === 'link' && all.includes('the last one')) break
    }
    await stream.end()
    return all
  }
}

const READ = { read: true, write: false }
const SHARED = { dashboard: READ, nodes: READ, messages: READ, info: READ }

const EMPTIED =
  'receptions messages packets proven_packets traceroutes neighbors waypoints positions telemetry telemetry_hourly telemetry_daily telemetry_dirty channel_positions channel_metrics channel_statuses coverage heard_links route_links nodes'.split(
    ' ',
  )
