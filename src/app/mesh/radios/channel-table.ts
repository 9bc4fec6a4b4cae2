import type { KnownChannel } from './known-channel.ts'
import type { LinkInfo } from './radio.ts'
import { and, desc, eq, sql } from 'drizzle-orm'
import { channels, sources } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import {
  FIRST_NUMBER,
  identifyChannel,
  nameIn,
  numberChannel,
  RADIO_CHANNELS,
} from '../../../meshtastic/channel-identity.ts'
import type { ChannelInfo } from '../../../meshtastic/config/channel-info.ts'
import { IS_CLAIMED, type Source } from './source-table.ts'
import { isOwnKind } from '../../../shared/mesh/link-kinds.ts'

/** Messages from a broker that arrived before a radio reported their channel. */
export type Refiling = { readonly source: string; readonly from: number; readonly to: number }

/**
 * Gives each channel one number across all sources. A channel of our radios has its channel index in the first radio
 * that has it. All other channels get the number from `numberChannel`, and so do those whose index is another channel
 * in an earlier radio.
 */
export type ChannelTable = {
  /** Adds what a source reports. */
  tell(channel: KnownChannel): void
  /**
   * The service's number for a source's channel. A radio passes the channel index, a broker the result of
   * `numberChannel`.
   */
  numberOf(source: string, reported: number): number
  /**
   * The radio's index for the channel with this number; null: it does not have the channel. Decision:
   * docs/decisions/short-decisions.md#a-text-goes-to-the-channel-not-to-its-index
   */
  indexIn(radio: string, number: number): number | null
  /** The identity of the channel that the radio reported under its own index; null: unknown, or disabled. */
  identityIn(radio: string, index: number): string | null
  /** Whether the radio reported a channel with this number. */
  has(radio: string, number: number): boolean
  /** The channels whose numbers are channel indexes, by number. Without an identity the name alone tells them apart. */
  identities(): ReadonlyMap<number, string>
  /** Each channel once, in the order of numbers. */
  list(): Omit<KnownChannel, 'kind' | 'identity' | 'lastHeard'>[]
  refilings(): Refiling[]
}

/**
 * The maximum read with each batch. The channels of our own radios come first, so that made-up ones cannot displace
 * them.
 */
const MAX_CHANNELS = 4000

const queries = prepareOnce((db) => ({
  all: db
    .select({
      source: sources.name,
      kind: sources.kind,
      index: channels.index,
      name: channels.name,
      role: channels.role,
      identity: channels.identity,
      lastHeard: channels.lastHeard,
      sourceId: channels.sourceId,
    })
    .from(channels)
    .innerJoin(sources, and(eq(sources.id, channels.sourceId), IS_CLAIMED))
    .orderBy(
      sql`${channels.index} >= ${RADIO_CHANNELS}`,
      sql`${sources.kind} = 'ingest'`,
      desc(channels.lastHeard),
      sources.id,
      channels.index,
    )
    .limit(MAX_CHANNELS)
    .prepare(),
}))

/**
 * `radios`: names of the configured ones, in their order; null if that is unknown here, so that all of them count.
 * Decision: docs/decisions/channel-numbers.md
 */
export async function readChannelTable(store: Store, radios: readonly string[] | null): Promise<ChannelTable> {
  const table = createChannelTable(radios)
  const known = await queries(store).all.all()
  for (const channel of known.toSorted((a, b) => a.sourceId - b.sourceId || a.index - b.index)) table.tell(channel)
  return table
}

/** Names of the configured radios, in their order; null for a runtime without radios. */
export function configuredRadios(radio: { links(): readonly LinkInfo[] } | null): string[] | null {
  return radio === null ? null : radio.links().flatMap(({ kind, name }) => (isOwnKind(kind) ? [name] : []))
}

export function createChannelTable(radios: readonly string[] | null): ChannelTable {
  const bySource = new Map<string, Map<number, KnownChannel>>()
  let ordered: Numbers | null = null
  const numbers = () => (ordered ??= numberChannels(bySource, radios))
  const at = (source: string, index: number) => bySource.get(source)?.get(index)
  const channelWith = (radio: string, number: number) =>
    [...(bySource.get(radio)?.values() ?? [])].find((slot) => isOn(slot) && numberOf(radio, slot.index) === number)
  const numberOf = (source: string, reported: number): number => {
    const index = currentNumber(reported)
    const identity = at(source, index)?.identity ?? null
    if (isRadioIndex(index)) return (identity === null ? undefined : numbers().byIdentity.get(identity)) ?? index
    // The name of a broker's channel may be lost on the way, but its number identifies it nearly as well. If the name
    // is known, it shows a made-up channel that has the number of one of ours.
    if (identity === null) return numbers().byNumber.get(index) ?? index
    return numbers().byIdentity.get(identity) ?? numberChannel(identity)
  }
  return {
    tell(channel) {
      const slots = bySource.get(channel.source) ?? new Map<number, KnownChannel>()
      bySource.set(channel.source, slots.set(channel.index, channel))
      ordered = null
    },
    numberOf,
    indexIn(radio, number) {
      // The radio itself decides about a channel that it has not reported.
      return channelWith(radio, number)?.index ?? (at(radio, number) === undefined ? number : null)
    },
    identityIn: (radio, index) => at(radio, index)?.identity ?? null,
    has: (radio, number) => channelWith(radio, number) !== undefined,
    identities() {
      const found = new Map<number, string>()
      for (const radio of numbers().radios) {
        for (const slot of bySource.get(radio)?.values() ?? []) {
          const number = numberOf(radio, slot.index)
          if (isOn(slot) && isRadioIndex(number) && !found.has(number))
            found.set(number, slot.identity ?? `?:${slot.name}`)
        }
      }
      return found
    },
    list() {
      const listed = new Map<number, KnownChannel>()
      const { radios: first } = numbers()
      for (const source of [...first, ...[...bySource.keys()].filter((name) => !first.includes(name))]) {
        for (const channel of bySource.get(source)?.values() ?? []) {
          const index = numberOf(source, channel.index)
          const known = listed.get(index)
          const isBetter = known === undefined || (first.includes(source) && !isOn(known) && isOn(channel))
          if (isBetter) listed.set(index, { ...channel, index, name: nameUnder(index, channel) })
        }
      }
      return [...listed.values()]
        .toSorted((a, b) => a.index - b.index)
        .map(({ source, index, name, role }) => ({ source, index, name, role }))
    },
    refilings: () =>
      [...bySource].flatMap(([source, slots]) =>
        [...slots.keys()]
          .map((from) => ({ source, from, to: numberOf(source, from) }))
          .filter(({ from, to }) => !isRadioIndex(from) && to !== from),
      ),
  }
}

/** A source's report at `heardAt`, as stored: a broker's channel is identified by number and name. */
export function toKnownChannel({ kind, name: source }: Source, reported: ChannelInfo, heardAt: number): KnownChannel {
  const index = currentNumber(reported.index)
  const role = reported.role === 'DISABLED' || reported.role === 'PRIMARY' ? reported.role : 'SECONDARY'
  const identity = isRadioIndex(index) ? reported.identity : identifyChannel(index % 256, reported.name)
  return { source, kind, index, name: reported.name, role, identity, lastHeard: isRadioIndex(index) ? null : heardAt }
}

/** Earlier collectors deliver the hash itself, unless it could be a channel index. */
function currentNumber(reported: number): number {
  return isRadioIndex(reported) || reported >= FIRST_NUMBER ? reported : FIRST_NUMBER + reported
}

function isRadioIndex(index: number): boolean {
  return index < RADIO_CHANNELS
}

/** An empty name has a meaning only for a radio's channel index. */
function nameUnder(index: number, { name, identity }: KnownChannel): string {
  return isRadioIndex(index) || identity === null ? name : nameIn(identity)
}

function isOn({ role }: KnownChannel): boolean {
  return role !== 'DISABLED'
}

type Numbers = {
  /** Radios in the order in which their channels get numbers. */
  readonly radios: readonly string[]
  readonly byIdentity: ReadonlyMap<string, number>
  /** By the number from `numberChannel`. */
  readonly byNumber: ReadonlyMap<number, number>
}

function numberChannels(
  bySource: ReadonlyMap<string, ReadonlyMap<number, KnownChannel>>,
  configured: readonly string[] | null,
): Numbers {
  const known = [...bySource].flatMap(([source, slots]) => {
    const [slot] = [...slots.values()].filter(({ index }) => isRadioIndex(index))
    return slot === undefined ? [] : [{ source, kind: slot.kind }]
  })
  const names = (all: typeof known) => all.map(({ source }) => source)
  const radios =
    configured === null
      ? names(known)
      : [...configured.filter((name) => bySource.has(name)), ...names(known.filter(({ kind }) => kind === 'ingest'))]
  const byIdentity = new Map<string, number>()
  const taken = new Set<number>()
  for (const radio of radios) {
    for (const { index, identity } of bySource.get(radio)?.values() ?? []) {
      if (identity === null || !isRadioIndex(index) || byIdentity.has(identity)) continue
      byIdentity.set(identity, taken.has(index) ? numberChannel(identity) : index)
      taken.add(index)
    }
  }
  const byNumber = new Map([...byIdentity].map(([identity, number]) => [numberChannel(identity), number]))
  return { radios, byIdentity, byNumber }
}
