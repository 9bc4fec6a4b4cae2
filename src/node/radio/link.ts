import type { LinkInfo } from '../../app/mesh/radios/radio.ts'
import type { Store } from '../../db/store.ts'
import type { FromRadio } from '../../meshtastic/gen/stream_pb.ts'
import { isFirmwareTooOld } from '../../meshtastic/link/firmware.ts'
import type { RadioEvent } from '../../meshtastic/radio-event.ts'
import { createTimer, type Clock, systemClock } from '../clock.ts'
import { type Connect } from './connection.ts'
import { openSession, type ReceivedEvent, type Session, type SessionEnd } from './session.ts'
import { LINK_TIMINGS, type LinkTimings } from './timings.ts'
import { backOff } from '../../shared/back-off.ts'
import type { FeedKind, OwnKind } from '../../shared/mesh/link-kinds.ts'
import { RADIO_PROBLEMS } from '../../shared/mesh/radio-problems.ts'
import { LINK_REASONS } from '../../shared/mesh/link-reasons.ts'

export type LinkListener = {
  /** Gets each message complete, including secrets, before `onFrames`. It must not store or pass on any part of it. */
  onMessage?(message: FromRadio): void
  /** Gets events in order, immediately; must not throw. Packets have their own `replayed` flag. */
  onFrames(batch: readonly ReceivedEvent[]): void
  /** Called after each change of state. */
  onState?(info: LinkInfo): void
  /** Gets each encoded ToRadio that was sent. It may hold secrets, too. */
  onSent?(message: Uint8Array): void
}

export type LinkOptions = LinkListener & {
  readonly name: string
  readonly kind: OwnKind
  readonly connect: Connect
  readonly clock?: Clock
  /** Numbers from 0 to below 1. */
  readonly random?: () => number
  readonly timings?: Partial<LinkTimings>
}

/** A radio that is kept connected until `stop`. */
export type Link = {
  start(): void
  /** Disconnects for good. */
  stop(): void
  info(): LinkInfo
  /** Sends an encoded ToRadio. Returns false and sends nothing unless the link is connected. */
  send(message: Uint8Array): boolean
  /** Announces that settings were saved: the radio will disconnect and restart, which is not a failure. */
  expectRestart(): void
  /** Asks the radio for everything again, without disconnecting; false unless the link is connected. */
  readAgain(): boolean
}

/** A configured broker, or another connection that only listens. */
export type ConfiguredFeed = {
  readonly kind: FeedKind
  /** The name of its source: unique among all links. */
  readonly name: string
  /** Throws StartRefused if the configured values cannot be used. */
  readonly open: (needs: FeedNeeds) => Link
}

export type FeedNeeds = {
  readonly store: Store
  readonly clock: Clock
  /** Numbers from 0 to below 1. */
  readonly random: () => number
  /** Gets events in order; later ones wait for it. Must not throw. */
  readonly onFrames: (batch: readonly ReceivedEvent[]) => void | Promise<void>
  /** Called after each change of state. */
  readonly onState: (info: LinkInfo) => void
}

export type RadioLink = Link & {
  /** Adds a listener, called after the earlier ones, until the returned function is called. */
  listen(listener: LinkListener): () => void
}

type State = LinkInfo['state']

/** State kept from one connection to the next. */
type Memory = {
  state: State
  since: number
  reason: string | null
  lastFrameAt: number | null
  radio: LinkInfo['radio']
  queue: LinkInfo['queue']
  txEnabled: boolean | null
  notice: LinkInfo['notice']
  connections: number
  connectedAt: number | null
  failures: number
  /** When the radio recently hung up without a sign of a restart. */
  lostAt: readonly number[]
  /** How often in a row another client took over the radio. */
  contests: number
  /** The radio's latest count of its restarts; null: not reported. */
  rebootCount: number | null
  uptimeSeconds: number | null
  /** When the latest sign of a restart was seen. */
  restartedAt: number | null
  restartUntil: number
}

export function createLink(options: LinkOptions): RadioLink {
  const clock = options.clock ?? systemClock
  const random = options.random ?? Math.random
  const timings: LinkTimings = { ...LINK_TIMINGS, ...options.timings }
  const memory = createMemory(clock.now())
  const retry = createTimer(clock)
  let listeners: readonly LinkListener[] = [options]
  let session: Session | null = null

  const info = () => describe(options, memory)
  const enter = (state: State, reason: string | null) => {
    const next = isRestarting(memory, clock.now()) && PASSING_STATES.has(state) ? 'restarting' : state
    if (next !== memory.state) memory.since = clock.now()
    memory.state = next
    memory.reason = reason
    for (const listener of listeners) listener.onState?.(info())
  }
  const onPhase = (phase: 'handshake' | 'connected', isLocked: boolean) => {
    if (phase === 'connected') noteConnected(memory, clock.now())
    const version = memory.radio?.firmwareVersion ?? ''
    const trouble = isLocked ? LOCKED : isFirmwareTooOld(version) ? RADIO_PROBLEMS.old_firmware : null
    enter(phase, phase === 'handshake' ? LINK_REASONS.reading : trouble)
  }
  const onMessage = (message: FromRadio) => {
    for (const listener of listeners) listener.onMessage?.(message)
  }
  const onEvents = (batch: readonly ReceivedEvent[]) => {
    memory.lastFrameAt = clock.now()
    for (const { event } of batch) noteEvent(memory, event, clock.now() + timings.restartMs)
    for (const listener of listeners) listener.onFrames(batch)
  }
  function open(): void {
    session?.close()
    enter('connecting', memory.reason)
    session = openSession({
      connect: options.connect,
      clock,
      random,
      timings,
      onMessage,
      onPhase,
      onEvents,
      onEnd(end) {
        session = null
        // Whoever answers now may not be the radio. Only a person can tell.
        if (end.problem === 'certificate_changed') return enter('stopped', end.reason)
        const plan = planRetry(memory, timings, { ...end, now: clock.now(), random })
        retry.start(plan.delayMs, open)
        enter(plan.state, plan.reason)
      },
    })
  }
  return {
    info,
    listen(listener) {
      listeners = [...listeners, listener]
      return () => {
        listeners = listeners.filter((each) => each !== listener)
      }
    },
    start() {
      if (memory.state === 'stopped') open()
    },
    stop() {
      retry.stop()
      session?.close()
      session = null
      enter('stopped', null)
    },
    send(message) {
      if (memory.state !== 'connected' || session === null) return false
      session.send(message)
      for (const listener of listeners) listener.onSent?.(message)
      return true
    },
    expectRestart() {
      memory.restartUntil = clock.now() + timings.restartMs
    },
    readAgain() {
      if (memory.state !== 'connected' || session === null) return false
      memory.restartUntil = 0
      session.readAgain()
      return true
    },
  }
}

/** States before `connected`. After a requested restart they count as `restarting`. */
const PASSING_STATES: ReadonlySet<State> = new Set<State>(['connecting', 'handshake', 'waiting'])

function createMemory(now: number): Memory {
  return {
    state: 'stopped',
    since: now,
    reason: null,
    lastFrameAt: null,
    radio: null,
    queue: null,
    txEnabled: null,
    notice: null,
    connections: 0,
    connectedAt: null,
    failures: 0,
    lostAt: [],
    contests: 0,
    rebootCount: null,
    uptimeSeconds: null,
    restartedAt: null,
    restartUntil: 0,
  }
}

function describe({ name, kind }: LinkOptions, memory: Memory): LinkInfo {
  const { state, since, lastFrameAt, reason, radio, queue, txEnabled, notice } = memory
  const reconnects = Math.max(0, memory.connections - 1)
  return { name, kind, state, since, lastFrameAt, reconnects, reason, radio, queue, txEnabled, notice }
}

function isRestarting(memory: Memory, now: number): boolean {
  return now < memory.restartUntil
}

function noteConnected(memory: Memory, now: number): void {
  memory.connections += 1
  memory.connectedAt = now
  memory.restartUntil = 0
}

function noteEvent(memory: Memory, event: RadioEvent, restartUntil: number): void {
  if (event.type === 'my-info') {
    const known = memory.radio?.nodeNum === event.nodeNum ? memory.radio : null
    if (known === null) memory.notice = null
    noteBoot(memory, event, known !== null)
    memory.radio = known ?? { nodeNum: event.nodeNum, firmwareVersion: null, hwModel: null, role: null }
  }
  if (event.type === 'metadata' && memory.radio !== null) {
    const { firmwareVersion, hwModel, role } = event.metadata
    memory.radio = { ...memory.radio, firmwareVersion, hwModel, role }
  }
  if (event.type === 'queue-status') memory.queue = { free: event.free, maxlen: event.maxlen }
  if (event.type === 'settings' && event.settings.section === 'lora') {
    memory.txEnabled = event.settings.values['txEnabled'] === true
  }
  if (event.type === 'notification') {
    memory.notice = { at: event.receivedAt, level: event.level, message: event.message }
  }
  if (event.type === 'packet' && !event.replayed) noteUptime(memory, event)
  if (event.type === 'rebooted') {
    memory.restartUntil = restartUntil
    noteRestart(memory, event.receivedAt)
  }
}

type EventOf<Type extends RadioEvent['type']> = Extract<RadioEvent, { readonly type: Type }>

/** A different radio at this address also means that no other client took over. */
function noteBoot(memory: Memory, { rebootCount, receivedAt }: EventOf<'my-info'>, isSameRadio: boolean): void {
  const { rebootCount: before } = memory
  const hasRestarted = before !== null && rebootCount !== null && rebootCount !== before
  if (hasRestarted || !isSameRadio) noteRestart(memory, receivedAt)
  memory.rebootCount = rebootCount
}

const UPTIMES: ReadonlySet<string> = new Set(['deviceMetrics.uptimeSeconds', 'localStats.uptimeSeconds'])

function noteUptime(memory: Memory, { packet, receivedAt }: EventOf<'packet'>): void {
  if (packet.from !== memory.radio?.nodeNum || packet.payload.kind !== 'telemetry') return
  const uptime = packet.payload.metrics.find(([name]) => UPTIMES.has(name))?.[1]
  if (uptime === undefined) return
  if (memory.uptimeSeconds !== null && uptime < memory.uptimeSeconds) noteRestart(memory, receivedAt)
  memory.uptimeSeconds = uptime
}

/** A radio that restarts also hangs up, so its earlier disconnections were not caused by another client. */
function noteRestart(memory: Memory, now: number): void {
  // Before the first connection there is nothing that a restart could have interrupted.
  if (memory.connections > 0) memory.restartedAt = now
  memory.lostAt = []
  memory.contests = 0
}

const LOCKED = LINK_REASONS.locked
const TAKEN = LINK_REASONS.taken
const RESTARTED = LINK_REASONS.restarted
const AWAY = LINK_REASONS.away

type Loss = SessionEnd & {
  readonly now: number
  readonly random: () => number
}

/** The time of the next attempt after a connection ended, and the state until then. */
function planRetry(
  memory: Memory,
  timings: LinkTimings,
  { now, how, reason, problem, random }: Loss,
): { readonly state: State; readonly delayMs: number; readonly reason: string } {
  const restarting = isRestarting(memory, now)
  const { connectedAt } = memory
  // A disconnection because of a requested restart is not a failure.
  const lasted = (ms: number) => connectedAt !== null && (restarting || now - connectedAt >= ms)
  memory.connectedAt = null
  if (lasted(timings.kickWindowMs)) memory.contests = 0
  if (lasted(timings.stableMs)) memory.failures = 0
  const { lostAt, restartedAt } = memory
  const wasThere = memory.connections > 0
  if (how === 'unreached' && lostAt.length > 0) noteRestart(memory, now)
  if (how === 'hung-up' && !restarting) {
    memory.lostAt = [...lostAt.filter((time) => now - time <= timings.kickWindowMs), now]
    if (memory.contests > 0 || memory.lostAt.length >= 2) {
      const { busyFirstMs: firstMs, busyMaxMs: mostMs } = timings
      const delayMs = backOff(memory.contests, { firstMs, mostMs })
      memory.contests += 1
      return { state: 'busy', delayMs, reason: TAKEN }
    }
  }
  const { backoffFirstMs: firstMs, backoffMaxMs: mostMs } = timings
  const delayMs = backOff(memory.failures, { firstMs, mostMs, jitter: 0.75 + random() / 2 })
  memory.failures += 1
  if (restarting) return { state: 'waiting', delayMs, reason: LINK_REASONS.restarts }
  if (how === 'unreached') {
    const isExplained = problem !== null && reason === RADIO_PROBLEMS[problem]
    return { state: 'waiting', delayMs, reason: wasThere && !isExplained ? `${reason}; ${AWAY}` : reason }
  }
  const isAgain = how === 'hung-up' && restartedAt !== null && now - restartedAt <= timings.kickWindowMs
  return { state: 'waiting', delayMs, reason: isAgain ? RESTARTED : reason }
}
