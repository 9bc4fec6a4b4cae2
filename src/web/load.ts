import { useSignal, useSignalEffect, type Signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError, online, reconnects } from './api.ts'

export type Loaded<T> = {
  /** What came last, also while more is on its way. */
  readonly data: Signal<T | null>
  readonly error: Signal<ApiError | null>
  readonly busy: Signal<boolean>
  reload(): Promise<void>
}

/**
 * Loads at once, when `deps` change, after the service was away, and every `everyMs` while the page is visible.
 * Of two answers the one asked for later counts.
 */
export function useLoad<T>(load: () => Promise<T>, deps: readonly unknown[], everyMs?: number): Loaded<T> {
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
      const found = await latest.current()
      if (mine !== turn.current) return
      data.value = found
      error.value = null
    } catch (cause) {
      // The shell says that the service is away; what was there before stays.
      const failed = asApiError(cause)
      if (mine === turn.current && (failed.code !== 'offline' || data.peek() === null)) error.value = failed
    } finally {
      if (mine === turn.current) busy.value = false
    }
  }
  useEffect(() => {
    void reload()
    return () => {
      turn.current++
    }
  }, deps)
  useSignalEffect(() => {
    if (reconnects.value > 0) void reload()
  })
  useEffect(() => {
    if (everyMs === undefined) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible' && online.peek()) void reload()
    }, everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return { data, error, busy, reload }
}

export type Action = {
  readonly busy: Signal<boolean>
  readonly error: Signal<ApiError | null>
  /** False when it failed, or is still running from before. */
  run(work: () => Promise<void>): Promise<boolean>
}

/** Something a person does: once at a time, its failure kept for showing beside it. */
export function useAction(): Action {
  const busy = useSignal(false)
  const error = useSignal<ApiError | null>(null)
  const run = async (work: () => Promise<void>) => {
    if (busy.peek()) return false
    busy.value = true
    error.value = null
    try {
      await work()
      return true
    } catch (cause) {
      error.value = asApiError(cause)
      return false
    } finally {
      busy.value = false
    }
  }
  return { busy, error, run }
}

function asApiError(cause: unknown): ApiError {
  if (cause instanceof ApiError) return cause
  console.error(cause)
  return new ApiError(0, 'internal', '', {}, null)
}
