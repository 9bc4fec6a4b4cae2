import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import type { RequestKind } from '../../shared/mesh/request-kinds.ts'
import { PortNum } from '../gen/ports_pb.ts'
import { PositionSchema } from '../gen/position_pb.ts'
import { TelemetrySchema } from '../gen/telemetry_pb.ts'
import { type Destination, encodeData } from './to-radio.ts'

/** What the sender says of itself in a request. */
export type Asker = {
  /** Milliseconds. */
  readonly now: number
  /** The encoded `User` of the sending radio; null: not known. */
  readonly user: Uint8Array | null
}

type Variant = NonNullable<Exclude<MessageInitShape<typeof TelemetrySchema>['variant'], { case: undefined }>>

/** Modules of the firmware answer a request with the empty form of their own measurements. */
const EMPTY = {
  device: { case: 'deviceMetrics', value: {} },
  environment: { case: 'environmentMetrics', value: {} },
  'air-quality': { case: 'airQualityMetrics', value: {} },
  power: { case: 'powerMetrics', value: {} },
  health: { case: 'healthMetrics', value: {} },
  'local-stats': { case: 'localStats', value: {} },
  host: { case: 'hostMetrics', value: {} },
} as const satisfies Partial<Record<RequestKind, Variant>>

/**
 * Asks a node for something. Null: the radio has not said its own names, which a request for names has to contain.
 *
 * Whoever is asked stores what the request says about the sender. So a request for a position contains a time alone:
 * firmware keeps the position that it knows, and a place would go around the precision that is set for the channel.
 */
export function encodeRequest(destination: Destination, kind: RequestKind, { now, user }: Asker): Uint8Array | null {
  const asked = { ...destination, wantResponse: true }
  if (kind === 'node-info') {
    return user === null ? null : encodeData({ ...asked, port: PortNum.NODEINFO_APP, payload: user })
  }
  if (kind === 'position') {
    const position = create(PositionSchema, { time: Math.floor(now / 1000) })
    return encodeData({ ...asked, port: PortNum.POSITION_APP, payload: toBinary(PositionSchema, position) })
  }
  const telemetry = create(TelemetrySchema, { variant: EMPTY[kind] })
  return encodeData({ ...asked, port: PortNum.TELEMETRY_APP, payload: toBinary(TelemetrySchema, telemetry) })
}
