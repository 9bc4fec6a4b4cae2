import type { ClockWatch } from '../../app/base/pacing/clock.ts'
import type { CollectorInfo } from '../../app/mesh/collector/state.ts'
import { setImmediate } from 'node:timers/promises'
import type { Ports } from '../../app/base/context.ts'
import { type CollectorFilter, createCollectorFilter } from '../../app/mesh/collector/filter.ts'
import { MAX_ITEMS } from '../../app/mesh/collector/items.ts'
import type { Collecting } from '../../app/mesh/ingest/ingest.ts'
import {
  countOutbox,
  expireOutbox,
  OUTBOX_AGE_MS,
  readNewestOfOutbox,
  readOutbox,
  removeFromOutbox,
  trimOutbox,
  type Waiting,
} from '../../app/mesh/ingest/outbox.ts'
import { createTimer, type Clock, systemClock } from '../clock.ts'
import { deliver, type Target, type Verdict } from './delivery.ts'
import { backOff } from '../../shared/back-off.ts'
import { MINUTE_MS } from '../../shared/time.ts'

/** The maximum size of the outbox: about a week of a busy mesh, some 60 MB. The oldest packets are dropped first. */
const MAX_WAITING = 200_000
/** The number of rows beyond the maximum at which they are deleted. */
const TRIM_AT = 1000
/** A delivery of fewer rows is never too large for a target. */
const FEW_ITEMS = 25
/** After this many items are refused one by one, the target probably refuses everything. */
const MAX_SUSPECTS = 10
/** How long a running delivery may take when the service stops; unconfirmed packets are sent again. */
const CLOSE_MS = 3000

export type CollectorTimings = {
  /** The time from the first packet to its delivery. */
  readonly gatherMs: number
  readonly backoffFirstMs: number
  readonly backoffMaxMs: number
  /** Interval of retries while somebody has to change the configuration first. */
  readonly refusedMs: number
}

const TIMINGS: CollectorTimings = {
  gatherMs: 1000,
  backoffFirstMs: 1000,
  backoffMaxMs: 5 * MINUTE_MS,
  refusedMs: 5 * MINUTE_MS,
}

export type CollectorOptions = Pick<Ports, 'store' | 'log'> & {
  readonly target: Target
  /** Absent: everything is delivered. */
  readonly filter?: CollectorFilter
  readonly clock?: Clock
  readonly clockWatch?: ClockWatch
  /** Numbers from 0 to below 1. */
  readonly random?: () => number
  readonly timings?: Partial<CollectorTimings>
  readonly maxWaiting?: number
}

/** Delivers the content of the outbox to another service, however long that takes. */
export type NodeCollector = Collecting & {
  info(): CollectorInfo
  /** The number of rows added to the outbox, and of events left out. */
  onStored(rows: number, filtered?: number): void
  close(): Promise<void>
}

type Memory = {
  state: CollectorInfo['state']
  reason: string | null
  waiting: number
  lastDeliveredAt: number | null
  delivered: number
  dropped: number
  filtered: number
  failures: number
  /** Items of the next delivery. */
  limit: number
  /** Rows that the target did not understand. They are given up as soon as it understands another one. */
  readonly suspects: Set<number>
}

/**
 * Starts with the packets that an earlier process left.
 * Decision: docs/decisions/collectors-store-too.md
 */
export function startCollector(options: CollectorOptions): NodeCollector {
  const { store, log, target, clock = systemClock, random = Math.random, maxWaiting = MAX_WAITING } = options
  const { clockWatch = null, filter = createCollectorFilter({ only: [], sampleSeconds: 0 }) } = options
  const timings = { ...TIMINGS, ...options.timings }
  const host = new URL(target.url).host
  const due = createTimer(clock)
  const closing = new AbortController()
  const memory: Memory = {
    state: 'idle',
    reason: null,
    waiting: 0,
    lastDeliveredAt: null,
    delivered: 0,
    dropped: 0,
    filtered: 0,
    failures: 0,
    limit: MAX_ITEMS,
    suspects: new Set(),
  }
  let isClosed = false
  let isRunning = false
  let isDue = false
  let running = Promise.resolve()

  const enter = (state: Memory['state'], reason: string | null) => {
    const isNews = reason !== memory.reason
    memory.state = state
    memory.reason = reason
    if (!isNews) return
    if (reason === null) log.info('The collector delivers', { target: host, waiting: memory.waiting })
    else log.warn('The collector cannot deliver', { target: host, reason, waiting: memory.waiting })
  }
  const drop = (rows: number, why: string) => {
    if (rows === 0) return
    memory.dropped += rows
    memory.waiting -= rows
    log.warn('Packets are not delivered', { target: host, packets: rows, reason: why })
  }
  const serveOthers = async () => {
    await setImmediate()
    return !isClosed
  }
  const trim = async () => {
    const excess = memory.waiting - maxWaiting
    drop(await trimOutbox(store, excess), 'too many waited')
    const now = clockWatch?.trusted() ?? clock.now()
    drop(await expireOutbox(store, now - OUTBOX_AGE_MS, serveOthers), 'they waited for too long')
  }
  const remove = async (rows: readonly Waiting[]) => {
    const removed = await removeFromOutbox(
      store,
      rows.map(({ id }) => id),
    )
    memory.waiting -= removed
    memory.delivered += removed
  }
  const forgive = async () => {
    const ids = [...memory.suspects]
    memory.suspects.clear()
    if (ids.length === 0) return
    drop(await removeFromOutbox(store, ids), 'the target does not understand them')
  }
  /** Processes the outcome of a delivery, and returns how long to wait before the next one. */
  const settle = async (rows: readonly Waiting[], verdict: Verdict): Promise<number> => {
    switch (verdict.kind) {
      case 'delivered': {
        if (verdict.date !== null) clockWatch?.agree('the target of the collector', verdict.date)
        const reasons = new Map(verdict.rejected.map(({ index, reason }) => [index, reason]))
        await remove(rows.filter((_, index) => !reasons.has(index)))
        for (const [reason, lost] of groupRejected(rows, reasons)) {
          drop(await removeFromOutbox(store, lost), `the target rejects them: ${reason}`)
        }
        if (verdict.rejected.some(({ reason }) => reason === TOO_NEW))
          return fail('the clock of this machine is ahead of that of the target', null)
        memory.lastDeliveredAt = clock.now()
        memory.failures = 0
        memory.limit = Math.min(MAX_ITEMS, memory.limit * 2)
        await forgive()
        enter('delivering', null)
        return 0
      }
      case 'too-large':
      case 'invalid': {
        const [only] = rows
        memory.limit = Math.max(1, rows.length >> 1)
        if (rows.length > 1 || only === undefined) return 0
        if (memory.suspects.size < MAX_SUSPECTS) {
          memory.suspects.add(only.id)
          return 0
        }
        memory.suspects.clear()
        return refuse('the target does not understand what is delivered')
      }
      case 'refused':
        return refuse(verdict.reason)
      case 'failed':
        if (isClosed) return timings.gatherMs
        // The delivery may be too large for the target, which on a small plan just breaks off.
        if (memory.failures >= 2) memory.limit = Math.max(FEW_ITEMS, rows.length >> 1)
        return fail(verdict.reason, verdict.retryAfterMs)
      default:
        return verdict satisfies never
    }
  }
  const jitter = () => 0.75 + random() / 2
  const fail = (reason: string, retryAfterMs: number | null): number => {
    enter('waiting', reason)
    const { backoffFirstMs: firstMs, backoffMaxMs: mostMs } = timings
    const pauseMs = backOff(memory.failures, { firstMs, mostMs, jitter: jitter() })
    memory.failures += 1
    return Math.max(pauseMs, Math.min(retryAfterMs ?? 0, mostMs))
  }
  const refuse = (reason: string): number => {
    enter('refused', reason)
    return timings.refusedMs * jitter()
  }
  // After this many refused items, the newest one shows whether the items or the target are at fault.
  const readNext = () =>
    memory.suspects.size < MAX_SUSPECTS ? readOutbox(store, memory.limit, memory.suspects) : readNewestOfOutbox(store)
  const drain = async (): Promise<number | null> => {
    for (;;) {
      await trim()
      const rows = isClosed ? [] : await readNext()
      if (rows.length === 0) return endOfRows()
      const verdict = await deliver(target, rows, { now: clock.now(), closing: closing.signal })
      const pauseMs = await settle(rows, verdict)
      if (pauseMs > 0) return pauseMs
      await setImmediate()
    }
  }
  const endOfRows = async (): Promise<number | null> => {
    if (isClosed) return null
    if (memory.suspects.size > 0) {
      // Nothing else can show whether they or the target are at fault.
      memory.suspects.clear()
      return fail('the target does not understand what is delivered', null)
    }
    enter('idle', null)
    return null
  }
  const startIn = (delayMs: number) => {
    isDue = true
    due.start(delayMs, start)
  }
  const start = () => {
    isDue = false
    if (isRunning || isClosed) return
    isRunning = true
    memory.state = 'delivering'
    running = drainOnce()
  }
  const drainOnce = async () => {
    let pauseMs: number | null
    try {
      pauseMs = await drain()
    } catch (error) {
      log.error('The outbox of the collector cannot be read', { error })
      pauseMs = fail('the database of this service fails', null)
    }
    isRunning = false
    if (isClosed) return
    if (pauseMs !== null) startIn(pauseMs)
    else if (memory.waiting > 0) startIn(timings.gatherMs)
  }
  const begin = async () => {
    memory.waiting += await countOutbox(store)
    if (memory.waiting === 0) return
    log.info('Packets are waiting for delivery', { target: host, waiting: memory.waiting })
    start()
  }
  const begun = begin().catch((error: unknown) => log.error('The outbox of the collector cannot be read', { error }))
  return {
    info: () => {
      const { state, reason, waiting, lastDeliveredAt, delivered, dropped, filtered } = memory
      return { target: host, state, waiting, lastDeliveredAt, delivered, dropped, filtered, reason }
    },
    filter,
    onStored(rows, filtered = 0) {
      memory.filtered += filtered
      if (rows === 0) return
      memory.waiting += rows
      if (!isDue && !isRunning && !isClosed) startIn(timings.gatherMs)
      if (memory.waiting > maxWaiting + TRIM_AT && !isRunning) {
        trim().catch((error: unknown) => log.error('The outbox of the collector cannot be trimmed', { error }))
      }
    },
    async close() {
      isClosed = true
      due.stop()
      const cancel = clock.after(CLOSE_MS, () => closing.abort())
      await begun
      await running
      cancel()
      memory.state = 'stopped'
    },
  }
}

/** The target's reason for a time in its future. */
const TOO_NEW = 'received_in_future'

/** Ids of the permanently rejected rows, by reason. */
function groupRejected(rows: readonly Waiting[], reasons: ReadonlyMap<number, string>): Map<string, number[]> {
  const groups = new Map<string, number[]>()
  for (const [index, reason] of reasons) {
    const id = rows[index]?.id
    if (reason !== TOO_NEW && id !== undefined) groups.set(reason, [...(groups.get(reason) ?? []), id])
  }
  return groups
}
