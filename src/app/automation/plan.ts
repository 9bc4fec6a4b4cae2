import { desc, eq, sql } from 'drizzle-orm'
import { nodes, traceroutes } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { BROADCAST, formatNodeId } from '../../meshtastic/node-id.ts'
import type { Ports } from '../context.ts'
import { chooseRadio, findSender } from '../mesh/radios/choose-radio.ts'
import { isLocalNode } from '../mesh/ingest/sources.ts'
import { readTokens, type SpeakerFacts } from './facts.ts'
import type { Said } from './guards.ts'
import type { RuleOf, TimedRule } from './rules.ts'
import { render } from './template.ts'
import { HOUR_MS } from '../../shared/time.ts'

/** Traceroutes that are looked at for who was asked when. */
const RECENT_TRACEROUTES = 10_000

/** A packet that a rule would send, and the name of the radio that it goes by; null: there is none. */
export type Planned = { readonly radio: string | null } & (
  | {
      readonly kind: 'text' | 'tapback'
      readonly text: string
      readonly to: number
      readonly channel: number
      /** Packet id of what is answered; null: nothing. */
      readonly replyId: number | null
    }
  | { readonly kind: 'traceroute'; readonly to: number }
)

type Needs = Pick<Ports, 'store' | 'radio'>

const value = sql.placeholder

const isOurs = sql`(requested_by is not null or ${isLocalNode(sql`from_node_num`)})`

const asked = sql`(select to_node_num, max(timestamp) as asked_at from traceroutes
  where id > (select max(id) from traceroutes) - ${sql.raw(String(RECENT_TRACEROUTES))} and ${isOurs}
  group by to_node_num) a`

const queries = prepareOnce((db) => ({
  oldest: db
    .select({ nodeNum: nodes.nodeNum })
    .from(nodes)
    .leftJoin(asked, sql`a.to_node_num = ${nodes.nodeNum}`)
    .where(
      sql`${nodes.lastHeard} > ${value('since')} and ${nodes.nodeNum} <> ${value('own')}
        and not ${nodes.isLocal} and not ${nodes.isIgnored} and not ${nodes.viaMqtt}`,
    )
    .orderBy(sql`coalesce(a.asked_at, 0)`, desc(nodes.lastHeard))
    .limit(1)
    .prepare(),
  asked: db
    .select({ nodeNum: traceroutes.toNodeNum, at: sql<number>`max(${traceroutes.timestamp})` })
    .from(traceroutes)
    .where(
      sql`${traceroutes.toNodeNum} in (select value from json_each(${value('nodes')}))
        and ${isOurs}
        and ${traceroutes.id} > (select max(id) from traceroutes) - ${sql.raw(String(RECENT_TRACEROUTES))}`,
    )
    .groupBy(traceroutes.toNodeNum)
    .prepare(),
  local: db.select({ nodeNum: nodes.nodeNum }).from(nodes).where(eq(nodes.isLocal, true)).limit(1).prepare(),
}))

/** What a rule that is due would send; empty: there is no node to ask. */
export async function planRun(needs: Needs, rule: TimedRule, now: number): Promise<Planned[]> {
  switch (rule.kind) {
    case 'announce': {
      const planned: Planned[] = []
      for (const channel of rule.channels)
        planned.push(await planText(needs, rule, rule.text, { to: BROADCAST, channel }, now))
      return planned
    }
    case 'traceroute': {
      const to = await findTarget(needs, rule, now)
      return to === null ? [] : [await planTraceroute(needs, to)]
    }
    case 'schedule': {
      const { action } = rule
      if (action.kind === 'traceroute') return [await planTraceroute(needs, action.to)]
      const { text, to, channel } = action
      return [await planText(needs, rule, text, { to: to ?? BROADCAST, channel }, now)]
    }
    default:
      return rule satisfies never
  }
}

async function planText(
  needs: Needs,
  rule: TimedRule,
  text: string,
  { to, channel }: { readonly to: number; readonly channel: number },
  now: number,
): Promise<Planned> {
  const radio = await chooseRadio(needs, { to, channel, replyId: null })
  return {
    kind: 'text',
    text: render(text, await readTokens(needs, rule, now, radio)),
    to,
    channel,
    replyId: null,
    radio,
  }
}

async function planTraceroute(needs: Needs, to: number): Promise<Planned> {
  return { kind: 'traceroute', to, radio: await chooseRadio(needs, { to, channel: 0, replyId: null }) }
}

/** The node that was asked the longest ago, or never. */
async function findTarget(
  { store, radio }: Needs,
  { targets }: RuleOf<'traceroute'>,
  now: number,
): Promise<number | null> {
  const own = findSender(radio)?.nodeNum ?? (await queries(store).local.get())?.nodeNum ?? 0
  if (targets.kind === 'list') return oldestOf(store, targets.nodes, own)
  const since = now - targets.activeWithinHours * HOUR_MS
  return (await queries(store).oldest.get({ since, own }))?.nodeNum ?? null
}

async function oldestOf(store: Store, listed: readonly number[], own: number): Promise<number | null> {
  const rows = await queries(store).asked.all({ nodes: JSON.stringify(listed) })
  const askedAt = new Map(rows.map(({ nodeNum, at }) => [nodeNum, at]))
  const others = listed.filter((nodeNum) => nodeNum !== own)
  return others.toSorted((a, b) => (askedAt.get(a) ?? 0) - (askedAt.get(b) ?? 0))[0] ?? null
}

/** What is known of a message beside its words. */
export type Signal = {
  readonly packetId: number
  readonly hopsAway: number | null
  readonly snr: number | null
  readonly rssi: number | null
}

/** The answer to what somebody said, by the radio that heard it. */
export async function planAnswer(
  needs: Needs,
  rule: RuleOf<'acknowledge'>,
  {
    said,
    speaker,
    signal,
    now,
    radio,
  }: {
    said: Said
    speaker: SpeakerFacts
    signal: Signal
    now: number
    radio: string | null
  },
): Promise<Planned> {
  const { answer } = rule
  const replyId = signal.packetId === 0 ? null : signal.packetId
  const isToSender = said.isDirect || (answer.kind === 'text' && answer.direct)
  const way = { to: isToSender ? said.from : BROADCAST, channel: said.channel, replyId, radio }
  if (answer.kind === 'tapback') return { kind: 'tapback', text: answer.emoji, ...way }
  const values = {
    ...(await readTokens(needs, rule, now, radio)),
    senderLongName: speaker.longName ?? formatNodeId(said.from),
    senderShortName: speaker.shortName,
    senderId: formatNodeId(said.from),
    hops: signal.hopsAway,
    snr: signal.snr,
    rssi: signal.rssi,
  }
  return { kind: 'text', text: render(answer.text, values), ...way }
}

/** What is said; null for a traceroute. */
export function textOf(planned: readonly Planned[]): string | null {
  const first = planned[0]
  return first === undefined || first.kind === 'traceroute' ? null : first.text
}
