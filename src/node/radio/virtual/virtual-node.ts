import type { Socket } from 'node:net'
import { fromBinary } from '@bufbuild/protobuf'
import type { PortViewer } from '../../../app/accounts/access/port-viewer.ts'
import type { Ports } from '../../../app/base/context.ts'
import type { Log } from '../../../app/base/log.ts'
import type { VirtualNodeOptions } from '../../../app/connections/virtual-node-options.ts'
import type { LinkInfo, PortInfo } from '../../../app/mesh/radios/radio.ts'
import type { Store } from '../../../db/store.ts'
import { readAdminVariant } from '../../../meshtastic/link/admin-variants.ts'
import { encodeFromRadio, XMODEM_REFUSAL } from '../../../meshtastic/link/app-messages.ts'
import { createPacketIds as createIdMaker } from '../../../meshtastic/link/to-radio.ts'
import { type MeshPacket } from '../../../meshtastic/gen/packet_pb.ts'
import { Routing_Error, RoutingSchema } from '../../../meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../meshtastic/gen/ports_pb.ts'
import { type FromRadio, type ToRadio, ToRadioSchema } from '../../../meshtastic/gen/stream_pb.ts'
import { RADIO_CHANNELS } from '../../../meshtastic/channel-identity.ts'
import { createTimer, type Clock } from '../../clock.ts'
import type { Configurator } from '../device-config/configurator.ts'
import type { RadioLink } from '../link.ts'
import type { ReceivedEvent } from '../session.ts'
import type { Transmitter } from '../sending/transmitter.ts'
import { marksOf, PASSED_ANSWERS } from './admin-requests.ts'
import { type AppClient, createAppClient } from './app-client.ts'
import { listenForApps } from './app-listener.ts'
import { createAppPackets } from './app-packets.ts'
import { createRadioCopy, identityOf, settingsOf } from './copy.ts'
import { handshakeFor } from './handshake.ts'
import { createPacketIds } from './packet-ids.ts'
import { createRequestRecords } from './records.ts'
import { createReplies } from './replies.ts'
import { showPacket } from './shown.ts'
import { createSightReader, type Sight } from './sight.ts'

const MAX_APPS = 8
/** When all places are taken, an app that was silent for so long makes room. */
const SILENT_MS = 120_000
/** How long the copy is trusted while the radio is not connected. */
const TRUSTED_MS = 60_000
/** The same request for everything is answered once in this time. */
const SAME_NONCE_MS = 5000
/** How often the rights of the viewer are checked, besides before everything that is shown. */
const RECHECK_MS = 3000
/** How often refused connections are logged. */
const LOG_MS = 60_000
/** Apps that left, whose packets may still be answered. */
const MAX_GONE = 100

export type VirtualNodeNeeds = {
  readonly link: Pick<RadioLink, 'info' | 'send' | 'listen' | 'expectRestart' | 'readAgain'>
  readonly transmitter: Pick<Transmitter, 'reserveForApp'>
  /** Keeps changes of settings by apps and by the page apart. */
  readonly claimSettings: Configurator['claimForApp']
  readonly store: Store
  readonly options: VirtualNodeOptions
  /** The viewer of the port with current rights; null: nobody may see anything there. */
  readonly findViewer: () => Promise<PortViewer | null>
  /** Names of the configured radios, in their order. */
  readonly radios: readonly string[] | null
  readonly events: Ports['events']
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
  readonly clock: Clock
  /** Numbers from 0 to below 1. */
  readonly random: () => number
}

/** A port where Meshtastic apps connect as to the radio of a link. Decision: docs/decisions/apps-are-viewers.md */
export type VirtualNode = {
  info(): PortInfo
  /** Closes the port and its connections. */
  close(): Promise<void>
}

const REBOOTED = encodeFromRadio({ case: 'rebooted', value: true })
const LOCKED = 'the radio is locked'
const UNREAD = 'the radio has not told its settings yet'
const CHANGED = 'the radio is another one now: its number, key or firmware has changed'
const NOBODY = 'the user of this port may not read nodes and messages'

/**
 * Opens the port. The link may already be connected: then the radio is read again. Throws `RangeError` for every
 * address of this machine without a list of networks.
 */
export function openVirtualNode(needs: VirtualNodeNeeds): VirtualNode {
  const { link, store, options, log, clock, events } = needs
  const source = link.info().name
  const copy = createRadioCopy()
  const ids = createPacketIds()
  const nextId = createIdMaker(needs.random)
  let identities = new Map<number, string | null>()
  /** Those of a handshake that still lasts. */
  let read: Map<number, string | null> | null = null
  const apps = new Map<number, AppClient>()
  const asked = new Map<number, { readonly nonce: number; readonly at: number }>()
  const gone = new Map<string, number>()
  const distrust = createTimer(clock)
  const recheck = createTimer(clock)
  const logging = createTimer(clock)
  let lastApp = 0
  let isClosed = false
  let downSince: number | null = link.info().state === 'connected' ? null : clock.now()
  let hasViewer = true
  let seen = ''
  let chain = Promise.resolve()

  const later = (task: () => Promise<void>) => {
    chain = chain.then(task).catch((error: unknown) => log.error('A request of an app failed', { link: source, error }))
  }
  const own = () => copy.parts()?.myInfo.myNodeNum ?? 0
  const replies = createReplies({ link, clock, nextId, own })
  const readSight = createSightReader({
    store,
    source,
    radios: needs.radios,
    findViewer: needs.findViewer,
    now: clock.now,
    identities: () => identities,
  })
  const packets = createAppPackets({
    link,
    transmitter: needs.transmitter,
    claimSettings: needs.claimSettings,
    store,
    options,
    copy,
    clock,
    nextId,
    ids,
    replies,
    records: createRequestRecords(() => ({ radio: source, port: listener.port() ?? options.port })),
    events,
    later,
  })

  /** Why the copy may not be shown now; null: it may. */
  const findDistrust = (): string | null => {
    const { state, reason } = link.info()
    const parts = copy.parts()
    if (copy.isLocked()) return LOCKED
    if (state === 'connected' && reason !== null) return reason
    if (parts === null) return state === 'connected' ? UNREAD : (reason ?? UNREAD)
    if (copy.latestNum() !== parts.myInfo.myNodeNum) return CHANGED
    const isLost = downSince !== null && clock.now() - downSince >= TRUSTED_MS
    return isLost ? (reason ?? 'the radio is not connected') : null
  }
  const endAll = (why: string) => {
    if (apps.size > 0) log.info('All apps are disconnected', { link: source, reason: why })
    for (const app of apps.values()) app.end(...(app.isReady() ? [replies.notice(why)] : []))
  }
  const endUntrusted = () => {
    const why = findDistrust()
    if (why !== null) endAll(why)
  }
  /** What the viewer sees now; null, and all connections are closed: nothing. */
  const look = async (): Promise<Sight | null> => {
    const sight = await readSight()
    hasViewer = sight !== null
    if (sight === null) {
      endAll(NOBODY)
      return null
    }
    const now = describe(sight)
    // Their lists of channels and nodes are outdated: they read them again. The rest of a handshake would be, too.
    if (seen !== '' && seen !== now) startOver()
    seen = now
    return sight
  }
  const startOver = () => {
    for (const app of apps.values()) {
      if (app.isReading()) app.end()
      else if (app.isReady()) app.push(REBOOTED, 'packet')
    }
  }
  const watch = () =>
    recheck.start(RECHECK_MS, () => {
      later(async () => void (await look()))
      if (apps.size > 0) watch()
    })

  const accept = (socket: Socket, address: string) => {
    if (findDistrust() !== null || !hasRoom()) return void socket.destroy()
    lastApp += 1
    const app: AppClient = createAppClient({
      id: lastApp,
      address,
      socket,
      clock,
      onMessage: (message) => take(app, message),
      onEnd(why) {
        apps.delete(app.id)
        asked.delete(app.id)
        gone.delete(address)
        gone.set(address, app.id)
        const [oldest] = gone.keys()
        if (gone.size > MAX_GONE && oldest !== undefined) gone.delete(oldest)
        if (why === null) log.info('An app has left', { link: source, address })
        else log.warn('An app was dropped', { link: source, address, reason: why })
      },
    })
    const before = gone.get(address)
    if (before !== undefined) ids.hand(before, app.id)
    gone.delete(address)
    apps.set(app.id, app)
    log.info('An app is connected', { link: source, address })
    later(async () => void (await look()))
    watch()
  }
  const hasRoom = () => {
    if (apps.size < MAX_APPS) return true
    const oldest = [...apps.values()].toSorted((a, b) => a.lastHeardAt() - b.lastHeardAt())[0]
    if (oldest === undefined || clock.now() - oldest.lastHeardAt() < SILENT_MS) return false
    oldest.end()
    return true
  }
  const listener = listenForApps({
    host: options.host,
    port: options.port,
    allowedNetworks: options.allowedNetworks,
    clock,
    onApp: accept,
    onState() {
      const { state, reason, port } = info()
      if (state === 'failed') log.warn('The port for apps cannot be opened', { link: source, reason })
      else log.info('Apps can connect to the radio', { link: source, host: options.host, port })
    },
  })

  const take = (app: AppClient, { payloadVariant: { case: variant, value }, $unknown: others }: ToRadio) => {
    switch (variant) {
      case 'heartbeat':
        return replies.status(app, 0)
      case 'disconnect':
        return app.end()
      case 'wantConfigId':
        return later(() => begin(app, value))
      case 'packet':
        return later(async () => {
          const sight = await look()
          if (sight !== null && apps.has(app.id)) await packets.take(app, value, sight)
        })
      case 'mqttClientProxyMessage':
        return later(async () => {
          const sight = await look()
          if (sight !== null && findProxy() === app) packets.proxy(value, sight)
        })
      default:
        if (others?.some(({ no }) => no === XMODEM)) app.push(XMODEM_REFUSAL, 'reply')
    }
  }
  const begin = async (app: AppClient, nonce: number) => {
    if (!apps.has(app.id)) return
    const last = asked.get(app.id)
    const now = clock.now()
    if (last?.nonce === nonce && now - last.at < SAME_NONCE_MS) return
    asked.set(app.id, { nonce, at: now })
    const sight = await look()
    const parts = copy.parts()
    if (sight === null || parts === null || !apps.has(app.id)) return
    if (findDistrust() !== null) return endUntrusted()
    app.begin(handshakeFor(parts, sight, options, nonce))
  }
  const findProxy = () => [...apps.values()].find((app) => app.isReady()) ?? null

  const show = (packet: MeshPacket, { isSent, except = null }: { isSent: boolean; except?: number | null }) => {
    if (apps.size === 0) return
    // Those that are connected now: a later one would get an old packet.
    const present = [...apps.values()].filter(({ id }) => id !== except)
    later(async () => {
      const sight = await look()
      if (sight === null) return
      const { sharesChannelKeys } = options
      const value = showPacket(packet, sight, { own: own(), isSent, sharesChannelKeys, now: clock.now() })
      if (value === null) return
      const payload = encodeFromRadio({ case: 'packet', value })
      for (const app of present) app.push(payload, 'packet')
    })
  }
  const hear = (packet: MeshPacket) => {
    const { from, to, rxRssi, payloadVariant } = packet
    const data = payloadVariant.case === 'decoded' ? payloadVariant.value : null
    if (data === null || data.requestId === 0 || to !== own() || !ANSWERS.has(data.portnum)) {
      return show(packet, { isSent: false })
    }
    // Our own radio reports its answers without a signal strength: anything else is forged.
    const isOwn = from === own()
    if (isOwn && rxRssi !== undefined) return
    const owner = apps.get(ids.ownerOf(data.requestId, clock.now()) ?? -1)
    if (data.portnum === PortNum.ROUTING_APP) {
      if (isOwn) packets.onAdminAnswer(data.requestId, routingErrorOf(data.payload))
    } else if (!isOwn || !PASSED_ANSWERS.has(readAdminVariant(data.payload)?.number ?? 0)) return
    if (owner === undefined) return
    later(async () => {
      const sight = await look()
      if (sight === null || !(isOwn || sight.seesNode(from))) return
      owner.push(encodeFromRadio({ case: 'packet', value: packet }), 'packet')
    })
  }
  const unlisten = link.listen({
    onFrames: (batch: readonly ReceivedEvent[]) => {
      for (const { event } of batch) {
        if (event.type === 'my-info') read = new Map()
        if (event.type === 'channel') (read ?? identities).set(event.channel.index, event.channel.identity)
        if (event.type !== 'config-complete' || read === null) continue
        identities = read
        read = null
      }
    },
    onMessage: (message: FromRadio) => {
      const before = copy.parts()
      const { isRead, isOld } = copy.take(message, clock.now())
      const after = copy.parts()
      if (isRead && before !== null && after !== null) compare(before, after)
      const { payloadVariant } = message
      if (payloadVariant.case === 'myInfo' || payloadVariant.case === 'lockdownStatus') endUntrusted()
      if (payloadVariant.case === 'packet' && !isOld) hear(payloadVariant.value)
      if (payloadVariant.case === 'clientNotification') tell(payloadVariant)
      if (payloadVariant.case !== 'mqttClientProxyMessage' || !options.proxiesMqtt) return
      later(async () => {
        const sight = await look()
        if (sight?.seesEverything() === true) findProxy()?.push(encodeFromRadio(payloadVariant), 'packet')
      })
    },
    onState({ state }: LinkInfo) {
      if (state === 'connected') {
        downSince = null
        distrust.stop()
      } else if (downSince === null) {
        downSince = clock.now()
        distrust.start(TRUSTED_MS, endUntrusted)
      }
      endUntrusted()
    },
    onSent(message) {
      const { payloadVariant } = fromBinary(ToRadioSchema, message)
      if (payloadVariant.case !== 'packet') return
      noteSent(payloadVariant.value)
    },
  })
  const compare = (before: NonNullable<ReturnType<typeof copy.parts>>, after: typeof before) => {
    if (identityOf(before) !== identityOf(after)) return endAll(CHANGED)
    if (settingsOf(before) !== settingsOf(after)) startOver()
  }
  /** A notification about a packet is for the app that sent it, any other for those who see everything. */
  const tell = (payloadVariant: Extract<FromRadio['payloadVariant'], { case: 'clientNotification' }>) => {
    const { replyId } = payloadVariant.value
    const payload = encodeFromRadio(payloadVariant)
    if (replyId !== 0) return apps.get(ids.ownerOf(replyId, clock.now()) ?? -1)?.push(payload, 'packet')
    const present = [...apps.values()]
    later(async () => {
      if ((await look())?.seesEverything() !== true) return
      for (const app of present) app.push(payload, 'packet')
    })
  }
  /** What somebody sends through the radio is, for all others, sent by the radio. */
  const noteSent = (packet: MeshPacket) => {
    const data = packet.payloadVariant.case === 'decoded' ? packet.payloadVariant.value : null
    if (data?.portnum === PortNum.ADMIN_APP) return noteMarks(data.payload)
    const echo = { ...packet, from: own(), rxTime: Math.floor(clock.now() / 1000), hopStart: packet.hopLimit }
    show(echo, { isSent: true, except: ids.ownerOf(packet.id, clock.now()) })
  }
  const noteMarks = (payload: Uint8Array) => {
    const variant = readAdminVariant(payload)
    const nodeNum = variant?.value ?? null
    if (nodeNum === null) return
    if (variant?.number === 38) copy.forget(nodeNum)
    const parts = copy.parts()
    const marks = variant === null || parts === null ? null : marksOf(variant, parts)
    if (marks !== null) copy.mark(nodeNum, marks)
  }
  const logRefused = () => {
    for (const [reason, connections] of listener.takeRefused()) {
      log.warn('Apps were refused', { link: source, reason, connections })
    }
    logging.start(LOG_MS, logRefused)
  }
  const info = (): PortInfo => {
    const about = { clients: apps.size, port: isClosed ? null : listener.port() }
    if (isClosed) return { ...about, state: 'closed', reason: null }
    const problem = listener.problem()
    if (problem !== null) return { ...about, state: 'failed', reason: problem }
    const reason = findDistrust() ?? (hasViewer ? null : NOBODY)
    return { ...about, state: reason === null ? 'open' : 'waiting', reason }
  }
  logRefused()
  later(async () => void (await look()))
  // What it told before is not known here.
  link.readAgain()
  return {
    info,
    async close() {
      isClosed = true
      unlisten()
      for (const timer of [distrust, recheck, logging]) timer.stop()
      packets.stop()
      for (const app of apps.values()) app.end()
      await listener.close()
      await chain
    },
  }
}

/** The field of `ToRadio` with a file. */
const XMODEM = 5

/** Answers that are only for whoever asked. */
const ANSWERS: ReadonlySet<PortNum> = new Set([PortNum.ROUTING_APP, PortNum.ADMIN_APP])

function routingErrorOf(payload: Uint8Array): Routing_Error {
  try {
    const { variant } = fromBinary(RoutingSchema, payload)
    return variant.case === 'errorReason' ? variant.value : Routing_Error.BAD_REQUEST
  } catch {
    return Routing_Error.BAD_REQUEST
  }
}

/** Differs if an app sees other channels, nodes, settings or contents. */
function describe(sight: Sight): string {
  const slots = Array.from({ length: RADIO_CHANNELS }, (_, slot) => sight.canReadSlot(slot))
  const { user, permissions, precisionBits, view } = sight.viewer
  const { channels, direct } = view
  // From anonymous callers, nodes are hidden and shown all the time, as they are heard.
  return JSON.stringify([slots, permissions, precisionBits, channels, direct, user === null ? [] : [...view.hidden]])
}
