import { batch, computed, signal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import type { ErrorCode } from '../../app/http/errors.ts'
import {
  api,
  ApiError,
  ask,
  BASE,
  ownName,
  isEmbedded,
  reconnects,
  seeAs,
  seeingAs,
  send,
  watchRefusals,
  withoutReads,
} from '../api.ts'
import { changeLanguage } from '../language.ts'
import { APP_NAME } from '../strings.ts'
import { plain } from '../format.ts'
import { dropDrafts } from './drafts.ts'
import { type Action, type Resource, RESOURCE_NAMES } from '../../shared/access/resources.ts'

export type Status = InferResponseType<typeof api.auth.status.$get>
export type User = NonNullable<Status['user']>

/** The signed-in user and their permissions, as last reported by the service; null until then. */
export const status = signal<Status | null>(null)
export const statusError = signal<ApiError | null>(null)

/** What administrators call their mesh, or the product's name. */
export const siteName = computed(() => status.value?.meshName ?? APP_NAME)

export const user = computed(() => status.value?.user ?? null)
export const isAdmin = computed(() => user.value?.isAdmin ?? false)

/** The session ended, but not through this page, so the sign-in page explains it. */
export const hasEnded = signal(false)

/** The temporary password of this sign-in, so that it need not be typed twice. Never stored. */
export const temporaryPassword = signal<string | null>(null)

/** Nobody is signed in, and public access shows something. */
export const isAnonymous = computed(() => {
  const known = status.value
  return known !== null && !known.authenticated && RESOURCE_NAMES.some((name) => known.permissions[name].read)
})

/** The display name of a user, or the username without one. */
export function userName(one: { readonly displayName?: string | null; readonly username: string } | null): string {
  return one === null ? '' : plain(one.displayName ?? '') || plain(one.username)
}

export function can(resource: Resource, action: Action): boolean {
  return status.value?.permissions[resource][action] ?? false
}

/**
 * Increases when loaded data must no longer be shown: another user has signed in, or the user has lost permissions. New
 * permissions take effect without discarding what the user is writing.
 */
export const readerKey = signal(0)

/** Whether earlier data must no longer be shown. */
export function mayReadLess(before: Status | null, next: Status): boolean {
  if (before?.user?.id !== next.user?.id) return true
  return RESOURCE_NAMES.some((resource) => before?.permissions[resource].read && !next.permissions[resource].read)
}

/** The edge has no radios, live events only for users, and backups only with a bucket. */
export type Part = 'radio' | 'events' | 'backups'
const missing = signal('')

/** Whether the service has this feature in its runtime; requests for others would fail. */
export function has(part: Part): boolean {
  return !missing.value.split(', ').includes(part)
}

/** Never throws: errors are in `statusError`. */
export async function refreshStatus(): Promise<void> {
  try {
    const answer = await send(api.auth.status.$get())
    const next = await answer.json()
    missing.value = answer.headers.get('X-Unsupported') ?? ''
    statusError.value = null
    if (next.authenticated) hasEnded.value = false
    else if (status.peek()?.authenticated && !isLeaving.peek()) hasEnded.value = true
    // An unchanged answer must not render the whole page again.
    const before = status.peek()
    if (JSON.stringify(next) === JSON.stringify(before)) return
    batch(() => {
      if (mayReadLess(before, next)) readerKey.value++
      status.value = next
    })
    if (seeingAs === null) {
      keepStatusOf(next)
      // A page that other sites show is drawn for whoever sees it.
      if (next.language !== null && !isEmbedded) changeLanguage(next.language)
    }
  } catch (error) {
    if (seeingAs !== null && error instanceof ApiError && error.code === 'see_as_refused') seeAs(null)
    statusError.value = error instanceof ApiError ? error : new ApiError(0, 'internal', String(error), {}, null)
    if (status.peek() === null && statusError.value.code === 'offline' && seeingAs === null) {
      status.value = readStatus()
    }
  }
}

const STATUS_KEY = ownName('status')

/** Stores the signed-in user, for a page that is opened while the service is unreachable; nobody after signing out. */
function keepStatusOf(next: Status): void {
  try {
    const isWhole = next.authenticated && !next.mustChangePassword && !next.secondFactor.isMissing
    if (isWhole) localStorage.setItem(STATUS_KEY, JSON.stringify({ version: import.meta.env.VERSION, status: next }))
    else localStorage.removeItem(STATUS_KEY)
  } catch {
    // Storage is blocked: the page waits for the service.
  }
}

/** The user who signed in last; null: nobody, as far as this browser knows. */
export function readStatus(): Status | null {
  try {
    const found: { version: string; status: Status } | null = JSON.parse(localStorage.getItem(STATUS_KEY) ?? 'null')
    return found?.version === import.meta.env.VERSION ? found.status : null
  } catch {
    return null
  }
}

let leaving: (() => Promise<void>) | null = null

/** Registers what else is deleted in this browser on signing out. */
export function whenLeaving(run: () => Promise<void>): void {
  leaving = run
}

/** The session is being ended through this page. */
export const isLeaving = signal(false)

/** Stored in a tab in which somebody signed out, so that it does not go to a provider automatically. */
export const SIGNED_OUT_KEY = ownName('signed-out')

function noteSignOut(): void {
  try {
    sessionStorage.setItem(SIGNED_OUT_KEY, 'true')
  } catch {
    // Storage is blocked: then the sign-in page does not redirect automatically either.
  }
}

/** What would tell the next user of this browser where the last one looked, and how far each has read. */
const TRACES = [ownName('map-view'), ownName('read:')]

function dropTraces(): void {
  try {
    for (const key of Object.keys(localStorage)) {
      if (TRACES.some((trace) => key.startsWith(trace))) localStorage.removeItem(key)
    }
  } catch {
    // Storage is blocked, so nothing is stored there.
  }
}

/** Tells the other tabs of this browser that the signed-in user has changed. */
const tabs = new BroadcastChannel(ownName('session'))

/** Makes the other tabs check immediately who is signed in. */
export function tellTabs(): void {
  // A BroadcastChannel reaches only its own origin.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  tabs.postMessage(null)
}

/**
 * Keeps the next user of this browser from seeing alerts of this one. The service has also removed its subscription.
 */
async function unsubscribe(): Promise<void> {
  if (!('serviceWorker' in navigator) || !('PushManager' in window)) return
  try {
    const registration = await navigator.serviceWorker.getRegistration(BASE)
    const subscription = await registration?.pushManager.getSubscription()
    await subscription?.unsubscribe()
  } catch {
    // The browser does not answer: messages to it are refused by its push service or are no longer sent.
  }
}

/** Ends the session here, and at the provider if it has a page for that. Throws `ApiError`. */
export async function signOut(): Promise<void> {
  isLeaving.value = true
  try {
    await withoutReads(async () => {
      const { logoutUrl } = await ask(api.auth.logout.$post())
      dropDrafts()
      dropTraces()
      await unsubscribe()
      await leaving?.()
      tellTabs()
      noteSignOut()
      if (logoutUrl === null) await refreshStatus()
      else location.assign(logoutUrl)
    })
  } finally {
    isLeaving.value = false
  }
}

const REFRESH_MS = 60_000
const REVEALING: ReadonlySet<string> = new Set<ErrorCode>([
  'unauthenticated',
  'password_change_required',
  'second_factor_required',
  'forbidden',
  'admin_required',
])

/** Keeps `status` true: a demotion or the end of a session shows within a minute, or at the next refusal. */
export function keepStatus(): void {
  watchRefusals((code) => {
    if (REVEALING.has(code)) void refreshStatus()
  })
  reconnects.subscribe(() => void refreshStatus())
  tabs.addEventListener('message', () => void refreshStatus())
  addEventListener('online', () => void refreshStatus())
  addEventListener('offline', () => void refreshStatus())
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') void refreshStatus()
  })
  setInterval(() => void refreshStatus(), REFRESH_MS)
}
