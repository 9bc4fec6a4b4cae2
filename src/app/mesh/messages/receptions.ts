import { eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { messages, sources } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { receptionsOf } from '../radios/receptions-of.ts'
import { AppError } from '../../http/errors.ts'
import { canReadMessage, placeOfMessage, seesNodes, type View } from '../../accounts/access/visible.ts'
import { DIFFERENCES } from '../../../shared/mesh/packets.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'

export const receptionSchema = z
  .object({
    source: z.string().describe('The radio or broker that received it'),
    gateway: nodeNumField
      .nullable()
      .describe('Gateway that published it to the broker; null: the radio itself heard it'),
    gatewayId: nodeIdField.nullable(),
    timestamp: timeField,
    rxSnr: z.number().nullable().describe('dB, of the last transmitter'),
    rxRssi: z.int().nullable().describe('dBm, of the last transmitter'),
    hopsAway: z.int().nullable(),
    differs: z.array(z.enum(DIFFERENCES)).describe('What this copy says differently from the message as it is shown'),
  })
  .meta({ id: 'Reception', description: 'One reception of a message' })
export type Reception = z.infer<typeof receptionSchema>

const queries = prepareOnce((db) => ({
  exists: db
    .select({ channel: messages.channel, from: messages.fromNodeNum, to: messages.toNodeNum })
    .from(messages)
    .where(eq(messages.id, sql.placeholder('id')))
    .prepare(),
  list: db
    .select({
      source: sources.name,
      gateway: sql<number>`x.gateway`,
      timestamp: sql<number>`x.t`,
      rxSnr: sql<number | null>`x.rx_snr`,
      rxRssi: sql<number | null>`x.rx_rssi`,
      hopsAway: sql<number | null>`x.hops_away`,
      differs: sql<string | null>`x.differs`,
    })
    .from(receptionsOf(sql.placeholder('id')))
    .innerJoin(sources, sql`${sources.id} = x.source_id`)
    .orderBy(sql`x.t`, sql`x.gateway`, sql`x.source_id`)
    .limit(1000)
    .prepare(),
}))

/** Oldest first, at most 1000. Throws `message_not_found`, also for a message that the viewer may not see. */
export async function listReceptions(store: Store, id: number, view: View): Promise<Reception[]> {
  const { exists, list } = queries(store)
  const message = await exists.get({ id })
  const isSeen =
    message !== undefined &&
    canReadMessage(view, placeOfMessage(message)) &&
    seesNodes(view, [message.from, message.to])
  if (!isSeen) throw new AppError('message_not_found')
  const rows = (await list.all({ id })).filter(({ gateway }) => seesNodes(view, [gateway]))
  return rows.map((row) => {
    const gateway = row.gateway === 0 ? null : row.gateway
    const said = row.differs?.split(',') ?? []
    const differs = DIFFERENCES.filter((name) => said.includes(name))
    return { ...row, differs, gateway, gatewayId: gateway === null ? null : formatNodeId(gateway) }
  })
}
