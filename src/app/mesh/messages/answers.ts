import { and, eq, isNull, sql } from 'drizzle-orm'
import { nodeRequests, tracerouteAnswers, traceroutes } from '../../../db/schema.ts'
import { insertSelect } from '../../../db/insert-select.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import type { Packet } from '../../../meshtastic/packet.ts'
import type { RequestKind } from '../../../shared/mesh/request-kinds.ts'
import type { PacketKey } from './delivery-records.ts'

/** A packet from a node that answers one of ours. */
export type Answer = { readonly packet: Packet; readonly at: number }

/** Nodes whose answers to one traceroute are stored: anybody can make them up. */
const MAX_ANSWERS = 100

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  request: db
    .select({ id: nodeRequests.id, to: nodeRequests.toNodeNum, kind: nodeRequests.kind })
    .from(nodeRequests)
    .where(and(eq(nodeRequests.fromNodeNum, value('nodeNum')), eq(nodeRequests.requestId, value('packetId'))))
    .prepare(),
  asked: db
    .select({ id: traceroutes.id })
    .from(traceroutes)
    .where(
      and(
        eq(traceroutes.fromNodeNum, value('nodeNum')),
        eq(traceroutes.requestId, value('packetId')),
        eq(traceroutes.toNodeNum, BROADCAST),
      ),
    )
    .prepare(),
}))

/** Whether a packet to one of our radios could answer a request. */
export function mayAnswer({ payload, requestId }: Packet): boolean {
  return requestId !== null && (payload.kind === 'traceroute' || portOf(payload.kind) !== null)
}

/**
 * Records the answer to a request, or one of those to a traceroute to all. Calls run one after the other. Returns who
 * was asked: a node, `BROADCAST`, or null if the packet answers nothing.
 */
export async function recordAnswer(store: Store, key: PacketKey, { packet, at }: Answer): Promise<number | null> {
  if (packet.payload.kind === 'traceroute') return recordDirect(store, key, { packet, at })
  const request = await queries(store).request.get(key)
  if (request === undefined || request.to !== packet.from) return null
  if (portOf(packet.payload.kind) !== portOfRequest(request.kind)) return null
  await store.atomic([
    store.db
      .update(nodeRequests)
      .set({ answeredAt: at, state: 'delivered', routingError: null })
      .where(and(eq(nodeRequests.id, request.id), isNull(nodeRequests.answeredAt))),
  ])
  return request.to
}

function portOf(payload: Packet['payload']['kind']): 'position' | 'node-info' | 'telemetry' | null {
  if (payload === 'position' || payload === 'telemetry') return payload
  return payload === 'nodeinfo' ? 'node-info' : null
}

function portOfRequest(kind: RequestKind) {
  return kind === 'position' || kind === 'node-info' ? kind : 'telemetry'
}

/**
 * A node that hears a traceroute to all adds itself and answers. Our own radio may stand before it, because it takes
 * its own broadcast for one that it heard. A longer way is not a direct one.
 */
async function recordDirect(
  store: Store,
  { nodeNum, packetId }: PacketKey,
  { packet, at }: Answer,
): Promise<number | null> {
  const { payload, from, hopsAway, hopStart, hopLimit, viaMqtt, snr } = packet
  const asked = await queries(store).asked.get({ nodeNum, packetId })
  if (asked === undefined || payload.kind !== 'traceroute') return null
  const { route, snrTowards } = payload.route
  const way = route[0] === nodeNum ? route.slice(1) : route
  if (way.length > 1 || way.some((hop) => hop !== from)) return null
  const { id } = asked
  // Firmware 2.8 answers without hops, and then says neither how many it had nor how many it took.
  const isDirect = !viaMqtt && (hopsAway === 0 || (hopStart === 0 && hopLimit === 0))
  const answer = {
    tracerouteId: sql`${id}`,
    nodeNum: sql`${from}`,
    t: sql`${at}`,
    snrTowards: sql`${snrTowards[Math.max(0, route.length - 1)] ?? null}`,
    snrBack: sql`${isDirect ? snr : null}`,
  }
  const few = sql`where (select count(*) from traceroute_answers where traceroute_id = ${id}) < ${MAX_ANSWERS}`
  await store.atomic([
    insertSelect(store.db, tracerouteAnswers, answer, few).onConflictDoNothing(),
    store.db
      .update(traceroutes)
      .set({ state: 'delivered', routingError: null, answeredAt: sql`coalesce(${traceroutes.answeredAt}, ${at})` })
      .where(eq(traceroutes.id, id)),
  ])
  return BROADCAST
}
