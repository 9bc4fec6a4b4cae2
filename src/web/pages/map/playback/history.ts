import type { Message, Node } from '../../../state/mesh/nodes.ts'
import type { TimeSpan } from '../../../state/range.ts'
import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { type Silence, silencesIn } from './silences.ts'
import { decodeTrack, lastUpTo, movesBetween, placeAt, type Spot, type Track, worldOf } from './track.ts'

/** A direct reception or a hop stands this long, a report of neighbours longer: it comes every few hours. */
const LINK_MS = HOUR_MS
export const REPORT_MS = 6 * HOUR_MS

/** What is known of a node's past. */
type Past = {
  readonly node: Node
  track: Track
  /** Where it was at the time that was asked for last. */
  readonly spot: Spot & { t: number; isKnown: boolean }
  /** When it was heard, ascending. */
  heard: number[]
  /** Hours in which it was heard, if nothing more exact is known: their ends. */
  hours: number[]
  silences: readonly Silence[]
}

type Event = { readonly t: number; readonly snr: number | null; readonly end: number }

/** Two nodes of which one heard the other, each event with its signal and its end. */
type Pair = {
  readonly a: Past
  readonly b: Past
  readonly events: Event[]
  /** Of the events, ascending; and until when any of them up to each one stands. */
  times: number[]
  ends: number[]
  /** What was found last, and from when until when it is right: most pairs are the same in the next picture. */
  found: Event | null
  from: number
  until: number
}

/** How a node is drawn: heard lately, within a day, earlier or never; silent: for much longer than usual. */
export type NodeState = 0 | 1 | 2 | 'silent'

/** Something that happened, for the list. */
export type Happening =
  | { readonly kind: 'text'; readonly t: number; readonly message: Message }
  | { readonly kind: 'silent' | 'back'; readonly t: number; readonly node: Node; readonly since: number }

/** Some of the nodes, as `eachNode` takes them. */
export type Part = readonly Past[]
export type Parts = { readonly resting: Part; readonly others: Part }

export type Hop = { readonly from: number; readonly to: number; readonly snr: number | null; readonly t: number }

/** What is stored of a range, filled while it is loaded. */
export type History = {
  readonly span: TimeSpan
  /** Reads the answers of the routes of playback, and what the other lists say. */
  addTracks(tracks: readonly { readonly nodeNum: number; readonly points: readonly number[] }[]): void
  addHeard(nodeNum: number, times: readonly number[]): void
  addHours(nodeNum: number, hours: readonly number[]): void
  addHops(hops: readonly Hop[], standsMs?: number): void
  addTexts(texts: readonly Message[]): void
  /** Makes what was added visible. */
  settle(): void
  /** The nodes in two parts: those that stay where they are until a time, and the others. */
  part(from: number, to: number): Parts
  /** Calls back for each of them that has a place at a time. */
  eachNode(part: Part, t: number, draw: (node: Node, spot: Readonly<Spot>, state: NodeState) => void): void
  /** Calls back for each pair of which one heard the other; `age` is from 0, new, to 1. */
  eachPair(t: number, draw: (a: Readonly<Spot>, b: Readonly<Spot>, snr: number | null, age: number) => void): void
  /** The latest things up to a time, newest first. */
  latest(t: number, count: number): readonly Happening[]
  /** Where a node is; null: unknown. */
  placeOf(nodeNum: number, t: number): Readonly<Spot> | null
  /** Whether nothing at all is known. */
  isEmpty(): boolean
}

/** `activeMs`: how long a node counts as active. Without `isHeardKnown`, all nodes do. */
export function createHistory(
  span: TimeSpan,
  nodes: readonly Node[],
  { activeMs, isHeardKnown }: { readonly activeMs: number; readonly isHeardKnown: boolean },
): History {
  const pasts = new Map(nodes.map((node) => [node.nodeNum, pastOf(node)]))
  const pairs = new Map<Past, Map<Past, Pair>>()
  const allPairs: Pair[] = []
  const texts = new Map<number, Message>()
  let happenings: Happening[] = []
  let times: number[] = []
  let isAny = false
  const changed = { heard: new Set<Past>(), pairs: new Set<Pair>() }
  const standsMs = Math.max(LINK_MS, (span.to - span.from) / 200)
  const spotOf = ({ node, track, spot }: Past, t: number): Readonly<Spot> | null => {
    if (spot.t !== t) {
      spot.t = t
      spot.isKnown = node.firstHeard <= t && placeAt(track, t, spot)
    }
    return spot.isKnown ? spot : null
  }
  const pairOf = (a: Past, b: Past): Pair => {
    const others = pairs.get(a) ?? new Map<Past, Pair>()
    const known = others.get(b)
    if (known !== undefined) return known
    const pair = { a, b, events: [], times: [], ends: [], found: null, from: NEVER, until: NEVER }
    pairs.set(a, others.set(b, pair))
    allPairs.push(pair)
    return pair
  }
  const stateOf = ({ heard, silences }: Past, t: number): NodeState => {
    if (!isHeardKnown) return 0
    const last = heard[lastUpTo(heard, t)]
    if (last === undefined) return 2
    if (silences.some(({ noticed, until }) => noticed <= t && (until === null || t < until))) return 'silent'
    return t - last < activeMs ? 0 : t - last < DAY_MS ? 1 : 2
  }
  return {
    span,
    addTracks: (tracks) => {
      for (const { nodeNum, points } of tracks) {
        const past = pasts.get(nodeNum)
        if (past === undefined) continue
        past.track = decodeTrack(points, span.from)
        past.spot.t = Number.NaN
        isAny = true
      }
    },
    addHeard: (nodeNum, found) => {
      const past = pasts.get(nodeNum)
      if (past === undefined) return
      past.heard.push(...found)
      changed.heard.add(past)
      isAny = true
    },
    addHours: (nodeNum, found) => {
      const past = pasts.get(nodeNum)
      if (past === undefined) return
      past.hours.push(...found)
      changed.heard.add(past)
    },
    addHops: (hops, stands = LINK_MS) => {
      for (const { from, to, snr, t } of hops) {
        const [a, b] = [pasts.get(Math.min(from, to)), pasts.get(Math.max(from, to))]
        if (a === undefined || b === undefined) continue
        const pair = pairOf(a, b)
        pair.events.push({ t, snr, end: t + Math.max(stands, standsMs) })
        changed.pairs.add(pair)
      }
      isAny ||= hops.length > 0
    },
    addTexts: (found) => {
      for (const message of found) texts.set(message.id, message)
      isAny ||= found.length > 0
    },
    settle: () => {
      for (const past of changed.heard) {
        past.heard = heardOf(past)
        past.hours = []
        past.silences = silencesIn(past.heard, span.to, activeMs)
      }
      for (const pair of changed.pairs) sortPair(pair)
      changed.heard.clear()
      changed.pairs.clear()
      happenings = [...happeningsOf(pasts.values(), texts.values(), span)].toSorted((a, b) => a.t - b.t)
      times = happenings.map(({ t }) => t)
    },
    part: (from, to) => {
      const rests = ({ node, track }: Past) =>
        !movesBetween(track, from, to) && (node.firstHeard <= from || node.firstHeard > to)
      const resting: Past[] = []
      const others: Past[] = []
      for (const past of pasts.values()) (rests(past) ? resting : others).push(past)
      return { resting, others }
    },
    eachNode: (part, t, draw) => {
      for (const past of part) {
        const spot = spotOf(past, t)
        if (spot !== null) draw(past.node, spot, stateOf(past, t))
      }
    },
    eachPair: (t, draw) => {
      for (const pair of allPairs) {
        if (t < pair.from || t >= pair.until) find(pair, t)
        if (pair.found === null) continue
        const [a, b] = [spotOf(pair.a, t), spotOf(pair.b, t)]
        if (a !== null && b !== null) draw(a, b, pair.found.snr, ageOf(pair.found, t))
      }
    },
    latest: (t, count) => {
      const end = lastUpTo(times, t) + 1
      return happenings.slice(Math.max(0, end - count), end).toReversed()
    },
    placeOf: (nodeNum, t) => {
      const past = pasts.get(nodeNum)
      return past === undefined ? null : spotOf(past, t)
    },
    isEmpty: () => !isAny,
  }
}

/** Until its track is loaded, a node is where it is now. */
function pastOf(node: Node): Past {
  const at = node.position === null ? null : worldOf(node.position.latitude, node.position.longitude)
  const track = at === null ? NO_TRACK : { times: [0], xs: [at.x], ys: [at.y] }
  const spot = { x: 0, y: 0, t: Number.NaN, isKnown: false }
  return { node, track, spot, heard: [], hours: [], silences: [] }
}

const NEVER = Number.POSITIVE_INFINITY
const NO_TRACK: Track = { times: [], xs: [], ys: [] }

/** All times, ascending; an hour counts only if nothing in it is known more exactly. */
function heardOf({ heard, hours }: Past): number[] {
  const exact = heard.toSorted((a, b) => a - b)
  const rough = hours.filter((end) => {
    const last = exact[lastUpTo(exact, end)]
    return last === undefined || last < end - HOUR_MS
  })
  return [...exact, ...rough].toSorted((a, b) => a - b)
}

function sortPair(pair: Pair): void {
  pair.events.sort((a, b) => a.t - b.t)
  pair.times = pair.events.map(({ t }) => t)
  let end = 0
  pair.ends = pair.events.map((event) => (end = Math.max(end, event.end)))
  pair.from = pair.until = NEVER
}

/** Finds the latest event up to a time, if any still stands then. */
function find(pair: Pair, t: number): void {
  const at = lastUpTo(pair.times, t)
  const [event, end, next] = [pair.events[at], pair.ends[at] ?? -NEVER, pair.times[at + 1] ?? NEVER]
  const stands = event !== undefined && t < end
  pair.found = stands ? { ...event, end } : null
  pair.from = stands ? event.t : end
  pair.until = stands ? Math.min(end, next) : next
}

const ageOf = ({ t: begun, end }: Event, t: number): number => Math.min(1, (t - begun) / (end - begun))

function* happeningsOf(pasts: Iterable<Past>, texts: Iterable<Message>, { from, to }: TimeSpan): Generator<Happening> {
  for (const message of texts) yield { kind: 'text', t: message.timestamp, message }
  for (const { node, silences } of pasts) {
    for (const { since, noticed, until } of silences) {
      if (noticed >= from && noticed < to) yield { kind: 'silent', t: noticed, node, since }
      if (until !== null && until >= from && until < to) yield { kind: 'back', t: until, node, since }
    }
  }
}
