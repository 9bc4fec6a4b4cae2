import type { LinkInfo, Outgoing, OutgoingKind, RuleMark } from '../../../app/mesh/radios/radio.ts'
import { AppError } from '../../../app/http/errors.ts'
import type { DeliveryEvent } from '../../../app/mesh/messages/delivery.ts'
import { type Answer, mayAnswer } from '../../../app/mesh/messages/answers.ts'
import type { PacketKey } from '../../../app/mesh/messages/delivery-records.ts'
import { type LoraSettings, readLora } from '../../../meshtastic/airtime.ts'
import type { RadioEvent } from '../../../meshtastic/radio-event.ts'
import { createPacketIds } from '../../../meshtastic/link/to-radio.ts'
import type { Clock } from '../../clock.ts'
import type { Link } from '../link.ts'
import { createSendQueue } from './queue.ts'
import { said } from '../../../app/words/words.ts'

/** For a radio that has not reported its own limit. */
const DEFAULT_HOP_LIMIT = 3
const MAX_HOP_LIMIT = 7
/** One text is sent every 2.2 s and frees its place, so retry after this time. */
const PLACE_FREE_AFTER_S = 3

export type TransmitterOptions = {
  readonly link: Pick<Link, 'info' | 'send'>
  readonly clock: Clock
  readonly random: () => number
  /** An event of a packet of the radio `nodeNum`, in order. */
  readonly onDelivery: (key: PacketKey, event: DeliveryEvent) => void
  /** A packet from a node that may answer one of the radio `nodeNum`. */
  readonly onAnswer?: (key: PacketKey, answer: Answer) => void
  /** See `handOver` of the queue. */
  readonly onHandOver: (key: PacketKey, then: () => void) => void
  /** Called with each encoded ToRadio that was sent to the radio `nodeNum`. */
  readonly onSent?: (message: Uint8Array, kind: OutgoingKind, nodeNum: number) => void
}

/** The sending half of a link. */
export type Transmitter = {
  canSend(): boolean
  /** Packets that wait, reserved places included. */
  waiting(): number
  /** Throws `radio_unavailable`, `queue_full`. */
  reserve(kind: OutgoingKind, rule: RuleMark | null): Outgoing
  /**
   * Withdraws packets of the rules for which this returns true, whether they are queued or only have a reserved place.
   */
  withdraw(isStale: (rule: RuleMark) => boolean): void
  /** Null: the radio did not report it. */
  lora(): LoraSettings | null
  /** Processes the radio's events. */
  observe(event: RadioEvent): void
  onState(info: LinkInfo): void
  /** Drops waiting packets, and reports each. */
  abandon(): void
  /** Ends it permanently: later packets are not sent. */
  stop(): void
}

/** A place that is not filled yet. */
type OpenPlace = { readonly rule: RuleMark | null; isStale: boolean }

export function createTransmitter({
  link,
  clock,
  random,
  onDelivery,
  onAnswer,
  onHandOver,
  onSent,
}: TransmitterOptions): Transmitter {
  const nextId = createPacketIds(random)
  let hopLimit = DEFAULT_HOP_LIMIT
  let isStopped = false
  let isTxEnabled = true
  let lora: LoraSettings | null = null
  const ownNum = () => link.info().radio?.nodeNum ?? null
  /** The radio that the waiting packets are for. */
  let servedNum: number | null = null
  const open = new Set<OpenPlace>()
  const report = (nodeNum: number | null, packetId: number, event: DeliveryEvent) => {
    if (nodeNum !== null) onDelivery({ nodeNum, packetId }, event)
  }
  const queue = createSendQueue({
    clock,
    send(message, kind) {
      if (!link.send(message)) return false
      if (servedNum !== null) onSent?.(message, kind, servedNum)
      return true
    },
    handOver(packetId, then) {
      if (servedNum === null) then()
      else onHandOver({ nodeNum: servedNum, packetId }, then)
    },
    onDelivery: (packetId, event) => report(servedNum, packetId, event),
  })
  return {
    // Connected with a reason means that the radio is locked. It then drops packets that it is told to send.
    canSend: () => link.info().state === 'connected' && link.info().reason === null && isTxEnabled,
    waiting: () => queue.waiting,
    withdraw(isStale) {
      for (const place of open) place.isStale ||= place.rule !== null && isStale(place.rule)
      queue.withdraw(isStale)
    },
    reserve(kind, rule) {
      const { name, state, reason } = link.info()
      const nodeNum = ownNum()
      if (state === 'connected' && reason !== null) throw new AppError('radio_unavailable', reason)
      if (state !== 'connected' || nodeNum === null) {
        throw new AppError(
          'radio_unavailable',
          said('The radio is not connected: {reason}', { reason: reason ?? state }),
        )
      }
      if (!isTxEnabled) throw new AppError('radio_unavailable', 'Transmitting is switched off in the radio')
      if (!queue.reserve(rule)) {
        throw new AppError('queue_full', 'Too many packets are waiting to be sent', { retryAfter: PLACE_FREE_AFTER_S })
      }
      const packetId = nextId()
      const place: OpenPlace = { rule, isStale: false }
      open.add(place)
      const once = (act: () => void) => {
        if (open.delete(place)) act()
      }
      const giveBack = (type: 'not-sent' | 'withdrawn') => {
        queue.release(rule)
        report(nodeNum, packetId, { type })
      }
      return {
        source: name,
        nodeNum,
        packetId,
        hopLimit,
        send: (message) =>
          once(() => {
            if (place.isStale) return giveBack('withdrawn')
            if (isStopped || nodeNum !== servedNum) return giveBack('not-sent')
            queue.push({ packetId, kind, message, rule })
          }),
        release: () => once(() => queue.release(rule)),
      }
    },
    lora: () => lora,
    observe(event) {
      if (event.type === 'settings' && event.settings.section === 'lora') {
        const { hopLimit: limit, txEnabled } = event.settings.values
        if (typeof limit === 'number') hopLimit = Math.min(limit, MAX_HOP_LIMIT)
        isTxEnabled = txEnabled !== false
        lora = readLora(event.settings.values)
      }
      queue.observe(event)
      if (event.type === 'notification' && event.packetId !== null) {
        report(ownNum(), event.packetId, { type: 'notice', message: event.message })
      }
      if (event.type !== 'packet' || event.replayed) return
      const { from, to, payload, requestId, rssi } = event.packet
      const own = ownNum()
      // Our own radio reports this without an RSSI. A packet with its own number that was received by radio is forged.
      const isForged = from === own && rssi !== null
      if (requestId === null || to !== own || own === null || isForged) return
      if (from !== own && mayAnswer(event.packet)) {
        onAnswer?.({ nodeNum: own, packetId: requestId }, { packet: event.packet, at: event.receivedAt })
      }
      if (payload.kind !== 'routing') return
      report(own, requestId, { type: 'routing', error: payload.error, from })
    },
    onState({ state }) {
      const nodeNum = ownNum()
      if (state === 'connected' && nodeNum !== servedNum) {
        // Another radio answers at this address, with other channels.
        queue.abandon()
        servedNum = nodeNum
      }
      queue.setConnected(state === 'connected')
    },
    abandon: () => queue.abandon(),
    stop() {
      isStopped = true
      queue.stop()
    },
  }
}
