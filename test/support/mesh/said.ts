import { create, toBinary } from '@bufbuild/protobuf'
import * as fc from 'fast-check'
import {
  NeighborInfoSchema,
  RouteDiscoverySchema,
  StoreAndForward_RequestResponse,
  StoreAndForwardSchema,
  WaypointSchema,
} from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { BROADCAST, formatNodeId } from '../../../src/meshtastic/node-id.ts'
import type { FromRadioVariant } from '../radio/device.ts'
import { LOCAL, nodeStatus, packet, position, telemetry, text } from './mesh.ts'

export const KINDS = ['text', 'position', 'metrics', 'waypoint', 'neighbors', 'route', 'replay', 'status'] as const

/** Something that a node says, and where. */
export type Said = {
  readonly kind: (typeof KINDS)[number]
  /** Index of the sender in NODES. */
  readonly node: number
  readonly channel: number
  /** It is for the radio alone; some are encrypted for it. A traceroute always belongs to its channel. */
  readonly isDirect: boolean
  /** Index of the node in NODES that a direct one is for; absent: our radio. */
  readonly recipient?: number | undefined
  /** Its sender does not allow it to be passed on. */
  readonly isWithheld?: boolean
}

/** What a viewer may see. */
export type Eyes = { readonly read: 'all' | readonly number[]; readonly direct: boolean; readonly seesHidden: boolean }

export const NODES: readonly number[] = [0xb0000001, 0xb0000002, 0xb0000003]

/** What shows that an item is in an answer: digits or letters that occur nowhere else. */
export function markOf({ kind }: Said, index: number): string {
  if (kind === 'text' || kind === 'replay') return `word${index}word`
  if (kind === 'status') return `state${index}state`
  if (kind === 'waypoint') return `place${index}place`
  if (kind === 'position') return latitudeOf(index).toFixed(5)
  if (kind === 'metrics') return String(uptimeOf(index))
  return String(numberOf(kind, index))
}

const latitudeOf = (index: number) => 41.00003 + index * 0.0101
const uptimeOf = (index: number) => 7_300_017 + index ** 3 * 131 + index * 17
const numberOf = (kind: string, index: number) => (kind === 'route' ? 0x61000000 : 0x51000000) + index * 7

function dataOf(said: Said, index: number, nodeNum: number) {
  switch (said.kind) {
    case 'text':
      return text(markOf(said, index))
    case 'replay': {
      // A store & forward server repeats a text, of a channel or to one node.
      const { ROUTER_TEXT_BROADCAST, ROUTER_TEXT_DIRECT } = StoreAndForward_RequestResponse
      const rr = said.isDirect ? ROUTER_TEXT_DIRECT : ROUTER_TEXT_BROADCAST
      const variant = { case: 'text' as const, value: new TextEncoder().encode(markOf(said, index)) }
      const payload = toBinary(StoreAndForwardSchema, create(StoreAndForwardSchema, { rr, variant }))
      return { portnum: PortNum.STORE_FORWARD_APP, payload }
    }
    case 'position':
      return position({ latitudeI: Math.round(latitudeOf(index) * 1e7), longitudeI: 90_000_000 })
    case 'metrics':
      return telemetry({ variant: { case: 'deviceMetrics', value: { uptimeSeconds: uptimeOf(index) } } })
    case 'waypoint': {
      const value = { id: index + 1, latitudeI: 10, longitudeI: 10, name: markOf(said, index) }
      return { portnum: PortNum.WAYPOINT_APP, payload: toBinary(WaypointSchema, create(WaypointSchema, value)) }
    }
    case 'status':
      return nodeStatus(markOf(said, index))
    case 'neighbors': {
      const value = { nodeId: nodeNum, neighbors: [{ nodeId: numberOf('neighbors', index), snr: 5 }] }
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

/** The item as a radio reports it. */
export function packetOf(said: Said, index: number, nodeNum: number = nodeOf(said), nodes = NODES): FromRadioVariant {
  const to = isDirect(said) ? recipientOf(said, nodes) : ADDRESSED.has(said.kind) ? LOCAL : BROADCAST
  const pkiEncrypted = isDirect(said) && index % 2 === 1
  const data = { ...dataOf(said, index, nodeNum), ...(said.isWithheld === true && { bitfield: 0 }) }
  return packet(data, { from: nodeNum, to, channel: said.channel, pkiEncrypted })
}

/** The first node names all of them: as hops of a route, as its neighbours, and as the owners of its waypoints. */
export function namingPackets(): FromRadioVariant[] {
  const [from = 0] = NODES
  const route = { route: [...NODES], snrTowards: [4, 4, 4, 4], routeBack: [...NODES], snrBack: [4, 4, 4, 4] }
  const report = { nodeId: from, neighbors: NODES.map((nodeId) => ({ nodeId, snr: 5 })) }
  return [
    packet(
      {
        portnum: PortNum.TRACEROUTE_APP,
        payload: toBinary(RouteDiscoverySchema, create(RouteDiscoverySchema, route)),
        requestId: 4999,
      },
      { from, to: LOCAL },
    ),
    packet(
      { portnum: PortNum.NEIGHBORINFO_APP, payload: toBinary(NeighborInfoSchema, create(NeighborInfoSchema, report)) },
      { from },
    ),
    ...NODES.map((lockedTo) => {
      const value = { id: 0x7000 + (lockedTo % 16), latitudeI: 10, longitudeI: 10, name: 'locked', lockedTo }
      const payload = toBinary(WaypointSchema, create(WaypointSchema, value))
      return packet({ portnum: PortNum.WAYPOINT_APP, payload }, { from })
    }),
  ]
}

/** The answers that name one of the nodes, by its number or its id. */
export function namingOf(answers: ReadonlyMap<string, string>, nodeNums: ReadonlySet<number>): string[] {
  const names = (body: string) =>
    [...nodeNums].some((nodeNum) => body.includes(String(nodeNum)) || body.includes(formatNodeId(nodeNum)))
  return [...answers].flatMap(([path, body]) => (names(body) ? [path] : []))
}

/** Addressed to one node although they belong to a channel. */
const ADDRESSED = new Set<Said['kind']>(['route', 'replay'])

export const isDirect = (said: Said): boolean => said.isDirect && said.kind !== 'route'

export const recipientOf = ({ recipient }: Said, nodes: readonly number[] = NODES): number =>
  (recipient === undefined ? undefined : nodes[recipient]) ?? LOCAL

export const nodeOf = ({ node }: Said): number => NODES[node] ?? 0xb0000001

/** Whether the viewer may find the mark of the item anywhere. */
export function maySee({ read, direct, seesHidden }: Eyes, said: Said, hidden: ReadonlySet<number>): boolean {
  if (!seesHidden && hidden.has(nodeOf(said))) return false
  if (isDirect(said)) return direct && (seesHidden || !hidden.has(recipientOf(said)))
  return read === 'all' || read.includes(said.channel)
}

/** Something of each kind on three channels, a tracker that is only on the last one, and a third node to hide. */
export const MESH: readonly Said[] = [
  ...KINDS.flatMap((kind) => [0, 1, 2].map((channel) => ({ kind, node: 0, channel, isDirect: false }))),
  ...KINDS.flatMap((kind) => [0, 0].map((channel) => ({ kind, node: 0, channel, isDirect: true }))),
  ...KINDS.map((kind) => ({ kind, node: 0, channel: 0, isDirect: true, recipient: 2 })),
  { kind: 'position', node: 1, channel: 2, isDirect: false },
  ...KINDS.map((kind) => ({ kind, node: 0, channel: 0, isDirect: false, isWithheld: true })),
  ...KINDS.map((kind) => ({ kind, node: 2, channel: 0, isDirect: false })),
]
export const HIDDEN: ReadonlySet<number> = new Set(NODES.slice(2))

/** The marks that are found in any answer. */
export function marksIn(answers: ReadonlyMap<string, string>, all: readonly Said[]): string[] {
  const bytes = [...answers.values()].join('\n')
  return all.map(markOf).filter((mark) => bytes.includes(mark))
}

/** The marks that this viewer may find. */
export function marksFor(eyes: Eyes, all: readonly Said[], hidden: ReadonlySet<number>): string[] {
  return all.flatMap((said, index) => (maySee(eyes, said, hidden) ? [markOf(said, index)] : []))
}

/** The same without an account: there is no packet log, and only the latest neighbour report of each node is shown. */
export function marksForAnonymous(
  read: readonly number[],
  all: readonly Said[],
  unseen: ReadonlySet<number>,
): string[] {
  const isReplaced = (said: Said, index: number) =>
    all.some((later, at) => at > index && nodeOf(later) === nodeOf(said) && replaces(later, said, read))
  return all.flatMap((said, index) =>
    maySee({ read, direct: false, seesHidden: false }, said, unseen) &&
    said.isWithheld !== true &&
    !isReplaced(said, index)
      ? [markOf(said, index)]
      : [],
  )
}

/** Whether of two reports of one node, anonymous callers to whom these channels are shown see only the later one. */
export function replaces(later: Said, said: Said, read: readonly number[]): boolean {
  if (later.kind !== said.kind) return false
  return said.kind === 'neighbors' || (said.kind === 'status' && isPublic(later, read))
}

/** Whether strangers to whom these channels are shown may know that the node said it. */
export function isPublic(said: Said, read: readonly number[]): boolean {
  return !isDirect(said) && said.isWithheld !== true && read.includes(said.channel)
}

/** Meshes of a few items on this many channels. */
export const meshesOn = (channels: number) =>
  fc.array(
    fc.record({
      kind: fc.constantFrom(...KINDS),
      node: fc.integer({ min: 0, max: 2 }),
      channel: fc.integer({ min: 0, max: channels - 1 }),
      isDirect: fc.boolean(),
      recipient: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
      isWithheld: fc.boolean(),
    }),
    { minLength: 1, maxLength: 14 },
  )

export const channelsAmong = (channels: number) => fc.uniqueArray(fc.integer({ min: 0, max: channels - 1 }))

export const someEyes = (channels: number): fc.Arbitrary<Eyes> =>
  fc.record({
    read: fc.oneof(fc.constant('all' as const), channelsAmong(channels)),
    direct: fc.boolean(),
    seesHidden: fc.boolean(),
  })

export const someNodes = fc.subarray([...NODES]).map((nums): ReadonlySet<number> => new Set(nums))

const DAY = 86_400_000

/** Requests for all routes with data of the mesh, by route. */
export const REQUESTS: Readonly<Record<string, (now: number) => readonly string[]>> = {
  'GET /api/nodes': () => ['/api/nodes', '/api/nodes?since=1', '/api/nodes?q=!b', '/api/nodes?q=state'],
  'GET /api/nodes/keys': () => ['/api/nodes/keys'],
  'GET /api/nodes/:id': () => NODES.map((nodeNum) => `/api/nodes/${nodeNum}`),
  'GET /api/nodes/:id/positions': () => NODES.map((nodeNum) => `/api/nodes/${nodeNum}/positions`),
  'GET /api/coverage': () => ['/api/coverage', '/api/coverage?bits=18', '/api/coverage?bits=4&bounds=0,40,20,60'],
  'GET /api/topology': () => ['/api/topology', '/api/topology?since=0'],
  'GET /api/findings': () => ['/api/findings'],
  'GET /api/boards/:id': () => ['/api/boards/1'],
  'GET /api/playback/tracks': (now) => [`/api/playback/tracks?from=${now - DAY}&to=${now + DAY / 2}`],
  'GET /api/playback/heard': (now) => [`/api/playback/heard?from=${now - DAY}&to=${now + DAY / 2}`],
  'GET /api/playback/hours': (now) => [`/api/playback/hours?from=${now - DAY}&to=${now + DAY / 2}`],
  'GET /api/nodes/:id/past': () => NODES.map((nodeNum) => `/api/nodes/${nodeNum}/past`),
  'GET /api/nodes/:id/radios': () => NODES.map((nodeNum) => `/api/nodes/${nodeNum}/radios`),
  'GET /api/nodes/:id/silence': () => NODES.map((nodeNum) => `/api/nodes/${nodeNum}/silence`),
  'GET /api/nodes/:id/requests': () => NODES.map((nodeNum) => `/api/nodes/${nodeNum}/requests`),
  'GET /api/messages': () => [
    ...['', '?q=word', '?channel=2', '?since=1', '?limit=3'].map((query) => `/api/messages${query}`),
    `/api/messages?with=${NODES[0]}`,
  ],
  'GET /api/messages/:id/receptions': () => [1, 2, 3, 4, 5].map((id) => `/api/messages/${id}/receptions`),
  'GET /api/traceroutes': () => ['/api/traceroutes?limit=500', `/api/traceroutes?node=${NODES[0]}`],
  'GET /api/traceroutes/:id/answers': () => [1, 2, 3].map((id) => `/api/traceroutes/${id}/answers`),
  'GET /api/neighbors': () => ['/api/neighbors', `/api/neighbors?ids=${NODES.join(',')}`],
  'GET /api/links': () => ['/api/links'],
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
  'GET /api/map/region': () => ['/api/map/region'],
  'GET /api/info': () => ['/api/info'],
  'GET /api/automation/:id/runs': () => ['/api/automation/1/runs'],
  'GET /api/remote': () => ['/api/remote'],
  'GET /api/remote/:id': () => NODES.map((nodeNum) => `/api/remote/${nodeNum}`),
  'GET /api/remote/:id/:section': () => NODES.map((nodeNum) => `/api/remote/${nodeNum}/lora`),
}

/** The requests that are also answered without an account, and a few that are always refused. */
export const PUBLIC_REQUESTS: Readonly<Record<string, (now: number) => readonly string[]>> = {
  'GET /api/nodes': () => ['/api/nodes', '/api/nodes?limit=2', '/api/nodes?since=1'],
  'GET /api/nodes/:id': () => NODES.map((nodeNum) => `/api/nodes/${nodeNum}`),
  'GET /api/nodes/:id/positions': () => NODES.map((nodeNum) => `/api/nodes/${nodeNum}/positions`),
  'GET /api/messages': () => ['/api/messages', '/api/messages?channel=2', '/api/messages?q=word'],
  'GET /api/channels': () => ['/api/channels'],
  'GET /api/waypoints': () => ['/api/waypoints'],
  'GET /api/neighbors': () => ['/api/neighbors'],
  'GET /api/traceroutes': () => ['/api/traceroutes', `/api/traceroutes?node=${NODES[0]}`],
  'GET /api/telemetry': (now) =>
    NODES.flatMap((nodeNum) => [
      `/api/telemetry?nodeId=${nodeNum}`,
      `/api/telemetry?nodeId=${nodeNum}&metric=deviceMetrics.uptimeSeconds&from=${now - DAY}&to=${now + DAY / 2}`,
    ]),
  'GET /api/dashboard': () => ['/api/dashboard'],
  'GET /api/info': () => ['/api/info'],
  'GET /api/map': () => ['/api/map'],
  'GET /api/map/archive': () => ['/api/map/archive'],
  'GET /api/map/overlays': () => ['/api/map/overlays'],
  'GET /api/map/overlays/:id': () => ['/api/map/overlays/1'],
  'GET /api/map/region': () => ['/api/map/region'],
  'GET /api/map/region.pmtiles': () => ['/api/map/region.pmtiles'],
}

export function pathsOf(requests: typeof REQUESTS, now: number): string[] {
  return Object.values(requests).flatMap((paths) => paths(now))
}
