import type { HeardPage } from '../../../../app/mesh/playback/heard.ts'
import type { HourPage } from '../../../../app/mesh/playback/hours.ts'
import type { TrackPage } from '../../../../app/mesh/playback/tracks.ts'
import type { PacketPage } from '../../../../app/mesh/topology/packets.ts'
import { api, askAs, isRecord } from '../../../api.ts'
import { ANSWERED, type TraceroutePage, waysOf } from '../../../parts/mesh/traceroute.ts'
import type { MessagePage } from '../../../state/mesh/nodes.ts'
import { can } from '../../../state/session.ts'
import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { type History, type Hop, REPORT_MS } from './history.ts'

const NEIGHBOR_PORT = '71'
/** Pages of the lists, the newest first: more would take long to load, and much memory. */
const MAX_PAGES = 20

/**
 * Loads what is stored of the range, as far as the user may see it, and returns whether that is all. `onPage` is called
 * after each answer; it returns whether to continue. Throws `ApiError`.
 */
export async function loadHistory(
  history: History,
  onPage: (part: 'tracks' | 'heard' | 'rest') => boolean,
): Promise<boolean> {
  const { from, to } = history.span
  const time = { from: String(from), to: String(to) }
  const list = { since: String(from), until: String(to), limit: '500' }
  const mayHear = can('info', 'read')
  const lists = await Promise.all([
    inPages(async (after) => {
      const page = await askAs<TrackPage>(api.playback.tracks.$get({ query: { ...time, after } }))
      history.addTracks(page.tracks)
      return onPage('tracks') ? page.next : null
    }),
    !mayHear ||
      inPages(async (after) => {
        const page = await askAs<HeardPage>(api.playback.heard.$get({ query: { ...time, after } }))
        addHeard(history, page)
        return onPage('heard') ? page.next : null
      }),
    !mayHear ||
      inPages(async (after) => {
        // A day more: it tells who was heard before the range begins.
        const query = { from: String(Math.max(0, from - DAY_MS)), to: time.to, after }
        const page = await askAs<HourPage>(api.playback.hours.$get({ query }))
        for (const { nodeNum, hours } of page.heard) {
          history.addHours(
            nodeNum,
            summed(hours).map((hour) => (hour + 1) * HOUR_MS),
          )
        }
        return onPage('rest') ? page.next : null
      }),
    !mayHear ||
      inPages(async (_, before) => {
        const query = { ...list, ...before, limit: '200', answered: 'true' as const }
        const page = await askAs<TraceroutePage>(api.traceroutes.$get({ query }))
        history.addHops(page.traceroutes.flatMap(hopsOfRoute))
        return onPage('rest') ? page.nextBefore : null
      }),
    !mayHear ||
      inPages(async (_, before) => {
        const page = await askAs<PacketPage>(api.packets.$get({ query: { ...list, ...before, port: NEIGHBOR_PORT } }))
        history.addHops(page.packets.flatMap(hopsOfReport), REPORT_MS)
        return onPage('rest') ? page.nextBefore : null
      }),
    !can('messages', 'read') ||
      inPages(async (_, before) => {
        const page = await askAs<MessagePage>(api.messages.$get({ query: { ...list, ...before } }))
        history.addTexts(page.messages)
        return onPage('rest') ? page.nextBefore : null
      }),
  ])
  return lists.every(Boolean)
}

type Before = { readonly before?: string }

/**
 * Asks for page after page; `ask` returns where the next one begins. Some routes begin after it, others before it.
 * Returns whether the last one was reached.
 */
async function inPages(ask: (after: string, before: Before) => Promise<number | null>): Promise<boolean> {
  let next = await ask('0', {})
  for (let pages = 1; next !== null && pages < MAX_PAGES; pages++) {
    next = await ask(String(next), { before: String(next) })
  }
  return next === null
}

function addHeard(history: History, { step, heard, links }: HeardPage): void {
  const { from } = history.span
  const timesOf = (steps: readonly number[]) => summed(steps).map((at) => from + at * step)
  for (const { nodeNum, at } of heard) history.addHeard(nodeNum, timesOf(at))
  history.addHops(
    links.flatMap(({ from: a, to: b, at, snr }) =>
      timesOf(at).map((t, index) => ({ from: a, to: b, t, snr: snr[index] ?? null })),
    ),
  )
}

/** Numbers of which each is the difference from the one before. */
function summed(differences: readonly number[]): number[] {
  let sum = 0
  return differences.map((each) => (sum += each))
}

function hopsOfRoute(trace: TraceroutePage['traceroutes'][number]): Hop[] {
  if (trace.state !== ANSWERED) return []
  return waysOf(trace).flatMap(({ nodes, snr }) =>
    nodes.flatMap((from, index): Hop[] => {
      const to = nodes[index + 1] ?? null
      return from === null || to === null
        ? []
        : [{ from, to, snr: snr[index] ?? null, t: trace.answeredAt ?? trace.timestamp }]
    }),
  )
}

function hopsOfReport({ timestamp, payload, replayed }: PacketPage['packets'][number]): Hop[] {
  const { nodeNum, neighbors } = payload
  if (replayed || typeof nodeNum !== 'number' || !Array.isArray(neighbors)) return []
  return neighbors.flatMap((each: unknown): Hop[] => {
    if (!isRecord(each) || typeof each['nodeNum'] !== 'number') return []
    const snr = typeof each['snr'] === 'number' ? each['snr'] : null
    return [{ from: each['nodeNum'], to: nodeNum, snr, t: timestamp }]
  })
}
