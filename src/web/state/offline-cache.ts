import { computed, effect, type Signal, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { DAY_MS } from '../../shared/time.ts'
import { type ApiError, ownName, seeingAs } from '../api.ts'
import type { Loaded } from './load.ts'
import { mayReadLess, readStatus, status, user, whenLeaving } from './session.ts'

/** The name of the database of a service at the root of its host. */
const SHARED = 'offline-cache'
/**
 * The last data that the user saw, stored in this browser. It is shown at once while the latest data is loading, and
 * while the service is unreachable. Signing out deletes it. It belongs to one version of the pages, because another
 * version may read other fields.
 */
const DATABASE = ownName(SHARED)
/** The name that earlier versions gave it. */
const FORMER = 'kept'
const STORE = 'answers'
const VERSION = import.meta.env.VERSION
/** If more answers are stored, the oldest are deleted. */
const MAX_ENTRIES = 40
/** The maximum length of one answer, in characters of JSON. */
const LARGEST = 4_000_000
const OLDEST_MS = 30 * DAY_MS
/** The same answer is written at most once within this time, because a list of all nodes changes each second. */
const PAUSE_MS = 20_000

type Row = {
  readonly key: string
  readonly userId: number
  readonly version: string
  readonly at: number
  readonly json: string
}
export type Cached<T> = { readonly at: number; readonly data: T }

let opened: Promise<IDBDatabase | null> | null = null

/** Null if the browser stores nothing, as in some private windows. */
function open(): Promise<IDBDatabase | null> {
  opened ??= new Promise((resolve) => {
    try {
      indexedDB.deleteDatabase(FORMER)
      const request = indexedDB.open(DATABASE, 1)
      request.addEventListener('upgradeneeded', () => {
        // Under a path, earlier versions stored this under the names of the root.
        if (DATABASE !== SHARED) {
          indexedDB.deleteDatabase(SHARED)
          localStorage.removeItem('status')
        }
        request.result.createObjectStore(STORE, { keyPath: 'key' }).createIndex('at', 'at')
      })
      request.addEventListener('success', () => resolve(request.result))
      request.addEventListener('error', () => resolve(null))
      request.addEventListener('blocked', () => resolve(null))
    } catch {
      resolve(null)
    }
  })
  return opened
}

/** Runs `work` on the store; null if that is not possible. */
async function inStore<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<T | null> {
  const database = await open()
  if (database === null) return null
  return new Promise((resolve) => {
    try {
      const request = work(database.transaction(STORE, mode).objectStore(STORE))
      request.addEventListener('success', () => resolve(request.result))
      request.addEventListener('error', () => resolve(null))
    } catch {
      resolve(null)
    }
  })
}

/** The stored data of `userId` under this name; null: none, from another version, or too old. */
export async function readCached<T>(name: string, userId: number): Promise<Cached<T> | null> {
  const row: Row | null = (await inStore('readonly', (store) => store.get(`${userId} ${name}`))) ?? null
  if (row === null || row.userId !== userId || row.version !== VERSION || Date.now() - row.at > OLDEST_MS) return null
  // It was written by `keep`, in this version.
  const data: T = JSON.parse(row.json)
  return { at: row.at, data }
}

const waiting = new Map<string, unknown>()
let timer: ReturnType<typeof setTimeout> | undefined
/** What was written since this page was opened. */
const written = new Set<string>()

/** Keeps an answer for the signed-in user. */
export function keep(name: string, data: unknown): void {
  // Data that an administrator sees as somebody else is not stored.
  if (user.peek() === null || seeingAs !== null) return
  waiting.set(name, data)
  if (!written.has(name)) {
    written.add(name)
    write()
  } else timer ??= setTimeout(write, PAUSE_MS)
}

function write(): void {
  clearTimeout(timer)
  timer = undefined
  const at = Date.now()
  const userId = user.peek()?.id
  const all = [...waiting]
  waiting.clear()
  if (userId === undefined) return
  for (const [name, data] of all) {
    const row: Row = { key: `${userId} ${name}`, userId, version: VERSION, at, json: JSON.stringify(data) }
    if (row.json.length <= LARGEST) void inStore('readwrite', (store) => store.put(row))
  }
  void dropOldest()
}

async function dropOldest(): Promise<void> {
  const keys = (await inStore('readonly', (store) => store.index('at').getAllKeys())) ?? []
  for (const key of keys.slice(0, Math.max(0, keys.length - MAX_ENTRIES))) {
    void inStore('readwrite', (store) => store.delete(key))
  }
}

/** Deletes everything that was stored, for any user. */
export async function dropCached(): Promise<void> {
  waiting.clear()
  written.clear()
  shown.value = new Map()
  await inStore('readwrite', (store) => store.clear())
}

/**
 * Deletes stored data as soon as its user has signed out or lost permissions, and writes what is left to write before
 * the page closes.
 */
export function guardOfflineCache(): void {
  let before = readStatus()
  effect(() => {
    const next = status.value
    if (next === null || next === before || seeingAs !== null) return
    if (mayReadLess(before, next)) void dropCached()
    before = next
  })
  whenLeaving(dropCached)
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'hidden' && waiting.size > 0) write()
  })
}

type Shown = { readonly at: number; readonly isUsed: () => boolean }
/** By name: stored data that is shown, and whether the open page shows it. */
const shown = signal<ReadonlyMap<string, Shown>>(new Map())
/** The time of the oldest stored data on the page; null: all data comes from the service. */
export const keptAt = computed(() => {
  const times = [...shown.value.values()].filter(({ isUsed }) => isUsed()).map(({ at }) => at)
  return times.length === 0 ? null : Math.min(...times)
})

function setShown(name: string, what: Shown | null): void {
  const next = new Map(shown.peek())
  if (what === null) next.delete(name)
  else next.set(name, what)
  if (next.size > 0 || shown.peek().size > 0) shown.value = next
}

type Slot<T> = { peek(): T | null; value: T | null; subscribe(listener: (value: T | null) => void): () => void }

/** Fills a slot with the data stored under this name until newer data arrives, and stores that from then on. */
function fill<T>(name: string, slot: Slot<T>, isUsed: () => boolean, onFound: (found: T) => void): () => void {
  const userId = user.peek()?.id
  if (userId === undefined || seeingAs !== null) return () => {}
  let isOver = false
  let old: T | null = null
  const stop = slot.subscribe((value) => {
    if (value === null || value === old) return
    setShown(name, null)
    keep(name, value)
  })
  const show = async () => {
    const found = await readCached<T>(name, userId)
    if (isOver || found === null || slot.peek() !== null || user.peek()?.id !== userId) return
    old = found.data
    setShown(name, { at: found.at, isUsed })
    onFound(found.data)
    slot.value = found.data
  }
  void show()
  return () => {
    isOver = true
    stop()
    setShown(name, null)
  }
}

/** The same for a list that several pages share. Pages that do not use it do not wait for it. */
export function useCachedList<T>(
  name: string,
  slot: Slot<T>,
  error: Signal<ApiError | null> | null = null,
  isUsed: () => boolean = () => true,
): void {
  useEffect(() => fill(name, slot, isUsed, () => dropOffline(error)), [name])
}

/** Stored data is shown, so the page does not say that nothing was loaded. */
function dropOffline(error: Signal<ApiError | null> | null): void {
  if (error?.peek()?.code === 'offline') error.value = null
}

/**
 * Shows what was last loaded under this name until the answer arrives, also while the service is unreachable. Returns
 * the stored data once it is shown.
 */
export function useOfflineCache<T>(
  name: string,
  { data, error }: Pick<Loaded<T>, 'data' | 'error'>,
): { readonly current: T | null } {
  const kept = useRef<T | null>(null)
  useEffect(
    () =>
      fill(
        name,
        data,
        () => true,
        (found) => {
          kept.current = found
          dropOffline(error)
        },
      ),
    [name],
  )
  return kept
}
