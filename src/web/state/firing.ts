import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, ask } from '../api.ts'
import { asApiError, useFresh } from './load.ts'

const POLL_MS = 60_000

/** The user's own alerts that are firing and not acknowledged. */
export const firing = signal(0)

export function noteFiring(count: number): void {
  firing.value = count
}

async function refreshFiring(): Promise<void> {
  try {
    noteFiring((await ask(api.alerts.$get({ query: { limit: '1', state: 'firing' } }))).firing)
  } catch (error) {
    // Old data stays; the page of alerts shows its own errors.
    asApiError(error)
  }
}

/** Keeps the count up to date: once per page. */
export function FiringKeeper(): null {
  useEffect(() => void refreshFiring(), [])
  useFresh(refreshFiring, POLL_MS, ['alert'])
  return null
}
