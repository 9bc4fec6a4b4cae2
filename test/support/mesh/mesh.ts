import type { Heard, News } from '../../../src/app/mesh/heard/heard.ts'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { createIngest, type Ingest } from '../../../src/app/mesh/ingest/ingest.ts'
import { type Data, type DataSchema, type MeshPacket, MeshPacketSchema } from '../../../src/meshtastic/gen/packet_pb.ts'
import { StatusMessageSchema, UserSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { PositionSchema } from '../../../src/meshtastic/gen/position_pb.ts'
import { FromRadioSchema } from '../../../src/meshtastic/gen/stream_pb.ts'
import { TelemetrySchema } from '../../../src/meshtastic/gen/telemetry_pb.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { toRadioEvent } from '../../../src/meshtastic/radio-event.ts'
import { createTestApp, START, type TestApp } from '../app.ts'
import type { FromRadioVariant } from '../radio/device.ts'

export const LOCAL = 0xa0cb0001
export const FAR = 0xa0cb0002
export const RADIO = { kind: 'tcp', name: 'radio-1' } as const

type DataInit = Exclude<MessageInitShape<typeof DataSchema>, Data>
type PacketInit = Exclude<MessageInitShape<typeof MeshPacketSchema>, MeshPacket>

let lastId = 1000

/** A packet heard directly, as a radio reports it; each with its own id. */
export function packet(data: DataInit, more: PacketInit = {}): FromRadioVariant {
  lastId += 1
  const heard = { from: FAR, to: BROADCAST, id: lastId, hopStart: 3, hopLimit: 3, rxSnr: 6.25, rxRssi: -70 }
  return { case: 'packet', value: { ...heard, payloadVariant: { case: 'decoded', value: data }, ...more } }
}

export function text(words: string, more: DataInit = {}): DataInit {
  return { portnum: PortNum.TEXT_MESSAGE_APP, payload: new TextEncoder().encode(words), ...more }
}

/** A text as it arrives over one hop from node 5. */
export function textPacket(id: number, words: string): MeshPacket {
  const value = { portnum: PortNum.TEXT_MESSAGE_APP, payload: new TextEncoder().encode(words) }
  const arrival = { hopStart: 3, hopLimit: 2, rxSnr: 4, rxRssi: -80 }
  return create(MeshPacketSchema, {
    from: 5,
    to: BROADCAST,
    id,
    ...arrival,
    payloadVariant: { case: 'decoded', value },
  })
}

export function position(init: MessageInitShape<typeof PositionSchema>): DataInit {
  return { portnum: PortNum.POSITION_APP, payload: toBinary(PositionSchema, create(PositionSchema, init)) }
}

export function user(init: MessageInitShape<typeof UserSchema>): DataInit {
  return { portnum: PortNum.NODEINFO_APP, payload: toBinary(UserSchema, create(UserSchema, init)) }
}

export function nodeStatus(status: string): DataInit {
  return {
    portnum: PortNum.NODE_STATUS_APP,
    payload: toBinary(StatusMessageSchema, create(StatusMessageSchema, { status })),
  }
}

export function telemetry(init: MessageInitShape<typeof TelemetrySchema>): DataInit {
  return { portnum: PortNum.TELEMETRY_APP, payload: toBinary(TelemetrySchema, create(TelemetrySchema, init)) }
}

export type At = { readonly at?: number; readonly source?: Heard['source']; readonly replayed?: boolean }

/** The event of a message of the radio, received at `at`. */
export function heard(
  payloadVariant: FromRadioVariant,
  { at = START, source = RADIO, replayed = false }: At = {},
): Heard {
  return { source, event: toRadioEvent(create(FromRadioSchema, { payloadVariant }), at, replayed) }
}

/** One batch of messages of the radio, all received at the same time. */
export async function store(
  ingest: Ingest,
  variants: readonly FromRadioVariant[],
  at: At = {},
): Promise<readonly News[]> {
  return (await ingest.store(variants.map((variant) => heard(variant, at)))).news
}

export const myInfo: FromRadioVariant = { case: 'myInfo', value: { myNodeNum: LOCAL } }

/** Unix seconds, as on the wire. */
export function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}

export const nodeInfo = (value: Extract<FromRadioVariant, { case: 'nodeInfo' }>['value']): FromRadioVariant => ({
  case: 'nodeInfo',
  value,
})

/** The app with an ingest for packets. */
export type TestMesh = {
  readonly app: TestApp
  readonly ingest: Ingest
  /** As in the answer of GET /api/nodes. */
  nodes(): Promise<Record<string, unknown>[]>
  node(nodeNum?: number): Promise<Record<string, unknown> | undefined>
  /** The number of rows of a table. */
  count(table: string): unknown
}

export async function createTestMesh(): Promise<TestMesh> {
  const app = await createTestApp()
  const nodes = async () => {
    const admin = await app.admin()
    return Object(await (await admin.send('GET', '/api/nodes')).json())
  }
  return {
    app,
    ingest: createIngest(app.store),
    nodes,
    node: async (nodeNum = FAR) => (await nodes()).find((each: Record<string, unknown>) => each['nodeNum'] === nodeNum),
    count: (table) => app.store.sqlite.prepare(`select count(*) from ${table}`).pluck().get(),
  }
}
