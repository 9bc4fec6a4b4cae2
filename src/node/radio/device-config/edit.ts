import type { ChangeOutcome } from '../../../app/device-config/records.ts'
import { encodeAdminPacket } from '../../../meshtastic/link/admin-packets.ts'
import { findDiffering, isAsBefore, type SectionPlan } from '../../../meshtastic/config/change.ts'
import { type RadioConfig, sectionBytes } from '../../../meshtastic/config/sections.ts'
import { viewSection } from '../../../meshtastic/config/values.ts'
import { readAnswer } from './admin-answer.ts'
import { createTimer } from '../../clock.ts'
import { createRestart, type Exchange, type ExchangeNeeds, HANG_UP_MS } from './restart.ts'

/** All in milliseconds. */
export const EDIT_TIMINGS = {
  /** Older settings are read again first: somebody may have changed them at the radio itself. */
  freshMs: 30_000,
  /** The time limit for the radio's answer to each step. */
  answerMs: 15_000,
  /** The firmware connects to the broker before it answers. */
  brokerMs: 60_000,
  /**
   * The time limit for the whole edit, including a restart. After this time the outcome counts as unknown until the
   * radio is back.
   */
  limitMs: 240_000,
} as const satisfies Record<string, number>

export type EditOptions = ExchangeNeeds & {
  readonly plans: readonly SectionPlan[]
  /** Their encoded messages, from the first to the command to save. */
  readonly steps: readonly Uint8Array[]
  /** The settings on which the plans are based, and when they were read. */
  readonly config: RadioConfig
  readonly readAt: number
  /** Called for each plan. `isFinal` false: the radio did not come back in time; the outcome may still change. */
  onOutcome(plan: SectionPlan, outcome: ChangeOutcome, isFinal: boolean): void
}

/**
 * The phase of an edit: `checking` the radio's settings, `sending` steps, or `waiting` until the radio has reported its
 * settings again.
 */
type Progress = {
  phase: 'checking' | 'sending' | 'waiting' | 'over'
  /** The settings read last before any step. */
  config: RadioConfig
  /** Steps sent. */
  sent: number
  packetId: number
  isCommitAnswered: boolean
  wasLost: boolean
  /** Why it cannot continue, and the settings read last. Called once the link can record the failure. */
  obstacle: { readonly reason: string; readonly read: RadioConfig } | null
  /** Gives up the edit. */
  restart: Exchange | null
}

/**
 * A change of a radio's settings in progress: check, begin, set, commit, restart, read again, compare. If a change
 * cannot continue after it was begun, the radio restarts without saving. `stop` ends the change, with an outcome only
 * if the radio is not in the middle of it.
 */
export function createEdit(options: EditOptions): Exchange {
  const { plans, steps, link, send, clock, nextId, onOutcome } = options
  const patience = createTimer(clock)
  const limit = createTimer(clock)
  const at = beginProgress(options.config)
  const isCommitting = () => at.sent === steps.length

  const end = () => {
    at.phase = 'over'
    patience.stop()
    limit.stop()
    at.restart?.stop()
  }
  const settleEach = (judge: (plan: SectionPlan) => ChangeOutcome) => {
    end()
    for (const plan of plans) onOutcome(plan, judge(plan), true)
  }
  const settle = (outcome: ChangeOutcome) => settleEach(() => outcome)
  const watchTime = () =>
    limit.start(EDIT_TIMINGS.limitMs, () => {
      if (at.phase === 'checking') settle(failed('the settings could not be read again; nothing was sent'))
      else for (const plan of plans) onOutcome(plan, unknown('the radio did not come back'), false)
    })
  const sendNext = () => {
    const payload = steps[at.sent]
    if (payload === undefined) return
    at.packetId = nextId()
    // A radio may disconnect before it has answered the last step.
    if (at.sent + 1 === steps.length) link.expectRestart()
    if (!send(encodeAdminPacket(at.config.nodeNum, at.packetId, payload), at.config)) {
      if (at.sent === 0) settle(failed('the radio is not connected; nothing was sent'))
      return
    }
    at.sent += 1
    const isTried = plans.some(({ section }) => section.section === 'mqtt') && at.sent > 1 && !isCommitting()
    patience.start(isTried ? EDIT_TIMINGS.brokerMs : EDIT_TIMINGS.answerMs, onSilence)
  }
  const onSilence = () => {
    if (at.sent === 1)
      settle(failed(`${isManaged(at.config) ? MANAGED : 'the radio does not answer'}; nothing was changed`))
    else if (isCommitting()) awaitHangUp()
    else giveUp('the radio stopped answering before it was told to save', at.config)
  }
  const awaitHangUp = () => {
    at.phase = 'waiting'
    patience.start(HANG_UP_MS, () => giveUp('the radio did not restart after it was told to save', at.config))
  }
  const onRefusal = (reason: string) => (at.sent === 1 ? settle(failed(reason)) : giveUp(reason, at.config))
  const giveUp = (obstacle: string, config: RadioConfig) => {
    patience.stop()
    watchTime()
    at.phase = 'waiting'
    const onEnd = (read: RadioConfig, hasRestarted: boolean) =>
      settleEach((plan) => compare({ plan, config: at.config, read, obstacle, hasRestarted }))
    at.restart = createRestart({ config, link, send, clock, nextId, onEnd })
    at.restart.start()
  }
  return {
    start() {
      watchTime()
      const age = clock.now() - options.readAt
      // After a clock was set back, the age is unknown.
      if (age >= 0 && age < EDIT_TIMINGS.freshMs) return sendNext()
      at.phase = 'checking'
      if (!link.readAgain()) settle(failed('the radio is not connected; nothing was sent'))
    },
    observe(event) {
      at.restart?.observe(event)
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
      if (at.phase === 'over') return
      if (at.restart !== null) return at.restart.onState(state)
      if (state === 'connected') {
        if (at.obstacle !== null) return giveUp(at.obstacle.reason, at.obstacle.read)
        if (at.phase !== 'checking') return
        at.phase = 'sending'
        return sendNext()
      }
      if (at.phase === 'checking') {
        if (state !== 'handshake') settle(failed('the connection was lost; nothing was sent'))
        return
      }
      at.wasLost = true
      at.phase = 'waiting'
      patience.stop()
    },
    onRead(read) {
      if (at.restart !== null) return at.restart.onRead(read)
      if (at.phase === 'checking') {
        if (plans.every((plan) => isSame(plan, at.config, read))) at.config = read
        else settle(failed('the settings have changed since they were read; nothing was sent'))
      }
      if (at.phase !== 'waiting') return
      const reason = isCommitting() ? 'the radio did not confirm that it saves' : BROKEN
      const hasRestarted = read.rebootCount > at.config.rebootCount || (at.isCommitAnswered && at.wasLost)
      // A different radio at this address must not be restarted.
      if (hasRestarted || read.nodeNum !== at.config.nodeNum) {
        const obstacle = at.isCommitAnswered ? null : reason
        settleEach((plan) => compare({ plan, config: at.config, read, obstacle, hasRestarted }))
      } else at.obstacle = { reason, read }
    },
    stop() {
      if (at.phase === 'checking') return settle(failed('the service was stopped; nothing was sent'))
      const isSaving = at.isCommitAnswered && at.restart === null
      if (isSaving && at.phase === 'waiting')
        return settle(unknown('the service was stopped while the radio restarted'))
      end()
    },
  }
}

/** Firmware does not answer the clients of a managed radio. */
function isManaged({ sections }: RadioConfig): boolean {
  const security = sections.get('security')
  return security !== undefined && viewSection(security).values['isManaged'] === true
}

const MANAGED = 'the radio is managed, and accepts changes only from its admin keys'
const BROKEN = 'the connection broke before the radio was told to save'

function beginProgress(config: RadioConfig): Progress {
  const nothing = { sent: 0, packetId: 0, isCommitAnswered: false, wasLost: false, obstacle: null, restart: null }
  return { phase: 'sending', config, ...nothing }
}

/** Whether a section is unchanged, including secrets. */
function isSame({ section: { section: name } }: SectionPlan, config: RadioConfig, read: RadioConfig): boolean {
  const [before, now] = [config, read].map(({ sections }) => sections.get(name))
  if (before === undefined || now === undefined || config.nodeNum !== read.nodeNum) return false
  return Buffer.compare(sectionBytes(before), sectionBytes(now)) === 0
}

type Evidence = {
  readonly plan: SectionPlan
  readonly config: RadioConfig
  readonly read: RadioConfig
  /** Null: the radio was told to save, and restarted. */
  readonly obstacle: string | null
  /** The settings just read are the saved ones. */
  readonly hasRestarted: boolean
}

/** The outcome of a change, judged by the radio's settings after it. */
function compare({ plan, config, read, obstacle, hasRestarted }: Evidence): ChangeOutcome {
  if (read.nodeNum !== config.nodeNum) return unknown('another radio answered')
  const section = read.sections.get(plan.section.section)
  if (section === undefined) return unknown('the radio did not report this section again')
  const isOld = obstacle !== null && isAsBefore(plan, section)
  if (!hasRestarted) {
    const has = isOld ? 'it has its old values' : 'it has some of the new values'
    const reason = `${obstacle}; ${has}, and did not restart: until it does, its settings are in the middle of an edit`
    return isOld ? failed(reason) : unknown(`${reason}, and the next change would save these values too`)
  }
  if (isOld) return failed(`${obstacle}; it has restarted, with its old values`)
  const differing = findDiffering(plan, section)
  if (differing.length === 0) return { state: 'applied', differing: [], reason: null }
  const words = 'the radio has other values than the requested ones'
  return { state: 'differs', differing, reason: obstacle === null ? words : `${obstacle}; ${words}` }
}

function failed(reason: string): ChangeOutcome {
  return { state: 'failed', differing: [], reason }
}

function unknown(reason: string): ChangeOutcome {
  return { state: 'unknown', differing: [], reason }
}
