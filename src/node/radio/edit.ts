import type { ChangeOutcome } from '../../app/configuration/records.ts'
import type { LinkInfo } from '../../app/context.ts'
import { encodeAdminPacket, encodeEdit } from '../../meshtastic/admin-packets.ts'
import { findDiffering, isAsBefore, type SectionPlan } from '../../meshtastic/config-change.ts'
import { type RadioConfig, sectionBytes } from '../../meshtastic/config-sections.ts'
import type { RadioEvent } from '../../meshtastic/radio-event.ts'
import { createTimer, type LinkClock } from './connection.ts'
import type { Link } from './link.ts'

/** All in milliseconds. */
export const EDIT_TIMINGS = {
  /** Settings read longer ago are read again first: somebody may have changed them at the radio itself. */
  freshMs: 30_000,
  /** For the radio's answer to each step. */
  answerMs: 15_000,
  /** A radio that saved hangs up within seconds; one that did not by then is read again as it is. */
  hangUpMs: 60_000,
  /** For all of it, the restart included. Later the outcome counts as unknown, until the radio is back after all. */
  limitMs: 240_000,
} as const satisfies Record<string, number>

/** Answered for a packet that the radio did take, by its name for "you keep the buffer". */
const TAKEN: ReadonlySet<number> = new Set([0, 35])

export type EditOptions = {
  readonly plan: SectionPlan
  /** The settings that the plan was made of, and when they were read. */
  readonly config: RadioConfig
  readonly readAt: number
  readonly link: Pick<Link, 'expectRestart' | 'readAgain'>
  /** Sends an encoded ToRadio; false, and nothing sent, unless the link is connected and `config` its latest. */
  readonly send: (message: Uint8Array, config: RadioConfig) => boolean
  readonly clock: LinkClock
  readonly nextId: () => number
  /** `isFinal` false: the radio did not come back in time, which may still change. */
  onOutcome(outcome: ChangeOutcome, isFinal: boolean): void
}

/** A change of settings on its way to the radio and back: check, begin, set, commit, restart, read again, compare. */
export type Edit = {
  start(): void
  /** Takes what the radio says. */
  observe(event: RadioEvent): void
  /** The link has another state. */
  onState(state: LinkInfo['state']): void
  /** The radio told all its settings again. */
  onRead(config: RadioConfig): void
  stop(): void
}

/** Where an edit is: `checking` what the radio has, `sending` steps, or `waiting` until it has told its settings again. */
type Progress = {
  phase: 'checking' | 'sending' | 'waiting' | 'over'
  /** The radio's settings as they were read last, before any step. */
  config: RadioConfig
  /** Steps sent. */
  sent: number
  packetId: number
  isCommitAnswered: boolean
  /** Why the radio was not told to save, or does not; in words. */
  obstacle: string | null
  /** The settings are read again on purpose. */
  isReading: boolean
  wasLost: boolean
}

export function createEdit(options: EditOptions): Edit {
  const { plan, link, clock, nextId, onOutcome } = options
  const steps = encodeEdit(plan.section)
  const patience = createTimer(clock)
  const limit = createTimer(clock)
  const at = beginProgress(options.config)
  const isCommitting = () => at.sent === steps.length

  const stop = () => {
    at.phase = 'over'
    patience.stop()
    limit.stop()
  }
  const settle = (outcome: ChangeOutcome) => {
    stop()
    onOutcome(outcome, true)
  }
  const sendNext = () => {
    const payload = steps[at.sent]
    if (payload === undefined) return
    at.packetId = nextId()
    // A radio may hang up before it has answered the last step.
    if (at.sent + 1 === steps.length) link.expectRestart()
    if (!options.send(encodeAdminPacket(at.config.nodeNum, at.packetId, payload), at.config)) {
      if (at.sent === 0) settle(failed('the radio is not connected; nothing was sent'))
      return
    }
    at.sent += 1
    patience.start(EDIT_TIMINGS.answerMs, onSilence)
  }
  const onSilence = () => {
    if (at.sent === 1) settle(failed('the radio does not answer; nothing was changed'))
    else if (isCommitting()) awaitHangUp()
    else giveUp('the radio stopped answering before it was told to save')
  }
  const awaitHangUp = () => {
    at.phase = 'waiting'
    patience.start(EDIT_TIMINGS.hangUpMs, readAgain)
  }
  const onRefusal = (reason: string) => (at.sent === 1 ? settle(failed(reason)) : giveUp(reason))
  /** Some steps were taken: only the radio knows what it has now. */
  const giveUp = (obstacle: string) => {
    at.obstacle = obstacle
    readAgain()
  }
  const readAgain = () => {
    patience.stop()
    at.phase = 'waiting'
    at.isReading = true
    if (!link.readAgain()) settle(unknown('the connection was lost, and the settings could not be read again'))
  }
  return {
    start() {
      limit.start(EDIT_TIMINGS.limitMs, () => {
        if (at.phase === 'checking') settle(failed('the settings could not be read again; nothing was sent'))
        else onOutcome(unknown('the radio did not come back'), false)
      })
      const age = clock.now() - options.readAt
      // A clock that was set back tells no age.
      if (age >= 0 && age < EDIT_TIMINGS.freshMs) return sendNext()
      at.phase = 'checking'
      if (!link.readAgain()) settle(failed('the radio is not connected; nothing was sent'))
    },
    observe(event) {
      if (at.phase !== 'sending') return
      const answer = readAnswer(event, at.config.nodeNum, at.packetId)
      if (answer === null) return
      if (answer !== 'NONE') return onRefusal(`the radio refused it: ${answer}`)
      patience.stop()
      if (!isCommitting()) return sendNext()
      at.isCommitAnswered = true
      awaitHangUp()
    },
    onState(state) {
      if (at.phase === 'over' || (at.phase === 'checking' && state === 'handshake')) return
      if (state === 'connected') {
        if (at.phase !== 'checking') return
        at.phase = 'sending'
        return sendNext()
      }
      if (at.phase === 'checking') return settle(failed('the connection was lost; nothing was sent'))
      at.wasLost ||= !at.isReading
      at.phase = 'waiting'
      patience.stop()
    },
    onRead(read) {
      if (at.phase === 'checking') {
        if (isSame(plan, at.config, read)) at.config = read
        else settle(failed('the settings have changed since they were read; nothing was sent'))
      }
      if (at.phase !== 'waiting') return
      const hasSaved = read.rebootCount > at.config.rebootCount || (at.isCommitAnswered && at.wasLost)
      const obstacle = at.obstacle ?? (isCommitting() ? null : 'the connection broke before the radio was told to save')
      settle(compare({ plan, config: at.config, read, obstacle, hasSaved }))
    },
    stop,
  }
}

function beginProgress(config: RadioConfig): Progress {
  const nothing = { sent: 0, packetId: 0, isCommitAnswered: false, obstacle: null, isReading: false, wasLost: false }
  return { phase: 'sending', config, ...nothing }
}

/** Whether a section is what it was, secrets included. */
function isSame({ section: { section: name } }: SectionPlan, config: RadioConfig, read: RadioConfig): boolean {
  const [before, now] = [config, read].map(({ sections }) => sections.get(name))
  if (before === undefined || now === undefined || config.nodeNum !== read.nodeNum) return false
  return Buffer.compare(sectionBytes(before), sectionBytes(now)) === 0
}

/** The name of the routing error that answers the packet, `NONE` for success; null for any other event. */
function readAnswer(event: RadioEvent, nodeNum: number, packetId: number): string | null {
  if (event.type === 'queue-status') {
    const isRefused = event.packetId === packetId && !TAKEN.has(event.result)
    return isRefused ? `QUEUE_ERROR_${event.result}` : null
  }
  if (event.type !== 'packet' || event.replayed) return null
  const { from, to, payload, requestId, rssi } = event.packet
  // Our own radio tells us so without a radio wave: a "self" that was heard is somebody else.
  const isOwn = from === nodeNum && to === nodeNum && rssi === null
  return isOwn && payload.kind === 'routing' && requestId === packetId ? payload.error : null
}

type Evidence = {
  readonly plan: SectionPlan
  readonly config: RadioConfig
  readonly read: RadioConfig
  /** Null: the radio was told to save. */
  readonly obstacle: string | null
  readonly hasSaved: boolean
}

/** What became of a change, by what the radio tells after it. */
function compare({ plan, config, read, obstacle, hasSaved }: Evidence): ChangeOutcome {
  if (read.nodeNum !== config.nodeNum) return unknown('another radio has answered')
  const section = read.sections.get(plan.section.section)
  if (section === undefined) return unknown('the radio did not tell this section again')
  if (obstacle !== null) {
    return isAsBefore(plan, section)
      ? failed(`${obstacle}; it has its old values`)
      : unknown(`${obstacle}; it has some of the new values, and may save them later`)
  }
  const differing = findDiffering(plan, section)
  if (differing.length > 0)
    return { state: 'differs', differing, reason: 'the radio has other values than those given' }
  if (hasSaved) return { state: 'applied', differing: [], reason: null }
  return unknown('the radio has the new values but did not restart: whether it saved them is not known')
}

function failed(reason: string): ChangeOutcome {
  return { state: 'failed', differing: [], reason }
}

function unknown(reason: string): ChangeOutcome {
  return { state: 'unknown', differing: [], reason }
}
