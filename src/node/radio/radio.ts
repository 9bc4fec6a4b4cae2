import type { HearBatch } from '../../app/mesh/heard/heard.ts'
import type { NewEvent } from '../../app/mesh/live/event.ts'
import type { ClockWatch } from '../../app/base/pacing/clock.ts'
import type { Disk } from '../../app/base/pacing/disk.ts'
import type { LinkInfo, PortInfo, Radio } from '../../app/mesh/radios/radio.ts'
import type { Ports } from '../../app/base/context.ts'
import {
  type LostChange,
  loseChanges,
  noteDuringChange,
  settleChange,
  storeSections,
} from '../../app/device-config/records.ts'
import {
  loseRemoteActions,
  noteRemoteStep,
  storeRemoteFirmware,
  storeRemoteSection,
} from '../../app/device-config/remote/records.ts'
import { remoteEvent } from '../../app/device-config/remote/event.ts'
import { AppError } from '../../app/http/errors.ts'
import { noteWithdrawn } from '../../app/automation/runs.ts'
import { addToOutbox } from '../../app/mesh/ingest/outbox.ts'
import { BROADCAST } from '../../meshtastic/node-id.ts'
import { decodeFromRadio, echoSent } from '../../meshtastic/link/from-radio.ts'
import { type RadioEvent, toRadioEvent } from '../../meshtastic/radio-event.ts'
import { openCollector } from '../collector/open-collector.ts'
import type { DeliveryEvent } from '../../app/mesh/messages/delivery.ts'
import { recordAnswer } from '../../app/mesh/messages/answers.ts'
import { loseUnfinished, type PacketKey, recordDelivery } from '../../app/mesh/messages/delivery-records.ts'
import { announce, logExcess } from '../../app/mesh/ingest/announce.ts'
import { announceListed, announceNodes, readDelivery } from '../../app/mesh/live/details.ts'
import { changeEvent, linkEvent } from '../../app/mesh/live/events.ts'
import { alertsOnBatch } from '../../app/alerts/findings/on-batch.ts'
import { tellOwner } from '../../app/mesh/live/tell-owner.ts'
import { createIngest } from '../../app/mesh/ingest/ingest.ts'
import { demandRoom } from '../../app/mesh/ingest/trust/room.ts'
import { type Batcher, createBatcher } from './batcher.ts'
import { type Clock, systemClock } from '../clock.ts'
import { hearClocks } from './clocks.ts'
import { type Configured, configuredLinks } from './configured.ts'
import { type ConfiguredRadio, fenced } from './connection.ts'
import { type Configurator, createConfigurator } from './device-config/configurator.ts'
import { createAdministrator } from './device-config/remote/administrator.ts'
import { type Asker, createAsker } from './device-config/remote/asker.ts'
import { createForgetting, type Forgetting } from './node-list/forgetting.ts'
import { createHearings, type Hearings } from './hearings.ts'
import { type ConfiguredFeed, createLink, type Link, type RadioLink } from './link.ts'
import { createLinkSet } from './link-set.ts'
import { createRecordQueue, type RecordQueue } from './record-queue.ts'
import { createMarking, type Marking } from './node-list/marking.ts'
import { createOwnUser, type OwnUser } from './node-list/own-user.ts'
import type { ReceivedEvent } from './session.ts'
import { environmentLinks, wantedLinks } from './stored.ts'
import { createTransmitter, type Transmitter } from './sending/transmitter.ts'
import { createTelling, type Told } from './telling.ts'
import { COMMANDED, type PacketKind } from './sending/queue.ts'
import { createPortSet } from './virtual/port-set.ts'
import type { VirtualNodeNeeds } from './virtual/virtual-node.ts'
import { findPortViewer } from '../../app/accounts/access/port-viewer.ts'
import type { VirtualNodeOptions } from '../../app/connections/virtual-node-options.ts'
import { isOpenRemote } from '../../shared/mesh/remote-states.ts'

/** The radio links of a Node process. */
export type NodeRadio = Radio & {
  virtualNodes(): ReadonlyMap<string, PortInfo>
  /** Connects. `onHeard` is called with each batch once it is stored; it must not throw. */
  start(onHeard?: HearBatch): void
  /**
   * Disconnects, and resolves when all received events are stored. `lost`: another process already has the radios and
   * does not know which packets wait here.
   */
  close(why?: 'lost'): Promise<void>
}

type Needs = Pick<Ports, 'config' | 'store' | 'log'> & {
  /** The live events that it raises. */
  readonly events?: Ports['events']
  readonly meter?: Ports['meter']
  /** Whether this process may use the radios. Checked before anything is written to one. */
  readonly mayWrite?: () => boolean
  readonly clock?: Clock
  readonly disk?: Disk
  /** Gets the times that other clocks report. */
  readonly clockWatch?: ClockWatch
  /** Numbers from 0 to below 1. */
  readonly random?: () => number
  /** For the users of virtual nodes. */
  readonly providers?: Ports['providers']
  /** The radios that apps can connect to, by the name of their source. */
  readonly virtualNodes?: ReadonlyMap<string, VirtualNodeOptions>
}

type Kind = LinkInfo['kind']

type OpenedRadio = {
  readonly link: RadioLink
  readonly transmitter: Transmitter
  readonly configurator: Configurator
  readonly hearings: Hearings
  readonly forgetting: Forgetting
  readonly marking: Marking
  readonly ownUser: OwnUser
  readonly asker: Asker
  /** As the port for apps uses it: it does not interrupt a change of settings by reading the radio again. */
  readonly forApps: Pick<VirtualNodeNeeds, 'link' | 'transmitter' | 'claimSettings'>
}
type Opened = OpenedRadio | { readonly link: Link }

/** What all links share. */
type Shared = Pick<Needs, 'store' | 'log'> & {
  readonly mayWrite: () => boolean
  readonly publish: (events: readonly NewEvent[]) => void
  readonly tellLink: (info: LinkInfo) => void
  readonly tellNodes: (nums: readonly number[]) => Promise<void>
  /** Nodes were marked on the radio of a source, and now are marked here. */
  readonly onMarked: (source: string, nums: readonly number[]) => Promise<void>
  readonly clock: Clock
  readonly random: () => number
  readonly batcher: Batcher
  readonly records: RecordQueue
  /** Called with a packet that was passed to the radio `nodeNum` of a source to send. */
  readonly onSent: (source: string, message: Uint8Array, kind: PacketKind, nodeNum: number) => void
}

/**
 * The radios and brokers that the configuration names, or a simulated radio when DEMO is true. From `start` on it
 * stores what they report.
 */
export function openRadio(needs: Needs): NodeRadio {
  const { config, store, log, events = null, meter = null, clock = systemClock, random = Math.random } = needs
  const { mayWrite = () => true } = needs
  const publish: Shared['publish'] = (news) => events?.publish(news)
  // When a process has lost the radios, its disconnection is not reported, because another process has them.
  const tellLink = (info: LinkInfo) => {
    if (mayWrite()) publish([linkEvent(info)])
  }
  const collector = openCollector(needs)
  const { replaced } = configuredLinks(config)
  let names = environmentLinks({ config }).names
  const makeIngest = () =>
    createIngest(store, {
      collector,
      radios: names,
      onBatch: alertsOnBatch,
      onExcess: (excess) => logExcess(log, excess),
      onCounted: (counts) => meter?.countBatch(counts),
      onAlerts: (owners) => owners.forEach((ownerId) => tellOwner({ events }, ownerId)),
    })
  let ingest = makeIngest()
  let tellHeard: HearBatch = () => {}
  const tellStored = async ({ news, batch }: Told) => {
    await announce({ store, log, events, meter }, { news })
    const listed = batch.flatMap(({ event }) => (event.type === 'node-info' ? [event.node.nodeNum] : []))
    await announceListed({ store, events }, listed).catch((error: unknown) => {
      log.error('Pages are not told about the nodes of a radio', { error })
    })
  }
  const telling = createTelling(clock, (told) => void tellStored(told))
  const batcher = createBatcher({
    ingest: {
      store: async (batch) => {
        demandRoom(needs.disk ?? null)
        return ingest.store(batch)
      },
    },
    log,
    clock,
    onStored(stored, batch) {
      telling.add({ news: stored.news, batch })
      if (needs.clockWatch !== undefined) hearClocks(needs.clockWatch, batch)
      for (const { source, event } of batch) {
        if (event.type === 'config-complete') findRadio(source.name)?.marking.stored()
      }
      tellHeard(batch, stored.suspected)
    },
  })
  const records = createRecordQueue(log, clock)
  // The radio does not report packets that it was told to send, so they are recorded here. Otherwise a collector's
  // target would miss them.
  const onSent: Shared['onSent'] = (source, message, kind, nodeNum) => {
    const raw = collector === null || kind !== 'text' ? null : echoSent(message, nodeNum)
    if (raw === null) return
    const receivedAt = clock.now()
    records.add(async () => {
      await addToOutbox(store, { source, receivedAt, raw })
      collector?.onStored(1)
    })
  }
  const tellNodes: Shared['tellNodes'] = (nums) => announceNodes({ store, events }, nums)
  const onMarked: Shared['onMarked'] = async (source, nums) => {
    await tellNodes(nums)
    const others = radios().filter(({ link }) => link.info().name !== source)
    for (const { marking } of others) nums.forEach(marking.tell)
  }
  const told = { publish, tellLink, tellNodes, onMarked, onSent }
  const shared: Shared = { store, log, mayWrite, clock, random, batcher, records, ...told }
  if (replaced.length > 0) {
    log.warn('The configured radios and brokers are not used while DEMO is true', { kinds: replaced })
  }
  const set = createLinkSet<Configured, Opened>(
    (configured) => ('connect' in configured ? openLink(configured, shared) : { link: openFeed(configured, shared) }),
    closeLink,
  )
  set.want(environmentLinks({ config }).wanted)
  const links = () => set.all().map(({ link }) => link)
  const radios = () => set.all().filter((one) => 'transmitter' in one)
  const appRadios = () => radios().map(({ forApps }) => forApps)
  const ports = createPortSet({
    store,
    findViewer: (userId) => findPortViewer({ store, config, providers: needs.providers ?? [], now: clock.now }, userId),
    names: () => names,
    events,
    log,
    clock,
    random,
  })
  const remote = createAdministrator({
    radios: () =>
      radios().map(({ configurator, asker, transmitter }) => ({
        device: configurator.device,
        asker,
        lora: () => transmitter.lora(),
      })),
    clock,
    onRead: (nodeNum, section) => records.add(() => storeRemoteSection(store, nodeNum, section)),
    onFirmware: (nodeNum, version) => records.add(() => storeRemoteFirmware(store, nodeNum, version)),
    onStep: (action, step) =>
      records.keep(async () => {
        await noteRemoteStep(store, action.id, step, isOpenRemote(step.state) ? null : clock.now())
        publish([remoteEvent(action, step)])
        const { state, reason, detail } = step
        log.info('Remote administration', { node: action.nodeNum, section: action.section, state, reason, detail })
      }),
  })
  // Of several processes on one database, only the one with the radios knows which packets are being sent.
  let hasRecovered = false
  /** Changes that were interrupted, until their radio is there to be restarted. */
  const lost: LostChange[] = []
  const recover = (made: readonly Opened[]) => {
    const found = made.filter((one) => 'transmitter' in one)
    if (found.length === 0) return
    if (!hasRecovered) {
      hasRecovered = true
      records.add(() => loseUnfinished(store))
      records.add(() => loseRemoteActions(store, clock.now()))
      records.add(async () => void lost.push(...(await loseChanges(store))))
    }
    records.add(async () => {
      for (const { configurator } of found) {
        const own = lost.filter(({ source }) => source === configurator.device.source)
        for (const change of own) {
          lost.splice(lost.indexOf(change), 1)
          const { source, section } = change
          log.warn('A change of settings was interrupted: the radio is restarted when it connects', { source, section })
        }
        configurator.recover(own)
      }
    })
  }
  let phase: 'opened' | 'started' | 'closed' = 'opened'
  const apply = async () => {
    const onError = (error: unknown) => log.error('The certificate of a radio could not be stored', { error })
    const now = await wantedLinks({ store, config, now: clock.now, onPinned: set.rekey, onError })
    if (phase !== 'started') return
    if (now.names.join('\n') !== names.join('\n')) {
      names = now.names
      ingest = makeIngest()
    }
    const { made, closed } = set.want(now.wanted)
    // What was being changed over a connection that was closed is ended by the next one to its radio.
    if (closed.length > 0) records.add(async () => void lost.push(...(await loseChanges(store, closed))))
    recover(made)
    for (const { link } of made) link.start()
    ports.want(appRadios(), new Map([...now.virtualNodes, ...(needs.virtualNodes ?? [])]))
  }
  /** One change after the other. */
  let applied: Promise<void> = Promise.resolve()
  const applyConnections = () => (applied = applied.catch(() => {}).then(apply))
  const findRadio = (source: string) => radios().find(({ link }) => link.info().name === source)
  const findAble = () => radios().find(({ transmitter }) => transmitter.canSend()) ?? radios()[0]
  return {
    start(onHeard = () => {}) {
      tellHeard = onHeard
      phase = 'started'
      recover(set.all())
      ports.want(appRadios(), needs.virtualNodes ?? new Map())
      for (const link of links()) link.start()
      applyConnections().catch((error: unknown) => log.error('The connections could not be read', { error }))
    },
    applyConnections,
    links: () => links().map((link) => link.info()),
    devices: () => radios().map(({ configurator }) => configurator.device),
    remote,
    waiting: batcher.waiting,
    sending: () => radios().reduce((sum, { transmitter }) => sum + transmitter.waiting(), 0),
    sendingOf: (source) => findRadio(source)?.transmitter.waiting() ?? 0,
    collector: () => collector?.info() ?? null,
    hearings: (nodeNum) =>
      radios().flatMap(({ link, hearings }) => {
        const heard = hearings.find(nodeNum)
        return heard === null ? [] : [{ source: link.info().name, ...heard }]
      }),
    reserve(kind, { radio = null, rule = null, command = null } = {}) {
      const able = radio === null ? findAble() : findRadio(radio)
      if (able === undefined) throw new AppError('radio_unavailable', 'No radio is configured')
      if (command === null) return able.transmitter.reserve(kind, rule)
      const { packetId, onDelivery, isOver } = command
      return able.transmitter.reserveForApp({ kind, app: COMMANDED, packetId, onDelivery, isOver })
    },
    expire(packetId) {
      for (const { transmitter } of radios()) transmitter.expire(packetId)
    },
    withdraw(isStale) {
      for (const { transmitter } of radios()) transmitter.withdraw(isStale)
    },
    forgetNode(nodeNum) {
      for (const { forgetting } of radios()) forgetting.forget(nodeNum)
    },
    markNode(nodeNum) {
      for (const { marking } of radios()) marking.tell(nodeNum)
    },
    ownUser: (source) => findRadio(source)?.ownUser.read() ?? null,
    lora: () => findAble()?.transmitter.lora() ?? null,
    virtualNodes: ports.infos,
    async close(why) {
      phase = 'closed'
      await applied.catch(() => {})
      await ports.close()
      remote.stop()
      for (const { transmitter, configurator, marking } of radios()) {
        marking.stop()
        if (why === 'lost') transmitter.abandon()
        transmitter.stop()
        configurator.stop()
      }
      for (const link of links()) link.stop()
      await batcher.close()
      telling.end()
      await records.done()
      await collector?.close()
    },
  }
}

/** Closes one connection while the others go on. What waited to be sent is told as not sent. */
function closeLink(opened: Opened): void {
  if ('transmitter' in opened) {
    // While everything still listens, so that what is under way is told as lost.
    opened.link.stop()
    opened.marking.stop()
    opened.asker.stop()
    opened.transmitter.abandon()
    opened.transmitter.stop()
    opened.configurator.stop()
  } else opened.link.stop()
}

function openLink(
  { kind, name, connect }: ConfiguredRadio,
  { store, log, mayWrite, clock, random, batcher, records, ...told }: Shared,
): OpenedRadio {
  const { publish, tellLink, tellNodes, onMarked, onSent } = told
  const tell = createTeller(log)
  const hearings = createHearings()
  const later = (run: () => Promise<void>) => records.add(run)
  const unfenced = createLink({
    name,
    kind,
    connect: fenced(connect({ clock }), mayWrite),
    clock,
    random,
    onFrames: (batch) => take(batcher, kind, name, batch),
    onState: tell,
  })
  // A packet that may not be written counts as not sent.
  const link: RadioLink = { ...unfenced, send: (message) => mayWrite() && unfenced.send(message) }
  const forgetting = createForgetting({ store, link, random, later })
  const marking = createMarking({ store, link, clock, random, later, onChanged: (nums) => onMarked(name, nums) })
  const ownUser = createOwnUser()
  const noteDelivery = async (key: PacketKey, event: DeliveryEvent) => {
    const asked = await recordDelivery(store, key, event)
    if (asked !== null) return tellNodes([asked])
    if (event.type === 'withdrawn') await noteWithdrawn(store, key, clock.now())
    publish(await readDelivery(store, key))
  }
  const asker: Asker = createAsker({ clock, reserve: () => transmitter.reserve('remote', null) })
  const transmitter = createTransmitter({
    link,
    clock,
    random,
    onDelivery(key, event) {
      if (asker.owns(key.packetId)) asker.note(key.packetId, event)
      else records.add(() => noteDelivery(key, event))
    },
    onHandOver(key, then) {
      if (!asker.owns(key.packetId)) records.add(() => noteDelivery(key, { type: 'written' }).finally(then))
      else {
        asker.note(key.packetId, { type: 'written' })
        then()
      }
    },
    onAnswer: (key, answer) =>
      records.add(async () => {
        const asked = await recordAnswer(store, key, answer)
        if (asked === BROADCAST) publish(await readDelivery(store, key))
        else if (asked !== null) await tellNodes([asked])
      }),
    onSent(message, sentKind, nodeNum) {
      onSent(name, message, sentKind, nodeNum)
      // What a radio was told to share is stored as if it reported it, by the same rules as the words of others.
      const echo = sentKind === 'waypoint' ? echoSent(message, nodeNum) : null
      if (echo !== null) take(batcher, kind, name, toReceived(echo, clock.now()))
    },
  })
  const configurator = createConfigurator({
    source: name,
    kind,
    link,
    clock,
    random,
    onRead: (sections) => records.add(() => storeSections(store, { kind, name }, sections, clock.now())),
    onOutcome: ({ id, section }, outcome, isFinal) =>
      records.keep(async () => {
        await settleChange(store, id, outcome, isFinal ? clock.now() : null)
        publish([changeEvent(name, { id, section, ...outcome })])
        log.info('Configuration change', { source: name, section, state: outcome.state, reason: outcome.reason })
      }),
  })
  const hearWord = ({ level, message, packetId, receivedAt }: Extract<RadioEvent, { type: 'notification' }>) => {
    log[QUIET_LEVELS.has(level) ? 'info' : 'warn']('The radio says', {
      link: name,
      severity: level,
      words: message,
      packetId,
    })
    if (packetId === null) records.add(() => noteDuringChange(store, name, message, receivedAt))
    tellLink(link.info())
  }
  unfenced.listen({
    onMessage(message) {
      configurator.take(message)
      ownUser.take(message)
      asker.take(message)
    },
    onFrames(batch) {
      for (const { event } of batch) {
        transmitter.observe(event)
        hearings.observe(event)
        configurator.observe(event)
        forgetting.observe(event)
        marking.observe(event)
        if (event.type === 'notification') hearWord(event)
      }
    },
    onState(info) {
      transmitter.onState(info)
      configurator.onState(info)
      marking.onState(info)
      tellLink(info)
    },
  })
  const readAgain = () => !configurator.isBusy() && link.readAgain()
  const forApps = { link: { ...link, readAgain }, transmitter, claimSettings: configurator.claimForApp }
  return { link, transmitter, configurator, hearings, forgetting, marking, ownUser, asker, forApps }
}

function openFeed({ kind, name, open }: ConfiguredFeed, shared: Shared): Link {
  const { store, log, mayWrite, tellLink, clock, random, batcher } = shared
  const tell = createTeller(log)
  return open({
    store,
    clock,
    random,
    // A broker sends everything to each process, so the process with the radios has already heard events that arrive
    // late here.
    onFrames(batch) {
      if (mayWrite()) take(batcher, kind, name, batch)
      // A flood waits at the broker, not in memory.
      return batcher.room()
    },
    onState(info) {
      tell(info)
      tellLink(info)
    },
  })
}

/** For data from a radio; other failures need attention. */
const QUIET_LEVELS: ReadonlySet<string> = new Set(['UNSET', 'TRACE', 'DEBUG', 'INFO'])

function toReceived(raw: Uint8Array, now: number): ReceivedEvent[] {
  const message = decodeFromRadio(raw)
  return message === null ? [] : [{ event: toRadioEvent(message, now, false), raw }]
}

function take(batcher: Batcher, kind: Kind, name: string, batch: readonly ReceivedEvent[]): void {
  batcher.push(batch.map(({ event, raw }) => ({ source: { kind, name }, event, raw })))
}

function createTeller(log: Needs['log']): (info: LinkInfo) => void {
  let told = ''
  return ({ name, state, reason }) => {
    // The same repeated failure is logged once.
    if (`${state} ${reason}` === told) return
    const isPassing = state === 'connecting' || state === 'handshake'
    if (!isPassing) told = `${state} ${reason}`
    log[isPassing ? 'debug' : 'info']('Radio link', { link: name, state, reason })
  }
}
