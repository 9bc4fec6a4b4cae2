import { apiLanguage } from './language.ts'
import { type Signal, signal } from '@preact/signals'
import { type ClientResponse, hc } from 'hono/client'
import type { AppType } from '../app/app.ts'

/** Path of the site, with a slash at its end; scripts are in `assets/` below it. */
export const BASE: string = new URL(/* @vite-ignore */ '../', import.meta.url).pathname

/**
 * The name under which this site stores something in the browser. A service under another path of the host shares its
 * storage with this one.
 */
export const ownName = (name: string): string => (BASE === '/' ? name : BASE + name)

/** The ticket with which an administrator sees as somebody else. Stored only in this tab. */
export type SeeingAs = {
  readonly ticket: string
  /** The user whose view is shown; null: people without an account. */
  readonly name: string | null
  /** The page on which it began. */
  readonly back: string
}

const SEE_AS_KEY = ownName('see-as')
export const seeingAs: SeeingAs | null = readSeeingAs()

function readSeeingAs(): SeeingAs | null {
  try {
    const found: SeeingAs | null = JSON.parse(sessionStorage.getItem(SEE_AS_KEY) ?? 'null')
    return found
  } catch {
    // Storage is blocked, or somebody wrote something else there.
    return null
  }
}

/** Reloads the pages as somebody else sees them, or as the administrator again. Throws if storage is blocked. */
export function seeAs(next: SeeingAs | null): void {
  if (next === null) sessionStorage.removeItem(SEE_AS_KEY)
  else sessionStorage.setItem(SEE_AS_KEY, JSON.stringify(next))
  location.assign(BASE.slice(0, -1) + (next === null ? (seeingAs?.back ?? '/') : '/'))
}

/**
 * In a frame of another site, the pages are always those for people without an account, even if somebody is signed in
 * in this browser.
 */
export const isEmbedded: boolean = location.pathname.startsWith(`${BASE}embed/`)

/** A read that is incomplete after this time fails. A write never does, because it may have been carried out. */
const READ_MS = 30_000

/** How long after an event a replica of the database may lack what the event is about. */
const TOLD_MS = 6000
let toldAt = 0

/** An event came. Until replicas have what it is about, reads ask for the latest state. */
export function noteTold(): void {
  toldAt = Date.now()
}

async function limitReads(url: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  if (init.method !== 'GET') return fetch(url, init)
  // The status route answers everybody, also after the session has ended.
  const isOfSession = !(url instanceof Request ? url.url : String(url)).endsWith('/api/auth/status')
  if (isOfSession && leaving !== null && (await leaving)) throw missing('timeout')
  const controller = new AbortController()
  const begun = Date.now()
  const giveUp = () => controller.abort(missing(heardAt.peek() > begun ? 'timeout' : 'offline'))
  // Whoever asked no longer wants the answer, and the reason is an `ApiError`.
  init.signal?.addEventListener('abort', () => controller.abort(init.signal?.reason))
  setTimeout(giveUp, READ_MS)
  if (isOfSession) unanswered.add(controller)
  const isAfterEvent = begun - toldAt < TOLD_MS
  try {
    return await fetch(url, { ...init, ...(isAfterEvent && { cache: 'no-cache' }), signal: controller.signal })
  } catch (cause) {
    if (controller.signal.reason === LEAVING) return limitReads(url, init)
    throw cause
  } finally {
    unanswered.delete(controller)
  }
}

const LEAVING = Symbol('the session is being ended')
const unanswered = new Set<AbortController>()
/** Resolves to whether the session was ended; null: it is not being ended. */
let leaving: Promise<boolean> | null = null

/**
 * Ends the session with `leave`. Pending reads are aborted, because the service would refuse them. New reads wait: they
 * fail if the session has ended, and are sent if it could not be ended.
 */
export async function withoutReads(leave: () => Promise<void>): Promise<void> {
  const left = leave()
  leaving = left.then(
    () => true,
    () => false,
  )
  for (const read of unanswered) read.abort(LEAVING)
  try {
    await left
  } finally {
    leaving = null
  }
}

/** The API, typed by the service itself. */
export const api = hc<AppType>(new URL(BASE, location.origin).href.replace(/\/$/, ''), {
  fetch: limitReads,
  headers: {
    'Accept-Language': apiLanguage,
    ...(seeingAs !== null && !isEmbedded && { 'X-See-As': seeingAs.ticket }),
  },
  ...(isEmbedded && { init: { credentials: 'omit' as const } }),
}).api

/** Whether the service answered the latest request. */
export const online: Signal<boolean> = signal(true)

/** Increases when the service answers again after an outage; components that show data then reload it. */
export const reconnects: Signal<number> = signal(0)

/** When the service last responded. */
export const heardAt: Signal<number> = signal(Date.now())

/** The service responded, by an answer or by its stream of events. */
export function noteHeard(): void {
  heardAt.value = Date.now()
  if (online.peek()) return
  online.value = true
  reconnects.value++
}

export type Issue = { readonly path: string; readonly message: string }

/**
 * A request that the service refused or did not answer. Without an answer, `code` is `timeout` if the service answered
 * something else meanwhile, otherwise `offline`.
 */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly status: number
  readonly code: string
  readonly issues: readonly Issue[]
  /** Seconds. */
  readonly retryAfter: number | null
  readonly required: { readonly resource: string; readonly action: string } | null
  readonly requestId: string | null
  /** How users can prove their identity again; comes with `reauthentication_required`. */
  readonly ways: readonly string[]

  constructor(
    status: number,
    code: string,
    detail: string,
    body: Readonly<Record<string, unknown>>,
    retryAfter: number | null,
  ) {
    super(detail)
    this.status = status
    this.code = code
    this.issues = readIssues(body['issues'])
    this.retryAfter = retryAfter
    this.required = readRequired(body['required'])
    this.ways = Array.isArray(body['ways']) ? body['ways'].filter((way) => typeof way === 'string') : []
    this.requestId = typeof body['requestId'] === 'string' ? body['requestId'] : null
  }
}

let onRefused: (code: string) => void = () => {}

/** Calls `listener` with the code of each refusal that concerns the session. */
export function watchRefusals(listener: (code: string) => void): void {
  onRefused = listener
}

/** The JSON of a successful answer. Throws `ApiError`. */
export async function ask<T>(pending: Promise<ClientResponse<T, number, 'json'>>): Promise<T> {
  const response = await send(pending)
  return response.json().catch(noteMissing)
}

/** For answers without content, and for those read elsewhere. Throws `ApiError`. */
export async function send<R extends ClientResponse<unknown, number>>(pending: Promise<R>): Promise<R> {
  const response = await pending.catch(noteMissing)
  if (isGateway(response.status)) noteMissing(null)
  noteHeard()
  if (response.ok || response.status === 304) return response
  const error = await readProblem(response)
  onRefused(error.code)
  throw error
}

const missing = (code: 'timeout' | 'offline') => new ApiError(0, code, '', {}, null)

/** Throws the error for an answer that did not arrive, or not completely. */
function noteMissing(cause: unknown): never {
  // An answer arrived, but it is not JSON.
  if (cause instanceof SyntaxError) throw cause
  const error = cause instanceof ApiError ? cause : missing('offline')
  if (error.code === 'offline') online.value = false
  throw error
}

// A proxy's answer while the service restarts; the service's own 503 is a problem document.
function isGateway(status: number): boolean {
  return status === 502 || status === 504
}

/** The content of a refusal. */
export async function readProblem(response: Pick<Response, 'status' | 'headers' | 'json'>): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => null)
  const fields = isRecord(body) ? body : {}
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new ApiError(
    response.status,
    typeof fields['code'] === 'string' ? fields['code'] : 'internal',
    typeof fields['detail'] === 'string' ? fields['detail'] : `HTTP ${response.status}`,
    fields,
    Number.isFinite(retryAfter) ? retryAfter : null,
  )
}

function readIssues(value: unknown): Issue[] {
  if (!Array.isArray(value)) return []
  return value.flatMap((issue: unknown) =>
    isRecord(issue) && typeof issue['path'] === 'string' && typeof issue['message'] === 'string'
      ? [{ path: issue['path'], message: issue['message'] }]
      : [],
  )
}

function readRequired(value: unknown): ApiError['required'] {
  if (!isRecord(value) || typeof value['resource'] !== 'string' || typeof value['action'] !== 'string') return null
  return { resource: value['resource'], action: value['action'] }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * The JSON of an answer that the service writes as text, so that its type does not reach the client. `T` is the
 * documented type of the route; the service's own tests check every answer against it. Throws `ApiError`.
 */
export async function askAs<T>(pending: Promise<ClientResponse<unknown, number>>): Promise<T> {
  const body: unknown = await (await send(pending)).json().catch(noteMissing)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return body as T
}
