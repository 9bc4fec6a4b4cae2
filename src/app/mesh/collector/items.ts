import type { Heard } from '../heard/heard.ts'
import { create } from '@bufbuild/protobuf'
import { base64Decode } from '@bufbuild/protobuf/wire'
import * as z from 'zod'
import { MAX_NUMBER } from '../../../meshtastic/channel-identity.ts'
import { EARLIEST_MS, MAX_AHEAD_MS, parseDeviceTime } from '../../../meshtastic/device-time.ts'
import { decodeFromRadio } from '../../../meshtastic/link/from-radio.ts'
import { type FromRadio, FromRadioSchema } from '../../../meshtastic/gen/stream_pb.ts'
import { mayHoldSecrets } from '../../../meshtastic/payload/payload.ts'
import { toRadioEvent } from '../../../meshtastic/radio-event.ts'
import { createReplayDetector } from '../../../meshtastic/replay.ts'
import type { KnownSource, Source } from '../radios/source-table.ts'
import { isFuture, MINUTE_MS } from '../../../shared/time.ts'

/** Packets of one delivery. */
export const MAX_ITEMS = 500
/** Items that arrive later than this are compared with the content of the database when they arrive. */
const LATE_MS = 5 * MINUTE_MS
/** A radio's message has at most 512 bytes; one built from a broker's message may be slightly longer. */
const MAX_BYTES = 1024
/** The name of a collector, and of its radio: a host name and a port. */
const MAX_SOURCE = 300
const MAX_BASE64 = Math.ceil(MAX_BYTES / 3) * 4

/** Why an item is not stored. */
export const REJECTIONS = [
  'not_base64',
  'too_long',
  'not_a_message',
  'not_taken',
  'received_in_future',
  'received_too_early',
  'not_storable',
  'not_your_radio',
] as const
export type Rejection = { readonly index: number; readonly reason: (typeof REJECTIONS)[number] }

const receiptTime = z.int().min(0)

const itemSchema = z
  .union([
    z.string(),
    z.strictObject({
      data: z.string().describe('FromRadio, base64'),
      receivedAt: receiptTime.optional().describe('When the collector received it, ms; overrides that of the delivery'),
      replayed: z
        .boolean()
        .optional()
        .describe("Replayed from the radio's memory after a handshake, or retained by a broker"),
      gateway: z.int().min(1).max(0xfffffffe).optional().describe('Gateway that published it to the broker'),
      identity: z
        .string()
        .max(MAX_BYTES)
        .regex(/^(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5]):/)
        .optional()
        .describe(
          'For a channel of a radio: its hash, a colon and its name, or the name of the modem preset if it has none',
        ),
    }),
  ])
  .meta({ id: 'IngestItem', description: 'A message that a collector received' })

export const ingestSchema = z.strictObject({
  source: z
    .string()
    .min(1)
    .max(MAX_SOURCE)
    .regex(/^[^\p{Cc}\p{Cs}]+$/u)
    .describe("Name of the collector's radio or broker, the same in each delivery"),
  packets: z
    .array(itemSchema)
    .min(1)
    .max(MAX_ITEMS)
    .describe(
      'FromRadio messages in the order in which they were received, base64, including those of the handshake. Settings and admin messages are rejected, because they contain secrets',
    ),
  receivedAt: receiptTime
    .optional()
    .describe(
      "When the collector received them, ms, at most 10 minutes in the future. Without it the radio's own time counts or, if the radio has no clock, the present time: a collector that delivers late must send it",
    ),
})
type Delivery = z.infer<typeof ingestSchema>

/** The items that can be stored, each with its index in the delivery. */
export type Taken = { readonly index: number; readonly heard: Heard }

/** Reads the items one by one: an invalid one does not affect the others. */
export function readItems(
  delivery: Delivery,
  known: KnownSource | null,
  now: number,
): { taken: Taken[]; rejected: Rejection[] } {
  const source = { kind: 'ingest', name: delivery.source } as const
  const detector = createReplayDetector()
  if (known !== null && known.localNodeNum !== null) detector.isReplayed(myInfo(known.localNodeNum), now)
  const taken: Taken[] = []
  const rejected: Rejection[] = []
  for (const [index, item] of delivery.packets.entries()) {
    const result = readItem(typeof item === 'string' ? { data: item } : item, { source, delivery, detector, now })
    if (typeof result === 'string') rejected.push({ index, reason: result })
    else taken.push({ index, heard: result })
  }
  return { taken, rejected }
}

type Item = Exclude<Delivery['packets'][number], string>

function readItem(
  item: Item,
  {
    source,
    delivery,
    detector,
    now,
  }: {
    readonly source: Source
    readonly delivery: Delivery
    readonly detector: ReturnType<typeof createReplayDetector>
    readonly now: number
  },
): Heard | Rejection['reason'] {
  if (item.data.length > MAX_BASE64) return 'too_long'
  const bytes = decodeBase64(item.data)
  if (bytes === null) return 'not_base64'
  const message = decodeFromRadio(bytes)
  if (message === null) return 'not_a_message'
  const receivedAt = item.receivedAt ?? delivery.receivedAt ?? deviceReceiptTime(message, now)
  if (isFuture(receivedAt, now, MAX_AHEAD_MS)) return 'received_in_future'
  if (receivedAt < EARLIEST_MS) return 'received_too_early'
  const wasReplayed = detector.isReplayed(message, receivedAt)
  if (!isTaken(message)) return 'not_taken'
  const event = toRadioEvent(message, receivedAt, item.replayed ?? wasReplayed)
  const isLate = now - receivedAt > LATE_MS
  if (event.type === 'channel' && item.identity !== undefined && event.channel.role !== 'DISABLED') {
    return { source, event: { ...event, channel: { ...event.channel, identity: item.identity } }, isLate }
  }
  if (event.type !== 'packet' || item.gateway === undefined) return { source, event, isLate }
  return { source, event: { ...event, gateway: item.gateway }, isLate }
}

function decodeBase64(text: string): Uint8Array | null {
  try {
    return base64Decode(text)
  } catch {
    return null
  }
}

/** When the radio heard a packet, by its own clock if it has one; else now. */
function deviceReceiptTime({ payloadVariant: { case: variant, value } }: FromRadio, now: number): number {
  const heardAt = variant === 'packet' ? parseDeviceTime(value.rxTime, now) : null
  return Math.min(heardAt ?? now, now)
}

/** Packets, and the parts of a handshake that the ingest uses. */
function isTaken({ payloadVariant: { case: variant, value } }: FromRadio): boolean {
  if (variant === 'packet') {
    return value.payloadVariant.case !== 'decoded' || !mayHoldSecrets(value.payloadVariant.value.portnum)
  }
  if (variant === 'channel') return value.index >= 0 && value.index <= MAX_NUMBER
  return variant === 'myInfo' || variant === 'nodeInfo' || variant === 'metadata'
}

function myInfo(myNodeNum: number): FromRadio {
  return create(FromRadioSchema, { payloadVariant: { case: 'myInfo', value: { myNodeNum } } })
}
