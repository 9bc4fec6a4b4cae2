import type { Heard } from '../heard/heard.ts'
import type { Payload } from '../../../meshtastic/payload/payload.ts'
import { COLLECTED_KINDS, type CollectedKind } from '../../../shared/mesh/collected-kinds.ts'
import { isDeliverable } from '../ingest/outbox.ts'

const KIND_OF: Readonly<Record<Payload['kind'], CollectedKind>> = {
  text: 'messages',
  rangetest: 'other',
  beacon: 'messages',
  waypoint: 'messages',
  position: 'positions',
  telemetry: 'telemetry',
  paxcounter: 'telemetry',
  status: 'telemetry',
  nodeinfo: 'nodes',
  mapreport: 'nodes',
  traceroute: 'routes',
  neighborinfo: 'routes',
  routing: 'routes',
  storeforward: 'other',
  admin: 'other',
  encrypted: 'other',
  unknown: 'other',
  malformed: 'other',
}

const SAMPLED: ReadonlySet<Payload['kind']> = new Set<Payload['kind']>(['position', 'telemetry', 'nodeinfo'])

/** The maximum number of remembered pairs of sender and kind. For a forgotten pair, another packet passes. */
const MAX_REMEMBERED = 100_000

type Selection = {
  /** In the order of the batch. */
  readonly passed: readonly Heard[]
  /** The number of events that could be delivered but are left out. */
  readonly filtered: number
  /** Call it when the events are stored: the next batches are compared with them. */
  commit(): void
}

/** Chooses which events of a batch are delivered. `own`: the numbers of this service's radios. */
export type CollectorFilter = (batch: readonly Heard[], own: ReadonlySet<number>) => Selection

/**
 * `only`: kinds that pass; empty: all. `sampleSeconds`: the interval in which one position, one nodeinfo and one
 * telemetry packet of each variant pass for each sender; 0: all pass. Packets that our radios send or receive always
 * pass.
 */
export function createCollectorFilter({
  only,
  sampleSeconds,
}: {
  readonly only: readonly CollectedKind[]
  readonly sampleSeconds: number
}): CollectorFilter {
  const kinds: ReadonlySet<CollectedKind> = new Set(only.length === 0 ? COLLECTED_KINDS : only)
  const passedAt = new Map<string, number>()
  const isDue = (key: string, at: number, pending: ReadonlyMap<string, number>) => {
    const last = pending.get(key) ?? passedAt.get(key)
    return last === undefined || Math.abs(at - last) >= sampleSeconds * 1000
  }
  const passes = (heard: Heard, own: ReadonlySet<number>, pending: Map<string, number>) => {
    const kind = kindOf(heard, own)
    if (kind === null) return true
    if (!kinds.has(kind)) return false
    const key = sampleSeconds === 0 ? null : sampleKey(heard)
    if (key === null) return true
    const at = heard.event.receivedAt
    if (!isDue(key, at, pending)) return false
    pending.set(key, at)
    return true
  }
  return (batch, own) => {
    const pending = new Map<string, number>()
    const deliverable = batch.filter(isDeliverable)
    const passed = deliverable.filter((heard) => passes(heard, own, pending))
    return {
      passed,
      filtered: deliverable.length - passed.length,
      commit() {
        for (const [key, at] of pending) {
          // The key that passed last moves to the end.
          passedAt.delete(key)
          passedAt.set(key, at)
        }
        for (const key of passedAt.keys()) {
          if (passedAt.size <= MAX_REMEMBERED) break
          passedAt.delete(key)
        }
      },
    }
  }
}

/** Null if it concerns one of our own radios. */
function kindOf({ event }: Heard, own: ReadonlySet<number>): CollectedKind | null {
  if (event.type === 'node-info') return own.has(event.node.nodeNum) ? null : 'nodes'
  if (event.type !== 'packet') return null
  const { from, to, payload } = event.packet
  return own.has(from) || own.has(to) ? null : KIND_OF[payload.kind]
}

/** Packets with the same key share one sample; null: the packet is not sampled. */
function sampleKey({ event }: Heard): string | null {
  if (event.type !== 'packet' || !SAMPLED.has(event.packet.payload.kind)) return null
  const { from, payload } = event.packet
  return `${from} ${payload.kind} ${payload.kind === 'telemetry' ? payload.variant : ''}`
}
