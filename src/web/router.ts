import { computed, signal } from '@preact/signals'
import { BASE, isRecord } from './api.ts'
import { focusAgain, type Followed, followedBy } from './focus-again.ts'

/** The current location: a path relative to the site's own, and its query. */
export type Place = { readonly path: string; readonly query: URLSearchParams }

export const place = signal<Place>(readPlace())
/** Path and query as one text, for example to return to it. */
export const currentUrl = computed(() => {
  const query = place.value.query.toString()
  return query === '' ? place.value.path : `${place.value.path}?${query}`
})

function readPlace(): Place {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length - 1) : '/'
  return { path: path.replace(/(?<=.)\/+$/, ''), query: new URLSearchParams(location.search) }
}

/** The query of each page when it was left, the latest page last. */
const queries = new Map<string, string>()
place.subscribe(({ path, query }) => {
  queries.delete(path)
  queries.set(path, query.toString())
})

/** The pages seen since the site was loaded, the latest last. */
export function visited(): readonly string[] {
  return [...queries.keys()]
}

/** The address of a page with its last search and sorting, for links back to a list. */
export function asLeft(path: string): string {
  const query = queries.get(path) ?? ''
  return query === '' ? path : `${path}?${query}`
}

/** The pages that show a chosen time. */
const HAS_RANGE =
  /^\/(?:map|messages|packets|traceroutes|neighbors|topology|audit|nodes\/(?:compare|![0-9a-f]{8}))(?:\?|$)/
/** Links with these show a certain moment. */
const HAS_MOMENT = /[?&](?:message|trace|range|from|to|at)=/
/** What names it, as `readRange` reads it. In older addresses, `from` is a node. */
const RANGE_NAMES = ['range', 'from', 'to'] as const
const carried = computed(() => {
  const { path, query } = place.value
  const named = RANGE_NAMES.map((name) => [name, query.get(name) ?? ''] as const)
  const known = HAS_RANGE.test(path) ? named.filter(([, value]) => /^\w{1,16}$/.test(value)) : []
  return new URLSearchParams(known.map(([name, value]) => [name, value])).toString()
})

/** The address of a page of this site, for links. Between pages that show a chosen time, it goes along. */
export function href(path: string): string {
  const range = carried.value
  const isCarried = range !== '' && HAS_RANGE.test(path) && !HAS_MOMENT.test(path)
  return addressOf(isCarried ? `${path}${path.includes('?') ? '&' : '?'}${range}` : path)
}

const addressOf = (path: string): string => BASE.slice(0, -1) + path

/** Goes to a path of this site, by a link. `replace` leaves no entry in the history. */
export function navigate(path: string, options: { replace?: boolean; link?: Element } = {}): void {
  if (!options.replace) endReturn()
  if (options.replace) history.replaceState(history.state, '', addressOf(path))
  else {
    leaveEntry(options.link === undefined ? null : followedBy(options.link))
    entry = newEntry()
    history.pushState({ entry }, '', addressOf(path))
    isReturning.value = false
  }
  place.value = readPlace()
  if (!options.replace) scrollPage(0)
}

/** Identifies an entry of the history, also after a reload. */
function newEntry(): string {
  return crypto.randomUUID()
}

/** The current entry of the history. */
export function entryOf(): string {
  const { state } = history
  return isRecord(state) && typeof state['entry'] === 'string' ? state['entry'] : ''
}

/** The state in which a page was left: its scroll position, its list, and by which link; null: by none. */
type Left = { readonly page: number; readonly list: number; readonly followed: Followed | null }
const left = new Map<string, Left>()
const MAX_LEFT = 50
/** Set while a page is restored; its lists then show what they showed. */
export const isReturning = signal(false)
let entry = ''

function pageTop(): number {
  return document.querySelector('.scroller')?.scrollTop ?? 0
}

function scrollPage(top: number): void {
  document.querySelector('.scroller')?.scrollTo(0, top)
}

function leaveEntry(followed: Followed | null): void {
  left.delete(entry)
  left.set(entry, { page: pageTop(), list: document.querySelector('.virtual')?.scrollTop ?? 0, followed })
  const [oldest] = left.keys()
  if (left.size > MAX_LEFT && oldest !== undefined) left.delete(oldest)
}

/** The row by which the page was left to which the user is returning; null: unknown. */
export function rowOnReturn(): string | null {
  return isReturning.peek() ? (left.get(entry)?.followed?.row ?? null) : null
}

/** A list that takes longer to load stays at its beginning. */
const RETURN_MS = 30_000

/** Ends the return under way: another page is shown now. */
let endReturn = (): void => {}

function returnTo({ page, list }: Left): void {
  const until = Date.now() + RETURN_MS
  isReturning.value = true
  const listening = new AbortController()
  const stop = () => {
    if (listening.signal.aborted) return
    listening.abort()
    isReturning.value = false
  }
  endReturn = stop
  for (const kind of ['wheel', 'touchstart', 'keydown', 'pointerdown'] as const) {
    addEventListener(kind, stop, { signal: listening.signal, passive: true })
  }
  const step = () => {
    if (listening.signal.aborted) return
    const box = document.querySelector('.virtual')
    scrollPage(page)
    if (box !== null) box.scrollTop = list
    const isThere = Math.abs(pageTop() - page) < 2 && Math.abs((box?.scrollTop ?? 0) - list) < 2
    if (!isThere && Date.now() < until) requestAnimationFrame(step)
    // The lists must notice first that they are scrolled.
    else requestAnimationFrame(() => requestAnimationFrame(stop))
  }
  // The page must be rendered first.
  requestAnimationFrame(step)
}

/** Changes the query in place, for filters that survive a link or a reload. Empty values are left out. */
export function setQuery(changes: Readonly<Record<string, string>>): void {
  const query = new URLSearchParams(place.value.query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  navigate(text === '' ? place.value.path : `${place.value.path}?${text}`, { replace: true })
}

const NODE_ID = /^!(?!0{8}|f{8})[0-9a-f]{8}$/

/** The node in the address's parameter `name`; null: none, or an invalid one. */
export function queryNode(query: URLSearchParams, name: string): string | null {
  const id = query.get(name)?.toLowerCase() ?? ''
  return NODE_ID.test(id) ? id : null
}

/** The nodes in the address's parameter `name`, each once, without invalid ones. */
export function nodeIdsOf(query: URLSearchParams, name: string): readonly string[] {
  const ids = (query.get(name) ?? '').toLowerCase().split(',')
  return [...new Set(ids.filter((id) => NODE_ID.test(id)))]
}

/** Where to go after signing in: a path of this site, else the start page. */
export function safeReturn(wanted: string | null): string {
  if (wanted === null || !/^\/(?![/\\])/.test(wanted) || /[\p{Cc}\\]/u.test(wanted)) return '/'
  const { origin, pathname, search } = new URL(wanted, location.origin)
  return origin === location.origin && pathname !== '/login' ? pathname + search : '/'
}

/** Follows links of this site without reloading the page. */
export function followLinks(): void {
  history.scrollRestoration = 'manual'
  if (entryOf() === '') history.replaceState({ entry: newEntry() }, '')
  entry = entryOf()
  addEventListener('popstate', () => {
    endReturn()
    leaveEntry(null)
    entry = entryOf()
    const known = left.get(entry)
    isReturning.value = known !== undefined
    place.value = readPlace()
    if (known === undefined) scrollPage(0)
    else returnTo(known)
    if (known?.followed) focusAgain(known.followed)
  })
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return
    if (!link.pathname.startsWith(BASE) || link.pathname.startsWith(`${BASE}api/`) || link.hash !== '') return
    event.preventDefault()
    navigate(link.pathname.slice(BASE.length - 1) + link.search, { link })
  })
}
