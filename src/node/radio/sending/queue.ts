import type { OutgoingKind, RuleMark } from '../../../app/mesh/radios/radio.ts'
import type { DeliveryEvent } from '../../../app/mesh/messages/delivery.ts'
import type { RadioEvent } from '../../../meshtastic/radio-event.ts'
import { createTimer, type Clock } from '../../clock.ts'

/**
 * Minimum time between two packets of a kind, in milliseconds. Radios drop a second text within 2 s, a second
 * traceroute within 30 s and a second one of the others within 10 s, by their own clock: a packet that is a millisecond
 * early is lost.
 */
const PACES = {
  text: 2200,
  traceroute: 30_500,
  position: 10_000,
  telemetry: 10_000,
  'node-info': 10_000,
  waypoint: 10_000,
  alert: 10_000,
  // Radios do not limit these, but each occupies the channel for a while.
  remote: 3000,
  other: 2200,
  // It never leaves the radio.
  admin: 0,
} as const satisfies Record<PacketKind, number>

/** `admin`: a message to the radio itself. */
export type PacketKind = OutgoingKind | 'other' | 'admin'

const MAX_WAITING = 50
/** The part of these places for automation rules, so that users always have places left. */
const MAX_OF_RULES = 20
/** The part for apps that are connected through this service, and for each of them. */
const MAX_OF_APPS = 20
const MAX_OF_APP = 8
/** The app that is the service to which this one delivers. */
export const COMMANDED = -1
/** No answer is expected after this time. */
const ANSWER_MS = 120_000
/** A radio that says later that it took a packet says nothing about when. */
const TAKEN_MS = 500
/** How long a packet waits for a link that was lost. */
const LINK_PATIENCE_MS = 120_000

/** The routing error for a packet that the radio accepted; its name means "you keep the buffer". */
const ACCEPTED: ReadonlySet<number> = new Set([0, 35])

export type SendQueueOptions = {
  readonly clock: Clock
  /** Sends an encoded ToRadio; false when the link is not connected. */
  readonly send: (message: Uint8Array, kind: PacketKind) => boolean
  /** Records that a packet is given to the radio, then calls `then`, even if that failed. */
  readonly handOver: (packetId: number, then: () => void) => void
  /** An event of a packet, in order. */
  readonly onDelivery: (packetId: number, event: DeliveryEvent) => void
}

type Entry = {
  readonly packetId: number
  readonly kind: PacketKind
  readonly message: Uint8Array
  /** Null: a user sends it. */
  readonly rule: RuleMark | null
  /** The app that a user sends it with. */
  readonly app?: number | null
}

/**
 * Packets on their way to one radio, paced by kind: packets of users first, among these what they say before what they
 * change at nodes, then those of rules, then positions of apps; in order of arrival.
 */
export type SendQueue = {
  /** Reserves a place for a packet that follows soon; false if none is free. */
  reserve(rule: RuleMark | null, app?: number | null): boolean
  /** Releases a reserved place. */
  release(rule: RuleMark | null, app?: number | null): void
  /** Withdraws the waiting position of an app, because a newer one follows. */
  withdrawPosition(app: number): void
  /** Withdraws a packet of an app that still waits. */
  expire(packetId: number): void
  /** Fills a reserved place. `packetId` is the one in `message`, an encoded ToRadio. */
  push(entry: Entry): void
  /** The number of places taken. */
  readonly waiting: number
  /** Processes the radio's events. */
  observe(event: RadioEvent): void
  /** Gives up all waiting packets. */
  abandon(): void
  /** Withdraws waiting packets of the rules for which this returns true. */
  withdraw(isStale: (rule: RuleMark) => boolean): void
  /** Reports that the link is up or down. */
  setConnected(isConnected: boolean): void
  stop(): void
}

type Reserver = { readonly rule: RuleMark | null; readonly app: number | null }

/** The order of packets whose pace allows them at the same time. */
function rankOf({ rule, app = null, kind }: Entry): number {
  if (rule !== null) return 2
  if (kind === 'remote') return 1
  return app !== null && kind === 'position' ? 3 : 0
}

export function createSendQueue({ clock, send, handOver, onDelivery }: SendQueueOptions): SendQueue {
  const entries: Entry[] = []
  const lastSentAt = new Map<PacketKind, number>()
  /** The latest packet of each kind, until the radio says that it took it. */
  const untaken = new Map<PacketKind, number>()
  const unanswered = new Map<number, () => void>()
  const pace = createTimer(clock)
  const patience = createTimer(clock)
  const reserved: Reserver[] = []
  const places = () => [...entries, ...reserved]
  const countPlaces = () => entries.length + reserved.length
  const isFull = ({ rule, app }: Reserver) => {
    if (countPlaces() >= MAX_WAITING) return true
    if (rule !== null) return places().filter((place) => place.rule !== null).length >= MAX_OF_RULES
    const ofApps = app === null ? [] : places().flatMap((place) => place.app ?? [])
    return ofApps.length >= MAX_OF_APPS || ofApps.filter((one) => one === app).length >= MAX_OF_APP
  }
  const giveBack = (rule: RuleMark | null, app: number | null) => {
    const at = reserved.findIndex((place) => place.rule === rule && place.app === app)
    if (at !== -1) reserved.splice(at, 1)
  }
  let isConnected = false
  /** Free places in the radio's own queue, as last reported. */
  let free = 1

  const settle = (packetId: number) => {
    unanswered.get(packetId)?.()
    unanswered.delete(packetId)
  }
  const giveUp = (packetId: number) => {
    settle(packetId)
    onDelivery(packetId, { type: 'lost' })
  }
  const isOpen = () => isConnected && free > 0
  /** Milliseconds until a packet of a kind may be sent. Setting the clock back restarts the interval. */
  const waitOf = (kind: PacketKind) => {
    const now = clock.now()
    const last = lastSentAt.get(kind)
    if (last === undefined) return 0
    if (last > now) lastSentAt.set(kind, now)
    return Math.max(0, Math.min(last, now) + PACES[kind] - now)
  }
  /** The packet that is about to be sent. */
  let handing: Entry | null = null
  const pump = () => {
    pace.stop()
    if (!isOpen() || handing !== null || entries.length === 0) return
    const ready = entries.filter(({ kind }) => waitOf(kind) === 0)
    const entry = ready.toSorted((a, b) => rankOf(a) - rankOf(b))[0]
    if (entry === undefined) {
      pace.start(Math.min(...entries.map(({ kind }) => waitOf(kind))), pump)
      return
    }
    handing = entry
    handOver(entry.packetId, () => {
      handing = null
      if (!entries.includes(entry) || pass(entry)) pump()
    })
  }
  const pass = (entry: Entry): boolean => {
    const { packetId, kind, message } = entry
    if (!isOpen() || !send(message, kind)) {
      onDelivery(packetId, { type: 'requeued' })
      return false
    }
    entries.splice(entries.indexOf(entry), 1)
    lastSentAt.set(kind, clock.now())
    untaken.set(kind, packetId)
    unanswered.set(
      packetId,
      clock.after(ANSWER_MS, () => giveUp(packetId)),
    )
    return true
  }
  /** The radio counts from when it got a packet, which is later on a busy line. */
  const noteTaken = (packetId: number | null) => {
    for (const [kind, latest] of untaken) {
      if (latest !== packetId) continue
      untaken.delete(kind)
      const now = clock.now()
      const lateMs = now - (lastSentAt.get(kind) ?? now)
      if (lateMs > 0 && lateMs <= TAKEN_MS) lastSentAt.set(kind, now)
    }
  }
  const drop = (old: Entry | undefined, type: 'withdrawn' | 'expired') => {
    if (old === undefined || old === handing) return
    entries.splice(entries.indexOf(old), 1)
    onDelivery(old.packetId, { type })
  }
  const abandon = () => {
    for (const { packetId } of entries.splice(0)) onDelivery(packetId, { type: 'not-sent' })
  }
  return {
    abandon,
    get waiting() {
      return countPlaces()
    },
    withdraw(isStale) {
      const stale = entries.filter(({ rule }) => rule !== null && isStale(rule))
      for (const entry of stale) entries.splice(entries.indexOf(entry), 1)
      for (const { packetId } of stale) onDelivery(packetId, { type: 'withdrawn' })
    },
    withdrawPosition(app) {
      drop(
        entries.find((entry) => entry.app === app && entry.kind === 'position'),
        'withdrawn',
      )
    },
    expire(packetId) {
      drop(
        entries.find((entry) => typeof entry.app === 'number' && entry.packetId === packetId),
        'expired',
      )
    },
    reserve(rule, app = null) {
      if (isFull({ rule, app })) return false
      reserved.push({ rule, app })
      return true
    },
    release(rule, app = null) {
      giveBack(rule, app)
    },
    push(entry) {
      giveBack(entry.rule, entry.app ?? null)
      entries.push(entry)
      if (!isConnected) patience.start(LINK_PATIENCE_MS, abandon)
      pump()
    },
    observe(event) {
      if (event.type !== 'queue-status') return
      free = event.free
      noteTaken(event.packetId)
      if (event.packetId !== null && !ACCEPTED.has(event.result) && unanswered.has(event.packetId)) {
        settle(event.packetId)
        onDelivery(event.packetId, { type: 'refused', error: `QUEUE_ERROR_${event.result}` })
      }
      pump()
    },
    setConnected(value) {
      if (value === isConnected) return
      isConnected = value
      if (value) {
        patience.stop()
        // The content of the radio's queue after a restart is unknown until the radio reports it.
        free = Math.max(1, free)
        pump()
        return
      }
      for (const packetId of unanswered.keys()) giveUp(packetId)
      if (entries.length > 0) patience.start(LINK_PATIENCE_MS, abandon)
    },
    stop() {
      isConnected = false
      pace.stop()
      patience.stop()
      if (handing !== null && entries.includes(handing)) onDelivery(handing.packetId, { type: 'requeued' })
      entries.length = 0
      for (const cancel of unanswered.values()) cancel()
      unanswered.clear()
    },
  }
}
