import { Config_DeviceConfig_Role } from '../../meshtastic/gen/config_pb.ts'
import type { Facts, SpeakerFacts } from './facts.ts'
import { GRACE_MS, type Said } from './kinds/kind.ts'
import { quietAt } from './local-time.ts'
import { type HeardRule, type Rule, type TimedRule, timingOf } from './rules.ts'
import type { Reason } from './runs.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../shared/time.ts'

/** Percent of the airtime that others already use. Above it nothing more is sent. */
const MAX_CHANNEL_UTILIZATION = 25
const MAX_AGE_MS = 5 * MINUTE_MS
const SENDER_COOLDOWN_MS = 60 * SECOND_MS
const COOLDOWN_MS = 10 * SECOND_MS
export const MAX_ANSWERS_PER_HOUR = 20
/** A shorter text of ours counts as an echo only if it is the whole message. */
const MIN_ECHO_LENGTH = 4

/** Why nothing can be sent at the moment; null: something can. */
export function sendingBlock(rule: Rule, facts: Facts, now: number): Reason | null {
  const { sender, channelUtilization } = facts
  if (quietAt(rule)(now)) return 'quiet_hours'
  if (sender === null || !sender.isConnected) return 'radio_unavailable'
  if (!sender.isTxEnabled) return 'tx_disabled'
  return channelUtilization !== null && channelUtilization > MAX_CHANNEL_UTILIZATION ? 'channel_busy' : null
}

/** Why nothing can be sent by any of these radios. */
export function blockEverywhere(rule: Rule, all: readonly Facts[], now: number): Reason | null {
  const blocks = all.map((facts) => sendingBlock(rule, facts, now))
  const [first = quietAt(rule)(now) ? 'quiet_hours' : 'radio_unavailable'] = blocks
  return blocks.includes(null) ? null : first
}

/** Earlier answers and messages. */
export type Past = {
  /** It was already considered for this rule. */
  readonly isKnown: boolean
  /** The number of answers within the last hour, of all rules. */
  readonly answers: readonly { readonly t: number; readonly nodeNum: number | null }[]
  /** The number of messages that automations sent within the last hour. */
  readonly ownTexts: readonly string[]
}

/** Why something that a rule listens to gets no answer. */
export function answerBlock(
  rule: HeardRule,
  said: Said,
  { speaker, past, facts, now }: { speaker: SpeakerFacts; past: Past; facts: Facts; now: number },
): Reason | null {
  return originBlock(said, speaker, past, now) ?? sendingBlock(rule, facts, now) ?? rateBlock(said, past, now)
}

function originBlock(said: Said, speaker: SpeakerFacts, past: Past, now: number): Reason | null {
  if (speaker.isLocal) return 'own_message'
  if (said.isSuspected) return 'spoof_suspected'
  if (said.isReplayed) return 'replayed'
  if (said.isViaMqtt) return 'via_mqtt'
  if (past.isKnown) return 'duplicate'
  if (now - Math.min(said.rxTime ?? said.receivedAt, said.receivedAt) > MAX_AGE_MS) return 'too_old'
  if (speaker.isIgnored) return 'ignored_node'
  if (said.isReply) return 'is_answer'
  if (said.isSensor || isDevice(speaker.role) || readsLikeBot(said.text)) return 'bot'
  return past.ownTexts.some((text) => isEcho(said.text, text)) ? 'echo' : null
}

function rateBlock({ from }: Said, { answers }: Past, now: number): Reason | null {
  // An answer in the future was recorded by a wrong clock.
  const recent = answers.filter(({ t }) => t <= now && now - t < HOUR_MS)
  const isWithin = (ms: number) => (answer: (typeof recent)[number]) => now - answer.t < ms
  if (recent.filter(({ nodeNum }) => nodeNum === from).some(isWithin(SENDER_COOLDOWN_MS))) return 'cooldown_sender'
  if (recent.some(isWithin(COOLDOWN_MS))) return 'cooldown'
  return recent.length >= MAX_ANSWERS_PER_HOUR ? 'hourly_limit' : null
}

/** Roles of devices that usually run unattended. Devices with other roles belong to people who carry them. */
const DEVICE_ROLES: ReadonlySet<number> = new Set([
  Config_DeviceConfig_Role.ROUTER,
  Config_DeviceConfig_Role.ROUTER_LATE,
  Config_DeviceConfig_Role.REPEATER,
  Config_DeviceConfig_Role.TRACKER,
  Config_DeviceConfig_Role.TAK_TRACKER,
  Config_DeviceConfig_Role.SENSOR,
  Config_DeviceConfig_Role.LOST_AND_FOUND,
])

function isDevice(role: number | null): boolean {
  return role !== null && DEVICE_ROLES.has(role)
}

/** How answers of other programs begin. */
const BOT_BEGINNINGS = [
  '🤖',
  '[bot]',
  'bot:',
  '[auto]',
  'auto:',
  'auto-reply',
  'autoreply',
  'auto reply',
  'pong',
  'ack ',
]

function readsLikeBot(text: string): boolean {
  const said = text.trim().toLowerCase()
  return said === 'ack' || BOT_BEGINNINGS.some((beginning) => said.startsWith(beginning))
}

function isEcho(said: string, own: string): boolean {
  const [heard, sent] = [said.trim().toLowerCase(), own.trim().toLowerCase()]
  return heard === sent || (sent.length >= MIN_ECHO_LENGTH && heard.includes(sent))
}

/** Why a due run is skipped. */
export function slotBlock(
  rule: TimedRule,
  { slot, lastFiredAt, facts, now }: { slot: number; lastFiredAt: number | null; facts: Facts; now: number },
): Reason | null {
  if (lastFiredAt !== null && lastFiredAt <= now && slot - lastFiredAt < leastGap(rule)) return 'too_soon'
  return sendingBlock(rule, facts, now)
}

/**
 * Two runs never come closer together than this, even if a pattern is dense on rare days or a clock was wrong for a
 * while.
 */
function leastGap(rule: TimedRule): number {
  const timing = timingOf(rule)
  return 'cron' in timing ? timing.leastGapMs : timing.everyMs - GRACE_MS
}
