import { and, gte, lt, sql } from 'drizzle-orm'
import * as z from 'zod'
import { hasPages, packetsWithin } from '../../../db/packet-log.ts'
import { packets } from '../../../db/schema.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { ofNodesSeenBy } from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { rangeOf, walkBack } from '../../search/walk.ts'
import { lastPacketBy } from './last-packet.ts'

/** The latest packets that are looked at. */
const MAX_PACKETS = 20_000
/** The links in an answer, the latest ones. */
export const MAX_LINKS = 5000

export const linkSchema = z
  .object({
    nodeNum: nodeNumField.describe('The node that received: a radio of this service, or a gateway of a broker'),
    nodeId: nodeIdField,
    neighborNum: nodeNumField.describe('The node that sent'),
    neighborId: nodeIdField,
    viaMqtt: z.boolean().describe('A broker brought the packets to the receiver; false: it heard them off the air'),
    count: z.int().describe('Packets'),
    snr: z.number().nullable().describe('dB, of the latest packet'),
    timestamp: timeField.describe('Of the latest packet'),
  })
  .meta({ id: 'Link', description: 'Which packets of one node another one received with no node in between' })
export type MeshLink = z.infer<typeof linkSchema>

/** The radio's own number stands for a receiver without a gateway. */
const receiver = sql<number | null>`coalesce(${packets.gateway},
  (select local_node_num from sources where sources.id = ${packets.sourceId}))`

/** Times in milliseconds; `until` is exclusive. */
type Times = { readonly since: number; readonly until: number }

/** One for each pair of nodes and way, by the latest packets in the log in this time; the latest first. */
export async function listLinks({ store, viewer: { view } }: Reader, { since, until }: Times): Promise<MeshLink[]> {
  const isPacked = await hasPages(store)
  const range = await rangeOf(store, 'packet_log', (await lastPacketBy({ store, now: until - 1 })) + 1)
  const { found } = await walkBack({
    store,
    ...range,
    limit: Number.POSITIVE_INFINITY,
    most: MAX_PACKETS,
    read: async ({ from, before }) =>
      store.db
        .select({
          // The other columns of a row are those of the packet with the highest id.
          id: sql<number>`max(${packets.id})`,
          nodeNum: receiver.as('receiver'),
          neighborNum: packets.fromNodeNum,
          viaMqtt: packets.viaMqtt,
          count: sql<number>`count(*)`,
          snr: packets.rxSnr,
          timestamp: packets.t,
        })
        .from(isPacked ? packetsWithin(from, before) : packets)
        .where(
          and(
            gte(packets.id, from),
            lt(packets.id, before),
            gte(packets.t, since),
            lt(packets.t, until),
            sql`(${packets.viaMqtt} or ${packets.hopsAway} = 0)`,
            sql`not ${packets.replayed} and ${packets.trustLevel} is not 'spoofed'`,
            // The same packets as in the log: not those to hidden nodes either.
            view.hidden.size === 0 ? undefined : ofNodesSeenBy(view, packets.fromNodeNum, packets.toNodeNum, receiver),
          ),
        )
        .groupBy(sql`receiver`, packets.fromNodeNum, packets.viaMqtt)
        .all(),
  })
  const links = new Map<string, Omit<MeshLink, 'nodeId' | 'neighborId'>>()
  // The latest part of the log comes first.
  for (const { nodeNum, neighborNum, viaMqtt, count, snr, timestamp } of found) {
    if (nodeNum === null || nodeNum === neighborNum) continue
    const key = `${nodeNum} ${neighborNum} ${viaMqtt}`
    const known = links.get(key)
    const link = { nodeNum, neighborNum, viaMqtt, count, snr: viaMqtt ? null : snr, timestamp }
    links.set(key, known === undefined ? link : { ...known, count: known.count + count })
  }
  const latest = [...links.values()].toSorted((a, b) => b.timestamp - a.timestamp).slice(0, MAX_LINKS)
  await nextTurn()
  return latest.map(({ nodeNum, neighborNum, ...rest }) => ({
    nodeNum,
    nodeId: formatNodeId(nodeNum),
    neighborNum,
    neighborId: formatNodeId(neighborNum),
    ...rest,
  }))
}
