import type { Heard, HearBatch } from '../../app/mesh/heard/heard.ts'
import type { NewEvent } from '../../app/mesh/live/event.ts'
import type { ClockWatch } from '../../app/base/pacing/clock.ts'
import type { Disk } from '../../app/base/pacing/disk.ts'
import type { LinkInfo, OutgoingKind, Radio } from '../../app/mesh/radios/radio.ts'
import type { Ports } from '../../app/base/context.ts'
import { loseChanges, noteDuringChange, settleChange, storeSections } from '../../app/device-config/records.ts'
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
import { echoSent } from '../../meshtastic/link/from-radio.ts'
import type { RadioEvent } from '../../meshtastic/radio-event.ts'
import { openCollector } from '../collector/open-collector.ts'
import type { DeliveryEvent } from '../../app/mesh/messages/delivery.ts'
import { loseUnfinished, type PacketKey, recordDelivery } from '../../app/mesh/messages/delivery-records.ts'
import { announce, logExcess } from '../../app/mesh/ingest/announce.ts'
import { readDelivery } from '../../app/mesh/live/details.ts'
import { changeEvent, linkEvent } from '../../app/mesh/live/events.ts'
import { alertsOnBatch } from '../../app/alerts/findings/on-batch.ts'
import { tellOwner } from '../../app/mesh/live/tell-owner.ts'
import { createIngest } from '../../app/mesh/ingest/ingest.ts'
import { demandRoom } from '../../app/mesh/ingest/trust/room.ts'
import { type Batcher, createBatcher } from './batcher.ts'
import { type Clock, systemClock } from '../clock.ts'
import { configuredLinks } from './configured.ts'
import { type ConfiguredRadio, fenced } from './connection.ts'
import { type Configurator, createConfigurator } from './device-config/configurator.ts'
import { createAdministrator } from './device-config/remote/administrator.ts'
import { type Asker, createAsker } from './device-config/remote/asker.ts'
import { createForgetting, type Forgetting } from './forgetting.ts'
import { createHearings, type Hearings } from './hearings.ts'
import { type ConfiguredFeed, createLink, type Link } from './link.ts'
import { createRecordQueue, type RecordQueue } from './record-queue.ts'
import type { ReceivedEvent } from './session.ts'
import { createTransmitter, type Transmitter } from './sending/transmitter.ts'
import { isOwnKind, isSimulated } from '../../shared/mesh/link-kinds.ts'
import { isOpenRemote } from '../../shared/mesh/remote-states.ts'

/** The radio links of a Node process. */
export type NodeRadio = Radio & {
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
}

type Kind = LinkInfo['kind']

/** What all links share. */
type Shared = Pick<Needs, 'store' | 'log'> & {
  readonly mayWrite: () => boolean
  readonly publish: (events: readonly NewEvent[]) => void
  readonly tellLink: (info: LinkInfo) => void
  readonly clock: Clock
  readonly random: () => number
  readonly batcher: Batcher
  readonly records: RecordQueue
  /** Called with a packet that was passed to the radio `nodeNum` of a source to send. */
  readonly onSent: (source: string, message: Uint8Array, kind: OutgoingKind, nodeNum: number) => void
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
  const configured = configuredLinks(config)
  const ingest = createIngest(store, {
    collector,
    radios: configured.radios.map(({ name }) => name),
    onBatch: alertsOnBatch,
    onExcess: (excess) => logExcess(log, excess),
    onCounted: (counts) => meter?.countBatch(counts),
    onAlerts: (owners) => owners.forEach((ownerId) => tellOwner({ events }, ownerId)),
  })
  let tellHeard: HearBatch = () => {}
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
      void announce({ store, log, events, meter }, stored)
      if (needs.clockWatch !== undefined) hearClocks(needs.clockWatch, batch)
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
  const shared: Shared = { store, log, mayWrite, publish, tellLink, clock, random, batcher, records, onSent }
  if (configured.replaced.length > 0) {
    log.warn('The configured radios and brokers are not used while DEMO is true', { kinds: configured.replaced })
  }
  const radios = configured.radios.map((radio) => openLink(radio, shared))
  const feeds = configured.feeds.map((feed) => openFeed(feed, shared))
  const remote = createAdministrator({
    radios: radios.map(({ configurator, asker, transmitter }) => ({
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
  const recover = () => {
    if (radios.length === 0) return
    records.add(() => loseUnfinished(store))
    records.add(() => loseRemoteActions(store, clock.now()))
    records.add(async () => {
      const lost = await loseChanges(store)
      for (const { configurator } of radios) {
        const own = lost.filter(({ source }) => source === configurator.device.source)
        for (const { source, section } of own) {
          log.warn('A change of settings was interrupted: the radio is restarted when it connects', { source, section })
        }
        configurator.recover(own)
      }
    })
  }
  const findAble = () => radios.find(({ transmitter }) => transmitter.canSend()) ?? radios[0]
  const links = [...radios.map(({ link }) => link), ...feeds]
  return {
    start(onHeard = () => {}) {
      tellHeard = onHeard
      recover()
      for (const link of links) link.start()
    },
    links: () => links.map((link) => link.info()),
    devices: () => radios.map(({ configurator }) => configurator.device),
    remote,
    waiting: batcher.waiting,
    sending: () => radios.reduce((sum, { transmitter }) => sum + transmitter.waiting(), 0),
    collector: () => collector?.info() ?? null,
    hearings: (nodeNum) =>
      radios.flatMap(({ link, hearings }) => {
        const heard = hearings.find(nodeNum)
        return heard === null ? [] : [{ source: link.info().name, ...heard }]
      }),
    reserve(kind, { radio = null, rule = null } = {}) {
      const able = radio === null ? findAble() : radios.find(({ link }) => link.info().name === radio)
      if (able === undefined) throw new AppError('radio_unavailable', 'No radio is configured')
      return able.transmitter.reserve(kind, rule)
    },
    withdraw(isStale) {
      for (const { transmitter } of radios) transmitter.withdraw(isStale)
    },
    forgetNode(nodeNum) {
      for (const { forgetting } of radios) forgetting.forget(nodeNum)
    },
    lora: () => findAble()?.transmitter.lora() ?? null,
    async close(why) {
      remote.stop()
      for (const { transmitter, configurator } of radios) {
        if (why === 'lost') transmitter.abandon()
        transmitter.stop()
        configurator.stop()
      }
      for (const link of links) link.stop()
      await batcher.close()
      await records.done()
      await collector?.close()
    },
  }
}

/** A radio of ours has its own clock, set by satellites or by its mesh. This service never sets it. */
function hearClocks(clockWatch: ClockWatch, batch: readonly Heard[]): void {
  for (const { source, event } of batch) {
    if (!isOwnKind(source.kind) || isSimulated(source.kind)) continue
    if (event.type !== 'packet' || event.replayed || event.packet.rxTime === null) continue
    clockWatch.agree(`the radio ${source.name}`, event.packet.rxTime)
  }
}

function openLink(
  { kind, name, connect }: ConfiguredRadio,
  { store, log, mayWrite, publish, tellLink, clock, random, batcher, records, onSent }: Shared,
): {
  readonly link: Link
  readonly transmitter: Transmitter
  readonly configurator: Configurator
  readonly hearings: Hearings
  readonly forgetting: Forgetting
  readonly asker: Asker
} {
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
  const link: Link = { ...unfenced, send: (message) => mayWrite() && unfenced.send(message) }
  const forgetting = createForgetting({ store, link, random, later })
  const noteDelivery = async (key: PacketKey, event: DeliveryEvent) => {
    await recordDelivery(store, key, event)
    if (event.type === 'withdrawn') await noteWithdrawn(store, key, clock.now())
    publish(await readDelivery(store, key))
  }
  const asker: Asker = createAsker({ clock, reserve: () => transmitter.reserve('admin', null) })
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
    onSent: (message, kind, nodeNum) => onSent(name, message, kind, nodeNum),
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
      asker.take(message)
    },
    onFrames(batch) {
      for (const { event } of batch) {
        transmitter.observe(event)
        hearings.observe(event)
        configurator.observe(event)
        forgetting.observe(event)
        if (event.type === 'notification') hearWord(event)
      }
    },
    onState(info) {
      transmitter.onState(info)
      configurator.onState(info)
      tellLink(info)
    },
  })
  return { link, transmitter, configurator, hearings, forgetting, asker }
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
