import { create, toBinary } from '@bufbuild/protobuf'
import { announce } from '../../../src/app/mesh/ingest/announce.ts'
import { createIngest } from '../../../src/app/mesh/ingest/ingest.ts'
import { createEvents } from '../../../src/app/mesh/live/events.ts'
import { rollUp } from '../../../src/app/mesh/telemetry/roll-up.ts'
import { NeighborInfoSchema, RouteDiscoverySchema, WaypointSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { type Client, createTestApp, START, type TestApp } from '../app.ts'
import { openEventStream } from '../event-stream.ts'
import { createManualClock } from '../manual-clock.ts'
import { heard, LOCAL, myInfo, packet, position, telemetry, text } from './mesh.ts'

export const KINDS = ['text', 'position', 'metrics', 'waypoint', 'neighbors', 'route'] as const

/** Something that a node says, and where. */
export type Said = {
  readonly kind: (typeof KINDS)[number]
  /** Place of the sender among the nodes. */
  readonly node: number
  readonly channel: number
  /** A text for one node alone. */
  readonly isDirect: boolean
}

export type Eyes = { readonly read: 'all' | readonly number[]; readonly direct: boolean; readonly seesHidden: boolean }

export const NODES = [0xb0000001, 0xb0000002, 0xb0000003] as const

/** What of a mesh is found in an answer, and nowhere else: each item has digits or letters of its own. */
export function markOf({ kind }: Said, index: number): string {
  if (kind === 'text') return `word${index}word`
  if (kind === 'waypoint') return `place${index}place`
  if (kind === 'position') return latitudeOf(index).toFixed(5)
  if (kind === 'metrics') return String(uptimeOf(index))
  return String(numberOf(kind, index))
}

const latitudeOf = (index: number) => 41.00003 + index * 0.0101
const uptimeOf = (index: number) => 7_300_017 + index ** 3 * 131 + index * 17
const numberOf = (kind: string, index: number) => (kind === 'route' ? 0x61000000 : 0x51000000) + index * 7

function dataOf(said: Said, index: number) {
  switch (said.kind) {
    case 'text':
      return text(markOf(said, index))
    case 'position':
      return position({ latitudeI: Math.round(latitudeOf(index) * 1e7), longitudeI: 90_000_000 })
    case 'metrics':
      return telemetry({ variant: { case: 'deviceMetrics', value: { uptimeSeconds: uptimeOf(index) } } })
    case 'waypoint': {
      const value = { id: index + 1, latitudeI: 10, longitudeI: 10, name: markOf(said, index) }
      return { portnum: PortNum.WAYPOINT_APP, payload: toBinary(WaypointSchema, create(WaypointSchema, value)) }
    }
    case 'neighbors': {
      const value = { nodeId: nodeOf(said), neighbors: [{ nodeId: numberOf('neighbors', index), snr: 5 }] }
      const payload = toBinary(NeighborInfoSchema, create(NeighborInfoSchema, value))
      return { portnum: PortNum.NEIGHBORINFO_APP, payload }
    }
    case 'route': {
      const value = { route: [numberOf('route', index)], snrTowards: [4, 4] }
      const payload = toBinary(RouteDiscoverySchema, create(RouteDiscoverySchema, value))
      return { portnum: PortNum.TRACEROUTE_APP, payload, requestId: 5000 + index }
    }
  }
}

export const nodeOf = ({ node }: Said): number => NODES[node] ?? NODES[0]

/** Whether the eyes may find the mark anywhere. */
export function maySee({ read, direct, seesHidden }: Eyes, said: Said, hidden: ReadonlySet<number>): boolean {
  if (!seesHidden && hidden.has(nodeOf(said))) return false
  if (said.kind === 'text' && said.isDirect) return direct
  return read === 'all' || read.includes(said.channel)
}

export type SeenMesh = {
  readonly app: TestApp
  readonly user: Client & { id: number }
  readonly admin: Client
  /** Empties the mesh, and stores these, one after the other; answers the number of the last event before them. */
  play(all: readonly Said[], hidden: ReadonlySet<number>): Promise<string>
  /** Gives the user these eyes. */
  open(eyes: Eyes): void
  /** Every byte that the client gets, by what it asked for. */
  everything(client: Client, since: string): Promise<Map<string, string>>
}

/** An app with a mesh whose every item has a mark, and a user of any scope. */
export async function createSeenMesh(): Promise<SeenMesh> {
  const clock = createManualClock(START)
  const events = createEvents(clock)
  const app = await createTestApp({ ports: { events, now: () => clock.now() } })
  const admin = await app.admin()
  const may = { read: true, write: false }
  const user = await app.user('anna', { dashboard: may, nodes: may, messages: may, info: may })
  const exec = (sql: string) => app.store.sqlite.exec(sql)
  return {
    app,
    user,
    admin,
    async play(all, hidden) {
      for (const table of EMPTIED) exec(`delete from ${table}`)
      const before = `${events.epoch}-${events.last()}`
      const ingest = createIngest(app.store)
      await ingest.store([heard(myInfo), ...NODES.map((from) => heard(packet(text('hello'), { from })))])
      for (const nodeNum of hidden) exec(`update nodes set is_hidden = 1 where node_num = ${nodeNum}`)
      for (const [index, said] of all.entries()) {
        const to = said.kind === 'route' || (said.kind === 'text' && said.isDirect) ? LOCAL : BROADCAST
        const told = packet(dataOf(said, index), { from: nodeOf(said), to, channel: said.channel })
        await announce(app.ports, await ingest.store([heard(told, { at: START + 1000 * (index + 1) })]))
      }
      await rollUp(app.store, async () => true)
      return before
    },
    open({ read, direct, seesHidden }) {
      const channels = read === 'all' ? 'null' : `'${JSON.stringify({ read, write: [] })}'`
      exec(`update users set channels = ${channels}, direct_read = ${Number(direct)}, direct_write = 0 where id = ${user.id};
        update user_permissions set can_write = ${Number(seesHidden)} where user_id = ${user.id} and resource = 'nodes'`)
    },
    async everything(client, since) {
      const found = new Map<string, string>()
      for (const path of pathsOf(START)) found.set(path, await (await client.send('GET', path)).text())
      found.set('/api/events', await eventsSince(client, since))
      return found
    },
  }

  /** The events up to one that everybody gets. */
  async function eventsSince(client: Client, since: string): Promise<string> {
    events.publish([{ kind: 'link', data: { name: 'the last one' } }])
    const stream = await openEventStream(client, since)
    let all = ''
    for (let block = await stream.next(); block !== null; block = await stream.next()) {
      all += JSON.stringify(block)
      if (block.event === 'link' && all.includes('the last one')) break
    }
    await stream.end()
    return all
  }
}

const EMPTIED =
  'receptions messages packets traceroutes neighbors waypoints positions telemetry telemetry_hourly telemetry_daily telemetry_dirty channel_positions channel_metrics nodes'.split(
    ' ',
  )

const DAY = 86_400_000

/** Requests of all routes with contents, each by its route. */
export const REQUESTS: Readonly<Record<string, (now: number) => readonly string[]>> = {
  'GET /api/nodes': () => ['/api/nodes', '/api/nodes?since=1', '/api/nodes?q=!b'],
  'GET /api/nodes/:id': () => NODES.map((nodeNum) => `/api/nodes/${nodeNum}`),
  'GET /api/nodes/:id/positions': () => NODES.map((nodeNum) => `/api/nodes/${nodeNum}/positions`),
  'GET /api/messages': () => [
    ...['', '?q=word', '?channel=2', '?since=1', '?limit=3'].map((query) => `/api/messages${query}`),
    `/api/messages?with=${NODES[0]}`,
  ],
  'GET /api/messages/:id/receptions': () => [1, 2, 3, 4, 5].map((id) => `/api/messages/${id}/receptions`),
  'GET /api/traceroutes': () => ['/api/traceroutes?limit=500', `/api/traceroutes?node=${NODES[0]}`],
  'GET /api/neighbors': () => ['/api/neighbors'],
  'GET /api/waypoints': () => ['/api/waypoints'],
  'GET /api/packets': () => ['/api/packets?limit=500', '/api/packets?port=1', `/api/packets?from=${NODES[0]}`],
  'GET /api/channels': () => ['/api/channels'],
  'GET /api/telemetry': (now) =>
    NODES.flatMap((nodeNum) => [
      `/api/telemetry?nodeId=${nodeNum}`,
      ...[1, 30, 300].map(
        (days) =>
          `/api/telemetry?nodeId=${nodeNum}&metric=deviceMetrics.uptimeSeconds&from=${now - days * DAY}&to=${now + DAY / 2}`,
      ),
    ]),
  'GET /api/dashboard': () => ['/api/dashboard'],
  'GET /api/info': () => ['/api/info'],
  'GET /api/automation/:id/runs': () => ['/api/automation/1/runs'],
}

function pathsOf(now: number): string[] {
  return Object.values(REQUESTS).flatMap((paths) => paths(now))
}
