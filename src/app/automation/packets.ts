import { BROADCAST } from '../../meshtastic/node-id.ts'
import { countTextBytes } from '../../meshtastic/link/to-radio.ts'
import { textPacketBytes, TRACEROUTE_BYTES } from '../../meshtastic/airtime.ts'
import { namesOf } from '../../shared/names.ts'
import { type Automatic, type SendCtx, sendMessage } from '../mesh/sending/send.ts'
import { requestTraceroute } from '../mesh/sending/traceroute.ts'
import type { Planned } from './kinds/planned.ts'
import type { Reason, RunPacket } from './runs.ts'

type PacketKind = Planned['kind']
type PlannedOf<Kind> = Extract<Planned, { kind: Kind }>
type PlannedText = PlannedOf<'text' | 'tapback'>

/** How packets of one kind are sent and described. */
type Packets<P> = {
  /** Queues it. Throws as the verb that people use. */
  send(ctx: SendCtx, packet: P, automatic: Automatic): Promise<RunPacket>
  /** Why it was not sent if that verb calls it invalid. */
  readonly invalid: Reason
  /** What people read of it; null: nothing. */
  textOf(packet: P): string | null
  /** `size`: bytes on air; `channel`: 0 if it is not sent on one. */
  describe(packet: P): { readonly channel: number; readonly bytes: number; readonly size: number }
}

const texts: Packets<PlannedText> = {
  async send(ctx, { kind, to, radio, text, channel, replyId }, automatic) {
    const isReply = replyId !== null
    const message = {
      text,
      to,
      channel,
      emoji: kind === 'tapback' && isReply,
      ...(isReply ? { replyId } : {}),
      ...(radio === null ? {} : { radio }),
    }
    const { fromNodeNum, packetId } = await sendMessage(ctx, message, null, automatic)
    return { fromNodeNum, packetId, toNodeNum: to, channel }
  },
  invalid: 'channel_disabled',
  textOf: ({ text }) => text,
  describe({ kind, text, to, channel, replyId }) {
    const bytes = countTextBytes(text)
    const isReply = replyId !== null
    const isReaction = kind === 'tapback' && isReply
    return { channel, bytes, size: textPacketBytes(bytes, { isReply, isReaction, isDirect: to !== BROADCAST }) }
  },
}

const traceroutes: Packets<PlannedOf<'traceroute'>> = {
  async send(ctx, { to, radio }, automatic) {
    const target = radio === null ? { to } : { to, radio }
    const { fromNodeNum, requestId: packetId } = await requestTraceroute(ctx, target, automatic)
    return { fromNodeNum, packetId, toNodeNum: to, channel: 0 }
  },
  invalid: 'no_target',
  textOf: () => null,
  describe: () => ({ channel: 0, bytes: 0, size: TRACEROUTE_BYTES }),
}

/** The kinds of packets that rules send. */
const PACKETS = { text: texts, tapback: texts, traceroute: traceroutes } satisfies {
  readonly [Kind in PacketKind]: Packets<PlannedOf<Kind>>
}

export const PACKET_KINDS = namesOf(PACKETS)

// A kind's methods may take narrower parameters: they only get packets of their own kind.
export function packetsOf({ kind }: Planned): Packets<Planned> {
  return PACKETS[kind]
}
