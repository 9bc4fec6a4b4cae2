import type { DestinationKind } from '../../../shared/alerts/destination-kinds.ts'
import type { RunEnd } from '../../../shared/automation/rules.ts'
import type { SIGNATURES } from '../../../shared/mesh/packets.ts'
import type { Family, Sample } from './exposition.ts'

/** Counts events of this process, for monitoring. */
export interface Meter {
  /** Monotonic, in milliseconds. */
  now(): number
  /** `route` is one of the app's route patterns. Runs on each request, so it must cost next to nothing. */
  countRequest(method: string, route: string, status: number, durationMs: number): void
  /** `portName` as in `Packet`; null: could not be decrypted here. */
  countPacket(portName: string | null): void
  countBatch(counts: BatchCounts): void
  /** A finished run of an automation rule. */
  countAutomation(kind: string, result: RunEnd): void
  /** An attempt to send an alert message. */
  countAlertDelivery(kind: DestinationKind, result: 'delivered' | 'failed'): void
  families(): readonly Family[]
}

/** The counts of a batch. */
export type BatchCounts = {
  /** Packets by the result of their signature check. */
  readonly signatures: ReadonlyMap<(typeof SIGNATURES)[number] | 'none', number>
  /** Values that no radio can send, by field. */
  readonly refusedValues: ReadonlyMap<string, number>
}

/** Upper bounds in seconds. */
const BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5] as const

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])

/** Requests of one method to one route. */
type Traffic = {
  readonly labels: { readonly method: string; readonly route: string }
  readonly statuses: Map<number, number>
  /** Requests by bucket of duration; the last bucket is for those that took longer than all bounds. */
  readonly buckets: number[]
  sum: number
}

/**
 * Counts events of a process. `now` is monotonic, in milliseconds; `process` measures values that only the runtime
 * knows. Labels come from fixed sets, so clients and radios cannot increase their number.
 */
export function createMeter({ now, process }: { now(): number; process(): readonly Family[] }): Meter {
  // By route, then by method: a joined key would have to be built and hashed for each request.
  const traffic = new Map<string, Map<string, Traffic>>()
  const all = () => [...traffic.values()].flatMap((methods) => [...methods.values()])
  const packets = new Map<string, number>()
  const signatures = new Map<string, number>()
  const refusedValues = new Map<string, number>()
  const runs = new Map<string, Sample>()
  const alertDeliveries = new Map<string, Sample>()
  return {
    now,
    countRequest(method, route, status, durationMs) {
      const methods = traffic.get(route) ?? new Map<string, Traffic>()
      if (methods.size === 0) traffic.set(route, methods)
      const known = METHODS.has(method) ? method : OTHER
      let found = methods.get(known)
      if (found === undefined) {
        found = {
          labels: { method: known, route },
          statuses: new Map(),
          buckets: Array(BUCKETS.length + 1).fill(0),
          sum: 0,
        }
        methods.set(known, found)
      }
      const seconds = durationMs / 1000
      found.statuses.set(status, (found.statuses.get(status) ?? 0) + 1)
      found.sum += seconds
      let bucket = 0
      while (seconds > (BUCKETS[bucket] ?? Infinity)) bucket++
      found.buckets[bucket] = (found.buckets[bucket] ?? 0) + 1
    },
    countPacket(portName) {
      const port = portName === null ? 'encrypted' : /^UNKNOWN_-?\d+$/.test(portName) ? OTHER : portName
      packets.set(port, (packets.get(port) ?? 0) + 1)
    },
    countBatch(counts) {
      for (const [result, n] of counts.signatures) signatures.set(result, (signatures.get(result) ?? 0) + n)
      for (const [field, n] of counts.refusedValues) refusedValues.set(field, (refusedValues.get(field) ?? 0) + n)
    },
    countAutomation(kind, result) {
      const key = `${kind} ${result}`
      runs.set(key, { labels: { kind, result }, value: (runs.get(key)?.value ?? 0) + 1 })
    },
    countAlertDelivery(kind, result) {
      const key = `${kind} ${result}`
      alertDeliveries.set(key, { labels: { kind, result }, value: (alertDeliveries.get(key)?.value ?? 0) + 1 })
    },
    families: () => [
      {
        name: 'mesh_alert_deliveries_total',
        type: 'counter',
        help: 'Attempts to send an alert message since the start, by kind of destination.',
        samples: [...alertDeliveries.values()],
      },
      {
        name: 'mesh_automation_runs_total',
        type: 'counter',
        help: 'Runs of automation since the start, by kind of rule. sent: all packets were passed on to a radio.',
        samples: [...runs.values()],
      },
      {
        name: 'mesh_packets_total',
        type: 'counter',
        help: 'Packets heard for the first time since the start, by port.',
        samples: [...packets].map(([port, value]) => ({ labels: { port }, value })),
      },
      {
        name: 'mesh_signatures_total',
        type: 'counter',
        help: 'Packets since the start by their signature. valid: verified; invalid: it does not match the key; none: not signed; missing: its sender signs, but this packet is not signed; unchecked: the key is unknown, or the source sent more than can be verified.',
        samples: [...signatures].map(([result, value]) => ({ labels: { result }, value })),
      },
      {
        name: 'mesh_refused_values_total',
        type: 'counter',
        help: 'Values that no radio can send, left out of received packets since the start, by field.',
        samples: [...refusedValues].map(([field, value]) => ({ labels: { field }, value })),
      },
      {
        name: 'mesh_http_requests_total',
        type: 'counter',
        help: 'HTTP requests answered.',
        samples: all().flatMap(({ labels, statuses }) =>
          [...statuses].map(([status, value]) => ({ labels: { ...labels, status: String(status) }, value })),
        ),
      },
      {
        name: 'mesh_http_request_duration_seconds',
        type: 'histogram',
        help: 'Time until an answer began.',
        samples: all().flatMap(histogram),
      },
      ...process(),
    ],
  }
}

const OTHER = 'other'

function histogram({ labels, buckets, sum }: Traffic): Sample[] {
  let count = 0
  const cumulative = buckets.map((value, index): Sample => {
    count += value
    const le = String(BUCKETS[index] ?? '+Inf')
    return { suffix: '_bucket', labels: { ...labels, le }, value: count }
  })
  return [...cumulative, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: count }]
}
