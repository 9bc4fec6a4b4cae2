import { createSocket, type Socket } from 'node:dgram'
import { networkInterfaces } from 'node:os'
import type { LinkInfo } from '../../../app/mesh/radios/radio.ts'
import { decodeMulticast, openMulticast } from '../../../meshtastic/link/multicast-packet.ts'
import { DEFAULT_CHANNEL_KEY } from '../../../meshtastic/link/mqtt-envelope.ts'
import { createTimer, type Clock, systemClock } from '../../clock.ts'
import { createFeedLink, type Subscription, type SubscriptionEvents } from '../feeds/feed-link.ts'
import { createFeedReader } from '../feeds/received.ts'
import type { Link } from '../link.ts'
import type { MqttReaderOptions } from '../mqtt/reader.ts'
import type { ReceivedEvent } from '../session.ts'
import { LINK_TIMINGS, type LinkTimings } from '../timings.ts'
import { LINK_REASONS } from '../../../shared/mesh/link-reasons.ts'

/** Where radios with *UDP broadcast* switched on send what they transmit: UdpMulticastHandler.h of the firmware. */
export const MULTICAST = { group: '224.0.0.69', port: 4403 } as const

/** Datagrams that wait; more are lost, as in the network. */
const MAX_WAITING = 500
/** Networks that come later, such as WLAN after a start, are joined at this interval. */
const JOIN_MS = 30_000

export type UdpLinkOptions = MqttReaderOptions & {
  readonly name: string
  /** The own address in the only network to listen in; null: all of them. */
  readonly localAddress?: string | null
  readonly port?: number
  /** Gets events in order; later ones wait for it. Must not throw. */
  onFrames(batch: readonly ReceivedEvent[]): void | Promise<void>
  /** Called after each change of state. */
  onState?(info: LinkInfo): void
  readonly clock?: Clock
  /** Numbers from 0 to below 1. */
  readonly random?: () => number
  readonly timings?: Partial<LinkTimings>
}

/** Listens to the mesh as its radios repeat it in the local network. It only listens. */
export function createUdpLink(options: UdpLinkOptions): Link {
  const { name, clock = systemClock, random = Math.random, onState } = options
  const timings: LinkTimings = { ...LINK_TIMINGS, ...options.timings }
  const read = createReader(options, clock)
  const open = (events: SubscriptionEvents) => subscribe(options, { clock, read, events })
  return createFeedLink({ kind: 'udp', name, clock, random, timings, open, onState })
}

type Reader = (datagram: Uint8Array) => Promise<ReceivedEvent[]>

function createReader({ keys, openDirect = async () => null }: MqttReaderOptions, clock: Clock): Reader {
  const all = [...keys, DEFAULT_CHANNEL_KEY]
  const read = createFeedReader(clock)
  return async (datagram) => {
    const packet = decodeMulticast(datagram)
    if (packet === null) return []
    const opened = await openMulticast(packet, all, openDirect)
    return read({ ...opened, isInChannel: opened.channelName !== null, gateway: null, isReplayed: false })
  }
}

type Parts = { readonly clock: Clock; readonly read: Reader; readonly events: SubscriptionEvents }

function subscribe(options: UdpLinkOptions, { clock, read, events }: Parts): Subscription {
  const { localAddress = null, port = MULTICAST.port, onFrames } = options
  const socket = createSocket({ type: 'udp4', reuseAddr: true })
  const joining = createTimer(clock)
  const joined = new Set<string>()
  const waiting: Uint8Array[] = []
  let isOver = false
  let isReading = false

  const close = () => {
    if (isOver) return
    isOver = true
    joining.stop()
    waiting.length = 0
    socket.close()
  }
  const end = (reason: string) => {
    if (isOver) return
    close()
    events.onEnd(reason)
  }
  const join = () => {
    for (const address of localAddress === null ? ownAddresses() : [localAddress]) joinOnce(socket, address, joined)
    joining.start(JOIN_MS, join)
  }
  const drain = async () => {
    for (let datagram = waiting.shift(); datagram !== undefined; datagram = waiting.shift()) {
      const batch = await read(datagram)
      if (isOver) return
      if (batch.length > 0) await onFrames(batch)
    }
  }
  socket.on('error', (error) => end(explain(error)))
  socket.on('message', (datagram) => {
    if (isOver || waiting.length >= MAX_WAITING) return
    events.onMessage()
    waiting.push(Uint8Array.from(datagram))
    if (isReading) return
    isReading = true
    drain().then(
      () => {
        isReading = false
        return undefined
      },
      (error: unknown) => end(error instanceof Error ? error.message : 'reading failed'),
    )
  })
  // Bound to the group, so that datagrams to this machine alone do not arrive.
  socket.bind({ port, address: MULTICAST.group }, () => {
    if (isOver) return
    join()
    if (joined.size === 0) return end(LINK_REASONS.no_multicast)
    events.onOpen()
  })
  return { close }
}

function joinOnce(socket: Socket, address: string, joined: Set<string>): void {
  if (joined.has(address)) return
  try {
    socket.addMembership(MULTICAST.group, address)
    joined.add(address)
  } catch {
    // A network without multicast.
  }
}

/** One address of each network, also of the one within this machine. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(
    (addresses = []) => addresses.find(({ family }) => family === 'IPv4')?.address ?? [],
  )
}

function explain(error: Error): string {
  const code = 'code' in error ? error.code : null
  if (code === 'EADDRINUSE') return LINK_REASONS.udp_taken
  if (code === 'EACCES' || code === 'EPERM') return LINK_REASONS.udp_forbidden
  return error.message
}
