import type { Hearing } from './radio.ts'
import { and, desc, eq, inArray, sql } from 'drizzle-orm'
import { messages, sources } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import type { Ports } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { type ChannelTable, configuredRadios, readChannelTable } from './channel-table.ts'
import { receptionsOf } from './receptions-of.ts'
import { isOwnKind } from '../../../shared/mesh/link-kinds.ts'
import { HOUR_MS } from '../../../shared/time.ts'

/** Among radios that heard a node at about the same time, the one with the fewest hops reaches it best. */
const RECENT_MS = HOUR_MS
/** The number of a channel's messages that are searched for the answered one. */
const ANSWERED_MESSAGES = 20_000

/** A radio that could send a packet. */
export type Sender = {
  /** Name of its source. */
  readonly source: string
  readonly nodeNum: number | null
  readonly isConnected: boolean
  readonly isTxEnabled: boolean
}

/** The destination of a packet. */
type Destination = {
  readonly to: number
  readonly channel: number
  /** ID of the packet that it answers; null: none. */
  readonly replyId: number | null
}

const value = sql.placeholder

const queries = prepareOnce((db) => {
  const found = { id: messages.id, direction: messages.direction, source: sources.name }
  const newest = sql`(select max(id) from messages)`
  return {
    ofNodes: db
      .select(found)
      .from(messages)
      .leftJoin(sources, eq(sources.id, messages.sourceId))
      .where(
        and(
          inArray(messages.fromNodeNum, sql`(select value from json_each(${value('nodes')}))`),
          eq(messages.packetId, value('replyId')),
        ),
      )
      .orderBy(desc(messages.id))
      .limit(1)
      .prepare(),
    ofChannel: db
      .select(found)
      .from(messages)
      .leftJoin(sources, eq(sources.id, messages.sourceId))
      .where(
        and(
          eq(messages.channel, value('channel')),
          sql`${messages.id} > ${newest} - ${sql.raw(String(ANSWERED_MESSAGES))}`,
          eq(messages.packetId, value('replyId')),
        ),
      )
      .orderBy(desc(messages.id))
      .limit(1)
      .prepare(),
    heardBy: db
      .select({ source: sources.name })
      .from(receptionsOf(value('id')))
      .innerJoin(sources, sql`${sources.id} = x.source_id`)
      .where(sql`x.gateway = 0`)
      .orderBy(sql`coalesce(x.hops_away, 256)`, sql`x.t`)
      .prepare(),
  }
})

/** All radios of this process, in their order. */
export function listSenders(radio: Ports['radio']): Sender[] {
  return (radio?.links() ?? [])
    .filter(({ kind }) => isOwnKind(kind))
    .map(({ name, state, radio, txEnabled }) => {
      const nodeNum = radio?.nodeNum ?? null
      const isConnected = state === 'connected' && nodeNum !== null
      return { source: name, nodeNum, isConnected, isTxEnabled: txEnabled !== false }
    })
}

/** The radios that can send, or else the first one, which gives the reason. */
export function ableSenders(radio: Ports['radio']): Sender[] {
  const senders = listSenders(radio)
  const able = senders.filter(({ isConnected, isTxEnabled }) => isConnected && isTxEnabled)
  return able.length > 0 ? able : senders.slice(0, 1)
}

/** The radio that `Radio.reserve` chooses if none is named. Decision: docs/decisions/which-radio-sends.md */
export function findSender(radio: Ports['radio']): Sender | null {
  return ableSenders(radio)[0] ?? null
}

/** Throws `invalid_request` when this process has no such radio. */
export function requireSender(radio: Ports['radio'], source: string): void {
  if (listSenders(radio).some((sender) => sender.source === source)) return
  const message = 'this service has no such radio'
  throw new AppError('invalid_request', `radio: ${message}`, { issues: [{ path: 'radio', message }] })
}

/**
 * The name of the radio that sends, among those that can send and have the channel: the one that received the answered
 * packet, the one that hears the receiver best, or the first one. Null: there is no radio.
 */
export async function chooseRadio(
  { store, radio }: Pick<Ports, 'store' | 'radio'>,
  destination: Destination,
): Promise<string | null> {
  const { to } = destination
  const able = ableSenders(radio)
  if (able.length < 2) return able[0]?.source ?? null
  const table = await readChannelTable(store, configuredRadios(radio))
  const others = able.filter(({ nodeNum }) => nodeNum !== to)
  const fitting = fittest(others.length > 0 ? others : able, ({ source }) => fitOf(table, source, destination))
  const names = fitting.map(({ source }) => source)
  return (
    (await findAnswered(store, destination, able, names)) ??
    (to === BROADCAST ? undefined : bestHearing(radio?.hearings(to) ?? [], names)) ??
    names[0] ??
    null
  )
}

function fittest(senders: readonly Sender[], fit: (sender: Sender) => number): Sender[] {
  const best = Math.max(...senders.map(fit))
  return senders.filter((sender) => fit(sender) === best)
}

/** How certain it is that a radio has the channel. */
function fitOf(table: ChannelTable, source: string, { to, channel }: Destination): number {
  // Packets to one node are usually in no channel.
  if (to !== BROADCAST && channel === 0) return 0
  if (table.has(source, channel)) return 2
  return table.indexIn(source, channel) === null ? 0 : 1
}

async function findAnswered(
  store: Store,
  { to, channel, replyId }: Destination,
  able: readonly Sender[],
  names: readonly string[],
): Promise<string | undefined> {
  if (replyId === null) return undefined
  const { ofNodes, ofChannel, heardBy } = queries(store)
  const nodes = JSON.stringify([to, ...able.flatMap(({ nodeNum }) => nodeNum ?? [])])
  const message = await (to === BROADCAST ? ofChannel.get({ channel, replyId }) : ofNodes.get({ nodes, replyId }))
  if (message === undefined) return undefined
  const heard = message.direction === 'out' ? [message] : await heardBy.all({ id: message.id })
  return heard.flatMap(({ source }) => source ?? []).find((source) => names.includes(source))
}

function bestHearing(hearings: readonly Hearing[], names: readonly string[]): string | undefined {
  const heard = hearings.filter(({ source }) => names.includes(source))
  const latest = Math.max(...heard.map(({ at }) => at))
  const hops = ({ hopsAway }: Hearing) => hopsAway ?? Infinity
  const [best] = heard
    .filter(({ at }) => at >= latest - RECENT_MS)
    .toSorted((a, b) => (hops(a) === hops(b) ? b.at - a.at : hops(a) - hops(b)))
  return best?.source
}
