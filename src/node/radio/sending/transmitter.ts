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
import { COMMANDED, createSendQueue, type PacketKind } from './queue.ts'
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
  readonly onSent?: (message: Uint8Array, kind: PacketKind, nodeNum: number) => void
}

/** A packet of an app that is connected through this service. */
export type AppPacket = {
  readonly kind: PacketKind
  /** The app's number: answers go to it, and it has a share of the places. */
  readonly app: number
  /** The id that the app gave the packet. */
  readonly packetId: number
  /** What becomes of the packet, in order, until the link changes to another radio. */
  readonly onDelivery: (event: DeliveryEvent) => void
  /** Whether it is too late to send it. */
  readonly isOver?: () => boolean
}

/** The sending half of a link. */
export type Transmitter = {
  canSend(): boolean
  /** Packets that wait, reserved places included. */
  waiting(): number
  /** Throws `radio_unavailable`, `queue_full`. */
  reserve(kind: OutgoingKind, rule: RuleMark | null): Outgoing
  /** The same for an app. A position takes the place of the app's waiting one. */
  reserveForApp(packet: AppPacket): Outgoing
  /**
   * Withdraws packets of the rules for which this returns true, whether they are queued or only have a reserved place.
   */
  withdraw(isStale: (rule: RuleMark) => boolean): void
  /** Withdraws the waiting packet of an app. */
  expire(packetId: number): void
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

/** After these nothing more is told about a packet. */
const ENDINGS: ReadonlySet<DeliveryEvent['type']> = new Set([
  'routing',
  'refused',
  'not-sent',
  'withdrawn',
  'expired',
  'lost',
])

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
  const ofApps = new Map<number, AppPacket>()
  const report = (nodeNum: number | null, packetId: number, event: DeliveryEvent) => {
    if (nodeNum === null) return
    onDelivery({ nodeNum, packetId }, event)
    ofApps.get(packetId)?.onDelivery(event)
    if (ENDINGS.has(event.type)) ofApps.delete(packetId)
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
  /** `packet`: of an app; null: of a page or a rule, with an id of ours. */
  const reserve = (kind: PacketKind, rule: RuleMark | null, packet: AppPacket | null): Outgoing => {
    const { name, state, reason } = link.info()
    const nodeNum = ownNum()
    if (state === 'connected' && reason !== null) throw new AppError('radio_unavailable', reason)
    if (state !== 'connected' || nodeNum === null) {
      throw new AppError('radio_unavailable', said('The radio is not connected: {reason}', { reason: reason ?? state }))
    }
    // A message to the radio itself is not transmitted.
    if (!isTxEnabled && kind !== 'admin') {
      throw new AppError('radio_unavailable', 'Transmitting is switched off in the radio')
    }
    const app = packet?.app ?? null
    // Each request for a position that another service commands counts.
    if (app !== null && app !== COMMANDED && kind === 'position') queue.withdrawPosition(app)
    if (!queue.reserve(rule, app)) {
      throw new AppError('queue_full', 'Too many packets are waiting to be sent', { retryAfter: PLACE_FREE_AFTER_S })
    }
    const packetId = packet?.packetId ?? nextId()
    if (packet !== null) ofApps.set(packetId, packet)
    const place: OpenPlace = { rule, isStale: false }
    open.add(place)
    const once = (act: () => void) => {
      if (open.delete(place)) act()
    }
    const giveBack = (type: 'not-sent' | 'withdrawn' | 'expired') => {
      queue.release(rule, app)
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
          if (packet?.isOver?.() === true) return giveBack('expired')
          if (isStopped || nodeNum !== servedNum) return giveBack('not-sent')
          queue.push({ packetId, kind, message, rule, app })
        }),
      release: () =>
        once(() => {
          queue.release(rule, app)
          ofApps.delete(packetId)
        }),
    }
  }
  return {
    // Connected with a reason means that the radio is locked. It then drops packets that it is told to send.
    canSend: () => link.info().state === 'connected' && link.info().reason === null && isTxEnabled,
    waiting: () => queue.waiting,
    withdraw(isStale) {
      for (const place of open) place.isStale ||= place.rule !== null && isStale(place.rule)
      queue.withdraw(isStale)
    },
    expire: queue.expire,
    reserve: (kind, rule) => reserve(kind, rule, null),
    reserveForApp: (packet) => reserve(packet.kind, null, packet),
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
        // An answer needs no acknowledgement.
        ofApps.delete(requestId)
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
