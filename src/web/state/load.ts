import { effect, signal, useSignal, useSignalEffect, type Signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError, noteTold, online, reconnects } from '../api.ts'
import { withProof } from './proof.ts'
import { isAnonymous } from './session.ts'
import { isLive, type LiveEvent, pace, watchLive } from './live.ts'
import type { EventKind } from '../../shared/mesh/event-kinds.ts'

export type Loaded<T> = {
  /** The last answer, also while a new one is loading. */
  readonly data: Signal<T | null>
  readonly error: Signal<ApiError | null>
  readonly busy: Signal<boolean>
  reload(): Promise<void>
}

/** The minimum time between two loads caused by events; longer for data that rarely loads without events. */
const GAP_MS = 1000
/** Events report what happens in the mesh, but not all changes by users, so data is also polled at this interval. */
const LIVE_MS = 60_000
/** The interval if events contain the data itself, because a missed row is rare. */
const KEPT_MS = 15 * 60_000

/**
 * The maximum age of an answer for people without an account: up to 5 s in the service and 5 s in caches on the way. An
 * answer requested after an event may lack the event's data.
 */
const CACHED_MS = 11_000

/**
 * Calls `refresh` after an outage of the service, at live events of the kinds `on`, and every `everyMs` while the page
 * is visible: rarely while the events report everything, and at once when a page hidden for longer becomes visible.
 * `refresh` throws nothing. `take` sees each event first, and returns whether it contains everything: then no request
 * is made. `about`: the ID of the only node whose events count. `gapMs`: the minimum time between two loads caused by
 * events, if it is not that of the interval.
 */
export function useFresh(
  refresh: () => Promise<void>,
  everyMs: number | undefined,
  on: readonly EventKind[] = [],
  take: ((event: LiveEvent) => boolean) | null = null,
  about: string | null = null,
  gapMs: number = Math.max(GAP_MS, (everyMs ?? 0) / 10),
): void {
  const latest = useRef(refresh)
  latest.current = refresh
  const at = useRef(Date.now())
  const run = async () => {
    at.current = Date.now()
    await latest.current()
  }
  const known = useRef(reconnects.peek())
  useSignalEffect(() => {
    if (reconnects.value === known.current) return
    known.current = reconnects.value
    void run()
  })
  useEffect(() => {
    if (on.length === 0) return
    const paced = pace(run, gapMs)
    let again: ReturnType<typeof setTimeout> | undefined
    const stop = watchLive(on, (event) => {
      if (isOther(event, about)) return
      // Other lists may load with it, too. Answers for people without an account are shared and come from caches.
      if (!isAnonymous.peek()) noteTold()
      if (take?.(event) === true) return
      paced.ask()
      clearTimeout(again)
      if (isAnonymous.peek()) again = setTimeout(paced.ask, CACHED_MS)
    })
    return () => {
      stop()
      clearTimeout(again)
      paced.stop()
    }
  }, [])
  useEffect(() => {
    if (everyMs === undefined) return
    return effect(() => {
      // Lists for people without an account may come from a cache, and lack the latest events.
      const isKept = take !== null && !isAnonymous.value
      const pauseMs = isLive(on) ? Math.max(everyMs, isKept ? KEPT_MS : LIVE_MS) : everyMs
      const tick = () => {
        if (document.visibilityState !== 'visible' || !online.peek()) return
        if (Date.now() - at.current >= pauseMs - GAP_MS) void run()
      }
      const timer = setInterval(tick, pauseMs)
      document.addEventListener('visibilitychange', tick)
      return () => {
        clearInterval(timer)
        document.removeEventListener('visibilitychange', tick)
      }
    })
  }, [everyMs])
}

/** Whether an event is about a node other than this one. */
function isOther(event: LiveEvent, about: string | null): boolean {
  if (about === null || event?.kind !== 'node') return false
  const { nodeNum } = event.data
  return typeof nodeNum === 'number' && nodeNum !== Number.parseInt(about.slice(1), 16)
}

/** The number of first answers that the page waits for. */
export const awaited = signal(0)

/** Counts `work` as something that the page waits for. */
export async function whileAwaited<T>(work: Promise<T>): Promise<T> {
  awaited.value++
  try {
    return await work
  } finally {
    awaited.value--
  }
}

/**
 * Loads at once, when `deps` change, and as in `useFresh`. Of two answers the one requested later counts. `take`,
 * `about` and `gapMs` never change.
 */
export function useLoad<T>(
  load: () => Promise<T>,
  deps: readonly unknown[],
  everyMs?: number,
  on: readonly EventKind[] = [],
  take: ((event: LiveEvent) => boolean) | null = null,
  about: string | null = null,
  gapMs?: number,
): Loaded<T> {
  const data = useSignal<T | null>(null)
  const error = useSignal<ApiError | null>(null)
  const busy = useSignal(true)
  const turn = useRef(0)
  const latest = useRef(load)
  latest.current = load
  const reload = async () => {
    const mine = ++turn.current
    busy.value = true
    try {
      const found = await withProof(() => latest.current())
      if (mine !== turn.current) return
      data.value = found
      error.value = null
    } catch (cause) {
      // The shell shows that the service is unreachable; old data stays.
      const failed = asApiError(cause)
      if (mine === turn.current && (failed.code !== 'offline' || data.peek() === null)) error.value = failed
    } finally {
      if (mine === turn.current) busy.value = false
    }
  }
  useEffect(() => {
    void whileAwaited(reload())
    return () => {
      turn.current++
    }
  }, deps)
  useFresh(reload, everyMs, on, take, about, gapMs)
  return { data, error, busy, reload }
}

export type Action = {
  readonly busy: Signal<boolean>
  readonly error: Signal<ApiError | null>
  /** False when it failed, or is still running from before. */
  run(work: () => Promise<void>): Promise<boolean>
}

/** An action of a user: one at a time, with its error kept for display. */
export function useAction(): Action {
  const busy = useSignal(false)
  const error = useSignal<ApiError | null>(null)
  const run = async (work: () => Promise<void>) => {
    if (busy.peek()) return false
    const held = document.activeElement
    busy.value = true
    error.value = null
    try {
      await withProof(work)
      return true
    } catch (cause) {
      error.value = asApiError(cause)
      return false
    } finally {
      busy.value = false
      requestAnimationFrame(() => giveFocusBack(held))
    }
  }
  return { busy, error, run }
}

/** A button that was disabled during its action has lost the focus, so keyboard users would start again at the top. */
function giveFocusBack(held: Element | null): void {
  if (held === null || held === document.body) return
  for (const next of [held, document.querySelector('h1')]) {
    if (document.activeElement === document.body && next instanceof HTMLElement) next.focus({ preventScroll: true })
  }
}

/** An error in a form that the page can explain. An error of the page itself is logged in the console. */
export function asApiError(cause: unknown): ApiError {
  if (cause instanceof ApiError) return cause
  console.error(cause)
  return new ApiError(0, 'internal', '', {}, null)
}
