import { and, count, eq, gt, inArray, sql } from 'drizzle-orm'
import { nodes, sources } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { formatNodeId } from '../../meshtastic/node-id.ts'
import type { Ports } from '../base/context.ts'
import { ableSenders, findSender, listSenders, type Sender } from '../mesh/radios/choose-radio.ts'
import { readSettings } from '../settings/settings.ts'
import { localDate, localTime } from './local-time.ts'
import type { TokenValues } from './template.ts'
import { OWN_KINDS } from '../../shared/mesh/link-kinds.ts'
import { HOUR_MS } from '../../shared/time.ts'

/** Older measurements do not show how busy the channel is now. */
const RECENT_MS = HOUR_MS

/** Data that automation needs before it sends. */
export type Facts = {
  /** Null: there is no radio. */
  readonly sender: Sender | null
  /** Percent, as the radio recently measured it; null: not reported. */
  readonly channelUtilization: number | null
}

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  node: db
    .select()
    .from(nodes)
    .where(eq(nodes.nodeNum, value('nodeNum')))
    .prepare(),
  local: db
    .select({ nodeNum: sources.localNodeNum, firmwareVersion: sources.firmwareVersion })
    .from(sources)
    .where(and(sql`${sources.localNodeNum} is not null`, inArray(sources.kind, OWN_KINDS)))
    .orderBy(sources.id)
    .prepare(),
  // Whoever receives the text would learn of hidden nodes.
  nodes: db
    .select({ n: count() })
    .from(nodes)
    .where(sql`not ${nodes.isHidden}`)
    .prepare(),
  active: db
    .select({ n: count() })
    .from(nodes)
    .where(and(gt(nodes.lastHeard, value('since')), sql`not ${nodes.isHidden}`))
    .prepare(),
}))

/** The facts of the radio `source`, or of the one that sends by default if none is named. */
export async function readFacts(
  { store, radio }: Pick<Ports, 'store' | 'radio'>,
  now: number,
  source: string | null = null,
): Promise<Facts> {
  const sender = senderNamed(radio, source)
  const nodeNum = sender?.nodeNum ?? null
  const node = nodeNum === null ? undefined : await queries(store).node.get({ nodeNum })
  const measuredAt = node?.deviceMetricsTime ?? null
  const isRecent = measuredAt !== null && measuredAt > now - RECENT_MS
  return { sender, channelUtilization: isRecent ? (node?.channelUtilization ?? null) : null }
}

/** The facts of each radio that can send, or else of the first one. */
export async function listFacts(needs: Pick<Ports, 'store' | 'radio'>, now: number): Promise<Facts[]> {
  const facts: Facts[] = []
  for (const { source } of ableSenders(needs.radio)) facts.push(await readFacts(needs, now, source))
  return facts
}

function senderNamed(radio: Ports['radio'], source: string | null): Sender | null {
  return listSenders(radio).find((sender) => sender.source === source) ?? findSender(radio)
}

/** The values at `now` of the tokens in every text that the radio `source` sends. */
export async function readTokens(
  { store, radio }: Pick<Ports, 'store' | 'radio'>,
  { timeZone }: { readonly timeZone: string },
  now: number,
  source: string | null,
): Promise<TokenValues> {
  const prepared = queries(store)
  const locals = await prepared.local.all()
  const nodeNum = senderNamed(radio, source)?.nodeNum ?? locals[0]?.nodeNum ?? null
  const node = nodeNum === null ? undefined : await prepared.node.get({ nodeNum })
  const { nodeActiveSeconds } = await readSettings(store)
  return {
    longName: node?.longName ?? null,
    shortName: node?.shortName ?? null,
    nodeId: nodeNum === null ? null : formatNodeId(nodeNum),
    nodes: (await prepared.nodes.get())?.n ?? 0,
    active: (await prepared.active.get({ since: now - nodeActiveSeconds * 1000 }))?.n ?? 0,
    date: localDate(timeZone)(now),
    time: localTime(timeZone)(now),
    version: locals.find((local) => local.nodeNum === nodeNum)?.firmwareVersion ?? null,
  }
}

/** What is known about a node that sent a message. */
export type SpeakerFacts = Pick<typeof nodes.$inferSelect, 'longName' | 'shortName' | 'role' | 'isIgnored'> & {
  /** It is one of our radios. */
  readonly isLocal: boolean
}

/** A node that nothing is known about. */
export const UNKNOWN_SPEAKER: SpeakerFacts = {
  longName: null,
  shortName: null,
  role: null,
  isIgnored: false,
  isLocal: false,
}

export async function readSpeaker(store: Store, nodeNum: number): Promise<SpeakerFacts> {
  const prepared = queries(store)
  const node = await prepared.node.get({ nodeNum })
  const isSource = (await prepared.local.all()).some((local) => local.nodeNum === nodeNum)
  const { longName, shortName, role, isIgnored } = node ?? UNKNOWN_SPEAKER
  return { longName, shortName, role, isIgnored, isLocal: isSource || node?.isLocal === true }
}
