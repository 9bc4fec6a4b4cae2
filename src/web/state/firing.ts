import { computed, signal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { useEffect } from 'preact/hooks'
import { api, ask } from '../api.ts'
import { asApiError, useFresh } from './load.ts'
import { useCachedList } from './offline-cache.ts'

const POLL_MS = 60_000
/** The number of firing alerts that are loaded on every page; their count is exact. */
const MAX_LOADED = 20

type AlertPage = InferResponseType<typeof api.alerts.$get, 200>
export type Alert = AlertPage['alerts'][number]

type Firing = { readonly alerts: readonly Alert[]; readonly firing: number }
const found = signal<Firing | null>(null)

/** How many of the user's own alerts are firing and not acknowledged. */
export const firing = computed(() => found.value?.firing ?? 0)
/** The newest of the user's own alerts that are firing, acknowledged or not; null until they were loaded once. */
export const firingAlerts = computed(() => found.value?.alerts ?? null)

export function noteFiring({ alerts, firing: count }: Firing): void {
  found.value = { alerts: alerts.filter(({ state }) => state === 'firing').slice(0, MAX_LOADED), firing: count }
}

/** Drops what was loaded for another user. */
export function forgetFiring(): void {
  found.value = null
}

export async function refreshFiring(): Promise<void> {
  try {
    noteFiring(await ask(api.alerts.$get({ query: { limit: String(MAX_LOADED), state: 'firing' } })))
  } catch (error) {
    // Old data stays; the page of alerts shows its own errors.
    asApiError(error)
  }
}

/** Keeps them up to date: once per page. */
export function FiringKeeper(): null {
  useCachedList('firing', found)
  useEffect(() => void refreshFiring(), [])
  useFresh(refreshFiring, POLL_MS, ['alert'])
  return null
}
