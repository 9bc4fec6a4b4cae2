import type { Heard } from '../../app/mesh/heard/heard.ts'
import { setImmediate } from 'node:timers/promises'
import type { Log } from '../../app/base/log.ts'
import type { Ingest, StoredBatch } from '../../app/mesh/ingest/ingest.ts'
import { isRefusedContent } from '../../app/mesh/ingest/refused-content.ts'
import { backOff } from '../../shared/back-off.ts'
import { createTimer, type Clock, systemClock } from '../clock.ts'

/**
 * A batch is stored when its first event is this old, or when it is this large: 200 would take a sixth less time for each
 * event, but hold the event loop for 20 to 39 ms, and readers get more than one chunk of events.
 */
const BATCH_MS = 100
const BATCH_EVENTS = 100
/** The maximum number of events held while the database refuses them: minutes of the busiest mesh, a few tens of MB. */
const MAX_WAITING = 50_000
/**
 * The maximum number of events held for a sender that can wait, while the database accepts events: seconds of a flood.
 */
const ROOM_EVENTS = 2000
const RETRIES = { firstMs: 200, mostMs: 5000 }
/** How long the last events may take when the service stops. */
const CLOSE_MS = 5000

export type BatcherOptions = {
  readonly ingest: Ingest
  readonly log: Log
  readonly clock?: Clock
  readonly maxWaiting?: number
  /** Called after each batch that is stored; must not throw. */
  onStored?(stored: StoredBatch, batch: readonly Heard[]): void
}

/** The only writer of radio events. It stores events in order and keeps a batch until it is stored. */
export type Batcher = {
  push(events: readonly Heard[]): void
  /** Events that are not stored yet. */
  waiting(): number
  /**
   * Resolves when a sender that can wait should continue: at once, or after the next batch if too many events are
   * waiting. Does not block while the database fails, because events held back elsewhere would be lost.
   */
  room(): Promise<void>
  /** Stores the waiting events; later ones are not accepted. */
  close(): Promise<void>
}

export function createBatcher(options: BatcherOptions): Batcher {
  const { log, clock = systemClock, maxWaiting = MAX_WAITING } = options
  const waiting: Heard[] = []
  const due = createTimer(clock)
  const patience = createPatience(clock)
  let running = Promise.resolve()
  let isRunning = false
  let isClosed = false
  let isFailing = false
  let dropped = 0
  let held: (() => void)[] = []

  const hasRoom = () => waiting.length < ROOM_EVENTS || isFailing || isClosed
  const letGo = () => {
    if (!hasRoom()) return
    for (const goOn of held) goOn()
    held = []
  }
  const onAttempt = (isStored: boolean) => {
    isFailing = !isStored
    letGo()
  }
  const drain = async () => {
    do {
      const batch = waiting.slice(0, BATCH_EVENTS)
      if (!(await persist(batch, options, patience, onAttempt))) return
      waiting.splice(0, batch.length)
      letGo()
      if (dropped > 0) log.error('Events were dropped while the database failed', { events: dropped })
      dropped = 0
      // The writes are synchronous. Readers get the news in this round of the event loop, and requests are looked for only
      // between two rounds.
      await setImmediate()
      await setImmediate()
    } while (waiting.length >= BATCH_EVENTS)
  }
  const start = () => {
    due.stop()
    if (isRunning) return
    isRunning = true
    running = drain().finally(() => {
      isRunning = false
      if (waiting.length > 0 && !isClosed) due.start(BATCH_MS, start)
    })
  }
  return {
    push(events) {
      const taken = isClosed ? [] : events.slice(0, maxWaiting - waiting.length)
      if (taken.length < events.length && dropped === 0) log.error('Events are dropped', { waiting: waiting.length })
      dropped += events.length - taken.length
      const wasEmpty = waiting.length === 0
      waiting.push(...taken)
      if (waiting.length >= BATCH_EVENTS) start()
      else if (wasEmpty && taken.length > 0) due.start(BATCH_MS, start)
    },
    waiting: () => waiting.length,
    room: () => (hasRoom() ? Promise.resolve() : new Promise((resolve) => held.push(resolve))),
    async close() {
      isClosed = true
      letGo()
      patience.end(CLOSE_MS)
      await running
      // Less than a batch is left.
      if (waiting.length > 0) start()
      await running
      if (waiting.length > 0) log.error('Events were lost: the database did not store them', { events: waiting.length })
    },
  }
}

/** Stores a batch, with as many attempts as needed; false if the time is up. */
async function persist(
  batch: readonly Heard[],
  options: BatcherOptions,
  patience: Patience,
  onAttempt: (isStored: boolean) => void,
): Promise<boolean> {
  const { ingest, log } = options
  for (let failures = 0; ; failures += 1) {
    const result = await attempt(ingest, batch)
    if (result.ok) {
      onAttempt(true)
      options.onStored?.(result.stored, batch)
      return true
    }
    const { error } = result
    if (isRefusedContent(error)) {
      if (batch.length === 1) log.error('An event is dropped: it cannot be stored', { ...describe(batch), error })
      const middle = batch.length >> 1
      const halves = batch.length === 1 ? [] : [batch.slice(0, middle), batch.slice(middle)]
      for (const half of halves) if (!(await persist(half, options, patience, onAttempt))) return false
      return true
    }
    onAttempt(false)
    const delayMs = backOff(failures, RETRIES)
    log.error('Storing failed; retrying', { events: batch.length, inMs: delayMs, error })
    if (!(await patience.wait(delayMs))) return false
  }
}

type Result = { readonly ok: true; readonly stored: StoredBatch } | { readonly ok: false; readonly error: unknown }

async function attempt(ingest: Ingest, batch: readonly Heard[]): Promise<Result> {
  try {
    return { ok: true, stored: await ingest.store(batch) }
  } catch (error) {
    return { ok: false, error }
  }
}

function describe([heard]: readonly Heard[]): Record<string, unknown> {
  const event = heard?.event
  const packet = event?.type === 'packet' ? { from: event.packet.from, id: event.packet.id } : {}
  return { source: heard?.source.name, type: event?.type, ...packet }
}

/** Waits that end when the service stops. */
type Patience = {
  /** Waits; false if the time is up. */
  wait(delayMs: number): Promise<boolean>
  /** Limits all waits to this time from now on. */
  end(limitMs: number): void
}

function createPatience(clock: Clock): Patience {
  let endsAt = Number.POSITIVE_INFINITY
  let wake: () => void = () => {}
  return {
    wait: (delayMs) =>
      new Promise((resolve) => {
        const finish = () => {
          cancel()
          resolve(clock.now() < endsAt)
        }
        const cancel = clock.after(delayMs, finish)
        wake = finish
      }),
    end(limitMs) {
      endsAt = clock.now() + limitMs
      wake()
    },
  }
}
