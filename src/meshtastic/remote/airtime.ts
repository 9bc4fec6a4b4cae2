import { type Modulation, timeOnAirMs } from '../airtime.ts'

/** Addresses, id, flags, channel hash; port and flags; a checksum and half a nonce for a packet to a key. */
const FRAME_BYTES = 16 + 8 + 12
/** The passkey of a session, and the id of the packet that is answered. */
const PASSKEY_BYTES = 11
const REQUEST_ID_BYTES = 5
const ASK_BYTES = 4
const ACK_BYTES = FRAME_BYTES + REQUEST_ID_BYTES

/** For a part that was never read. */
export const TYPICAL_PART_BYTES = 60

export type RemoteAirtime = {
  /** Transmissions by all radios on the way, both ways. */
  readonly packets: number
  readonly ms: number
}

type Path = { readonly hops: number; readonly modulation: Modulation }

/** What reading these parts costs, in bytes each. */
export function airtimeOfReading(parts: readonly number[], path: Path): RemoteAirtime {
  return onAir(parts.flatMap(exchangeOf), path)
}

/** As above: read, begin, set each part, read, save, and read after the restart. */
export function airtimeOfChange(parts: readonly number[], path: Path): RemoteAirtime {
  const orders = [ASK_BYTES, ...parts, ASK_BYTES].flatMap(orderOf)
  const readings = parts.flatMap(exchangeOf)
  return onAir([...readings, ...orders, ...readings, ...readings], path)
}

/** Get a passkey, order the restart, and ask whether it has happened. */
export function airtimeOfReboot(path: Path): RemoteAirtime {
  return onAir([...exchangeOf(TYPICAL_PART_BYTES), ...orderOf(ASK_BYTES), ...exchangeOf(TYPICAL_PART_BYTES)], path)
}

/** The bytes of a request, its answer, and the acknowledgement of that. */
function exchangeOf(answer: number): number[] {
  return [FRAME_BYTES + ASK_BYTES, FRAME_BYTES + REQUEST_ID_BYTES + PASSKEY_BYTES + answer, ACK_BYTES]
}

/** The bytes of something that is only acknowledged. */
function orderOf(bytes: number): number[] {
  return [FRAME_BYTES + PASSKEY_BYTES + bytes, ACK_BYTES]
}

/** Each packet is transmitted by its sender, and once more for each hop. */
function onAir(packets: readonly number[], { hops, modulation }: Path): RemoteAirtime {
  const once = packets.reduce((sum, bytes) => sum + timeOnAirMs(bytes, modulation), 0)
  return { packets: packets.length * (hops + 1), ms: Math.round(once * (hops + 1)) }
}
