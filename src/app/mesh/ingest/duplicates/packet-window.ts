import { HOUR_MS } from '../../../../shared/time.ts'
import type { Trust } from '../../../../shared/mesh/packets.ts'

/** How long packets are recognised, and how many of them. */
export const WINDOW_MS = 6 * HOUR_MS
export const WINDOW_SIZE = 50_000

/** One reception of a packet. */
export type Arrival = {
  readonly from: number
  readonly id: number
  readonly at: number
  readonly hopsAway: number | null
  /** False if nothing in it could be decoded. */
  readonly isReadable: boolean
  /** How certain the sender is. */
  readonly trustLevel?: Trust
  /** One of our own radios heard it off the air. */
  readonly isHeard?: boolean
}

/**
 * `first`: the packet is new; `copy`: nothing new; `shorter`: a copy with fewer hops; `surer`: a copy whose sender is
 * more certain; `heard`: the first copy that one of our own radios heard; `repeated`: a signed packet that was sent
 * again long after it was first stored.
 */
type Sighting = 'first' | 'copy' | 'shorter' | 'surer' | 'heard' | 'repeated'

/** Packets of one batch. Other batches see them only after `commit`. */
export type Sightings = {
  see(arrival: Arrival): Sighting
  /** Whether a packet was seen, in this batch or before. */
  knows(from: number, id: number): boolean
  /** From now on, arrivals of this packet in this batch are `repeated`. */
  mark(packet: { readonly from: number; readonly id: number }): void
  commit(): void
}

export type PacketWindow = { open(): Sightings; readonly size: number }

type Entry = Required<Pick<Arrival, 'at' | 'hopsAway' | 'isReadable' | 'trustLevel' | 'isHeard'>>

/** Recognises packets by sender and id: for 6 hours, the latest 50,000. A packet without an id is always new. */
export function createPacketWindow(): PacketWindow {
  const entries = new Map<string, Entry>()
  return {
    get size() {
      return entries.size
    },
    open() {
      const staged = new Map<string, Entry>()
      const repeated = new Set<string>()
      return {
        see(arrival) {
          if (arrival.id === 0) return 'first'
          const key = `${arrival.from}:${arrival.id}`
          if (repeated.has(key)) return 'repeated'
          const entry = staged.get(key) ?? entries.get(key)
          const known = entry !== undefined && arrival.at - entry.at <= WINDOW_MS ? entry : undefined
          const sighting = compare(known, arrival)
          if (sighting !== 'copy') staged.set(key, merge(known, arrival))
          return sighting
        },
        knows: (from, id) => staged.has(`${from}:${id}`) || entries.has(`${from}:${id}`),
        mark: ({ from, id }) => void repeated.add(`${from}:${id}`),
        commit() {
          for (const [key, entry] of staged) {
            entries.delete(key)
            entries.set(key, entry)
          }
          forget(entries)
        },
      }
    },
  }
}

const SURENESS = { plain: 0, signed: 1, own: 2 } as const satisfies Record<Trust, number>

function compare(
  known: Entry | undefined,
  { hopsAway, isReadable, trustLevel = 'plain', isHeard = false }: Arrival,
): Sighting {
  if (known === undefined || (isReadable && !known.isReadable)) return 'first'
  if (isReadable && SURENESS[trustLevel] > SURENESS[known.trustLevel]) return 'surer'
  if (isHeard && !known.isHeard && isReadable) return 'heard'
  if (!isReadable || hopsAway === null) return 'copy'
  return known.hopsAway === null || hopsAway < known.hopsAway ? 'shorter' : 'copy'
}

/** The six hours count from the first arrival. */
function merge(
  known: Entry | undefined,
  { at, hopsAway, isReadable, trustLevel = 'plain', isHeard = false }: Arrival,
): Entry {
  const fewest = [known?.hopsAway, hopsAway].filter((hops) => hops !== null && hops !== undefined)
  return {
    at: known?.at ?? at,
    hopsAway: fewest.length === 0 ? null : Math.min(...fewest),
    isReadable,
    trustLevel: surer(known?.trustLevel, trustLevel),
    isHeard: known?.isHeard === true || isHeard,
  }
}

function surer(known: Trust = 'plain', now: Trust): Trust {
  return SURENESS[known] > SURENESS[now] ? known : now
}

/** Entries are ordered by their last change, which is nearly the order of their age. */
function forget(entries: Map<string, Entry>): void {
  for (const key of entries.keys()) {
    if (entries.size <= WINDOW_SIZE) return
    entries.delete(key)
  }
}
