import type { Heard } from '../mesh/heard/heard.ts'
import type { RadioEvent } from '../../meshtastic/radio-event.ts'
import { BROADCAST } from '../../meshtastic/node-id.ts'
import type { Packet } from '../../meshtastic/packet.ts'
import type { Ports } from '../base/context.ts'
import { AppError } from '../http/errors.ts'
import { configuredRadios, readChannelTable } from '../mesh/radios/channel-table.ts'
import { ableSenders } from '../mesh/radios/choose-radio.ts'
import { recallPackets } from '../mesh/ingest/duplicates/seen-packets.ts'
import type { SendCtx } from '../mesh/sending/send.ts'
import { forgetFutureAnchors, isCurrent, listAutomations } from './automations.ts'
import { readFacts, readSpeaker, type SpeakerFacts } from './facts.ts'
import { answerBlock, slotBlock } from './guards.ts'
import type { Said } from './kinds/kind.ts'
import type { Planned } from './kinds/planned.ts'
import { packetsOf } from './packets.ts'
import { heardKindOf, type HeardRule, isTimed, timedKindOf, type TimedRule } from './rules.ts'
import {
  claimRun,
  readAnswers,
  readSaid,
  type Reason,
  recordSkip,
  type RunPacket,
  settleRun,
  type Skip,
} from './runs.ts'
import { dueSlot, followingSlot } from './slots.ts'
import type { Automation } from './stored-rule.ts'

type Needs = Pick<Ports, 'store' | 'radio' | 'events' | 'log' | 'now'> & { readonly meter?: Ports['meter'] }

/** The number of considered messages that are remembered. */
const MAX_CONSIDERED = 2000

/** Executes the rules. Calls run one after the other. */
export type Engine = {
  /** Executes due runs, and returns when the next one is due; null: none. */
  runDue(): Promise<number | null>
  /** Answers messages of a stored batch. */
  /** `suspected`: events of the batch that seem to come from somebody else. */
  hear(batch: readonly Heard[], suspected: ReadonlySet<RadioEvent>): Promise<void>
}

export function createEngine(needs: Needs): Engine {
  const ctx: SendCtx = { ...needs, ip: null, requestId: null, viewer: null }
  const considered = createMemory()
  // Messages heard by an earlier process count as considered.
  const heardBefore = recallPackets(needs.store)
  return {
    async runDue() {
      const now = needs.now()
      await forgetFutureAnchors(needs.store, now)
      const next: number[] = []
      const { automations } = await listAutomations(needs, 'enabled')
      withdrawStale(needs, automations)
      for (const automation of automations) {
        const { rule } = automation
        if (!isTimed(rule)) continue
        await guarded(needs, automation, async () => {
          const due = dueSlot(rule, automation.anchorAt, now)
          const at = due.kind === 'later' ? due.at : followingSlot(rule, due.slot)
          if (at !== null) next.push(at)
          if (due.kind !== 'later') await runSlot(ctx, needs, { automation, rule, ...due })
        })
      }
      return next.length === 0 ? null : Math.min(...next)
    },
    async hear(batch, suspected) {
      const nums = new Map(ableSenders(needs.radio).map(({ source, nodeNum }) => [source, nodeNum]))
      const heardTexts = batch.flatMap((heard) => toText(heard, nums.get(heard.source.name) ?? null, suspected))
      if (heardTexts.length === 0) return
      const table = await readChannelTable(needs.store, configuredRadios(needs.radio))
      const texts = heardTexts.map((text) => underNumber(text, table.numberOf(text.radio, text.said.channel)))
      const { automations } = await listAutomations(needs, 'enabled')
      for (const text of texts) {
        for (const automation of automations) {
          const { rule } = automation
          if (isTimed(rule) || !heardKindOf(rule).listensTo(rule, text.said)) continue
          await guarded(needs, automation, () =>
            consider(ctx, needs, { automation, rule, ...text }, { considered, heardBefore }),
          )
        }
      }
    },
  }
}

/** Withdraws packets of rules that another process has changed since. */
function withdrawStale({ radio }: Needs, automations: readonly Automation[]): void {
  const revisions = new Map(automations.map(({ id, revision }) => [id, revision]))
  radio?.withdraw(({ automationId, revision }) => revisions.get(automationId) !== revision)
}

/** A failing rule does not keep others from running. */
async function guarded({ log }: Needs, { id, rule }: Automation, run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    log.error('An automation failed', { automation: id, name: rule.name, error })
  }
}

async function noteSkip(
  { store, meter }: Needs,
  { id, rule }: Automation,
  skip: Omit<Skip, 'automationId'>,
): Promise<void> {
  await recordSkip(store, { automationId: id, ...skip })
  meter?.countAutomation(rule.kind, 'skipped')
}

type SlotRun = {
  readonly automation: Automation
  readonly rule: TimedRule
  readonly kind: 'due' | 'missed'
  readonly slot: number
}

async function runSlot(ctx: SendCtx, needs: Needs, { automation, rule, kind, slot }: SlotRun): Promise<void> {
  const now = needs.now()
  const skip = (reason: Reason) => noteSkip(needs, automation, { reason, now, triggeredBy: null, slot })
  if (kind === 'missed') return skip('missed')
  const blockOf = async (radio: string | null) => {
    const facts = await readFacts(needs, now, radio)
    return slotBlock(rule, { slot, lastFiredAt: automation.lastFiredAt, facts, now })
  }
  const all = await timedKindOf(rule).plan(needs, rule, now)
  if (all.length === 0) return skip((await blockOf(null)) ?? 'no_target')
  const planned: Planned[] = []
  const held: Reason[] = []
  for (const packet of all) {
    const block = await blockOf(packet.radio)
    if (block === null) planned.push(packet)
    else held.push(block)
  }
  const [first] = held
  if (planned.length === 0 && first !== undefined) return skip(first)
  const claim = { triggeredBy: null, slot, key: `slot ${slot}`, planned, held }
  const refusal = await claimAndSend(ctx, needs, automation, claim)
  if (refusal !== null) await skip(refusal)
}

/** A message in the form that rules compare, its packet, and the radio that heard it. */
type Text = { readonly said: Said; readonly packet: Packet; readonly radio: string }

/** Empty if no radio that could answer heard it. */
function toText(
  { source, event, isLate = false }: Heard,
  own: number | null,
  suspected: ReadonlySet<RadioEvent>,
): Text[] {
  if (own === null || event.type !== 'packet' || event.packet.payload.kind !== 'text') return []
  const { packet, receivedAt, replayed } = event
  const isDirect = packet.to === own
  if (!isDirect && packet.to !== BROADCAST) return []
  const { from, replyId, rxTime } = packet
  // Node 0 does not exist, and an answer to the broadcast number would go to everybody.
  if (from === 0 || from === BROADCAST) return []
  const said = {
    from,
    isDirect,
    // A message that was encrypted for us alone belongs to no channel.
    channel: isDirect && packet.pkiEncrypted ? 0 : packet.channel,
    text: event.packet.payload.text,
    isReply: replyId !== null || packet.isEmoji,
    isSensor: event.packet.payload.origin === 'detection',
    rxTime,
    receivedAt,
    isReplayed: replayed || isLate,
    isSuspected: suspected.has(event),
    isViaMqtt: packet.viaMqtt,
  }
  return [{ said, packet, radio: source.name }]
}

/** Rules use the service's channel numbers, regardless of the channel index in the radio that heard the message. */
function underNumber(text: Text, channel: number): Text {
  return { ...text, said: { ...text.said, channel } }
}

type Question = Text & { readonly automation: Automation; readonly rule: HeardRule }
type Asked = Question & { readonly speaker: SpeakerFacts; readonly key: string }

async function consider(
  ctx: SendCtx,
  needs: Needs,
  { automation, rule, said, packet, radio }: Question,
  { considered, heardBefore }: { readonly considered: Memory; readonly heardBefore: ReturnType<typeof recallPackets> },
): Promise<void> {
  const { store } = needs
  const now = needs.now()
  const key = `packet ${packet.from} ${packet.id === 0 ? `at ${said.receivedAt}` : packet.id}`
  // Neither a forgery nor a copy from a broker replaces the sender's own packet with the same ID.
  const firstRadio = said.isSuspected || said.isViaMqtt ? null : considered.add(`${automation.id} ${key}`, radio)
  // Our radios hear the same mesh, so one of them is enough.
  if (firstRadio !== null && firstRadio !== radio) return
  const isKnown = firstRadio !== null || (await heardBefore(packet))
  const speaker = await readSpeaker(store, said.from)
  const past = { isKnown, answers: await readAnswers(store, now), ownTexts: await readSaid(store, now) }
  const facts = await readFacts(needs, now, radio)
  const reason =
    answerBlock(rule, said, { speaker, past, facts, now }) ??
    (await answer(ctx, needs, { automation, rule, said, packet, radio, speaker, key }))
  if (reason !== null) {
    await noteSkip(needs, automation, { reason, now, triggeredBy: said.from, slot: null })
  }
}

async function answer(ctx: SendCtx, needs: Needs, question: Asked): Promise<Reason | null> {
  const { automation, rule, said, packet, radio, speaker, key } = question
  const { id: packetId, hopsAway, snr, rssi } = packet
  const signal = { packetId, hopsAway, snr, rssi }
  const planned = [await heardKindOf(rule).answer(needs, rule, { said, speaker, signal, now: needs.now(), radio })]
  return claimAndSend(ctx, needs, automation, { triggeredBy: said.from, slot: null, key, planned, held: [] })
}

type Sending = {
  readonly triggeredBy: number | null
  readonly slot: number | null
  readonly key: string
  readonly planned: readonly Planned[]
  /** Why the remaining packets of the run are not sent. */
  readonly held: readonly Reason[]
}

/** Why the run was not started; null: it was started and has its result. */
async function claimAndSend(
  ctx: SendCtx,
  needs: Needs,
  { id: automationId, revision, rule }: Automation,
  { planned, held, ...sending }: Sending,
): Promise<Reason | null> {
  const { store, log, meter } = needs
  const automatic = { automationId, revision, name: rule.name, isCurrent: () => isCurrent(store, automatic) }
  const claim = await claimRun(store, {
    ...sending,
    automationId,
    revision,
    now: needs.now(),
    text: textOf(planned[0]),
  })
  if (claim.kind === 'refused') return claim.reason
  const packets: RunPacket[] = []
  const reasons: Reason[] = [...held]
  for (const packet of planned) {
    try {
      packets.push(await packetsOf(packet).send(ctx, packet, automatic))
    } catch (error) {
      const reason = reasonOf(error, packet)
      if (reason === 'error') log.error('An automation failed', { automation: automationId, name: rule.name, error })
      reasons.push(reason)
    }
  }
  const reason = reasons[0] ?? null
  const isNothing = packets.length === 0 && reason !== 'error'
  const outcome = reason === null ? 'sent' : isNothing ? 'skipped' : 'failed'
  await settleRun(store, claim.id, { outcome, reason, packets })
  meter?.countAutomation(rule.kind, outcome)
  return null
}

function textOf(packet: Planned | undefined): string | null {
  return packet === undefined ? null : packetsOf(packet).textOf(packet)
}

function reasonOf(error: unknown, packet: Planned): Reason {
  if (!(error instanceof AppError)) return 'error'
  switch (error.code) {
    case 'radio_unavailable':
    case 'queue_full':
    case 'text_too_long':
      return error.code
    case 'automation_changed':
      return 'changed'
    case 'invalid_request':
      return packetsOf(packet).invalid
    default:
      return 'error'
  }
}

/** A map of limited size that forgets its oldest entries. */
type Memory = {
  /** Returns the existing value of the key. Null: there was none, and `value` is now stored. */
  add(key: string, value: string): string | null
}

function createMemory(): Memory {
  const values = new Map<string, string>()
  return {
    add(key, value) {
      const known = values.get(key)
      if (known !== undefined) return known
      values.set(key, value)
      const [oldest] = values.keys()
      if (values.size > MAX_CONSIDERED && oldest !== undefined) values.delete(oldest)
      return null
    },
  }
}
