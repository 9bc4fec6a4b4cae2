import { vi } from 'vitest'
import './page.ts'
import { RESOURCE_NAMES } from '../../../src/shared/access/resources.ts'
import { status } from '../../../src/web/state/session.ts'

// By a name that the compiler does not follow: its types would add those of a browser to every test.
const preact = 'preact'
const { h, render } = Object(await import(preact))

/** Answers a request of the page: the path after `/api/`, with its query. */
type Answer = (path: string, init: RequestInit) => Response | Promise<Response>

/** The service that the page talks to, until `vi.unstubAllGlobals`. Without an answer it is unreachable. */
export function serve(answer: Answer): void {
  vi.stubGlobal('fetch', async (input: string | URL, init: RequestInit = {}) => {
    const { pathname, search } = new URL(input, 'https://mesh.example.org/')
    return answer(`${pathname.slice(pathname.indexOf('/api/'))}${search}`, init)
  })
}

/** The answer of the service about a user who may read everything. */
export function statusOf(id: number) {
  const permissions = Object.fromEntries(RESOURCE_NAMES.map((name) => [name, { read: true, write: true }]))
  return { authenticated: true, user: { id, username: `user ${id}`, isAdmin: false }, permissions }
}

/** Signs a user in; null: nobody. */
export function signInAs(id: number | null): void {
  status.value = id === null ? null : Object(statusOf(id))
}

/** Nobody is signed in, and public access shows the mesh, or nothing. */
export function showToAnonymous(isShown: boolean): void {
  const permissions = Object.fromEntries(RESOURCE_NAMES.map((name) => [name, { read: isShown, write: false }]))
  status.value = Object({ authenticated: false, user: null, permissions })
}

/** The value of a hook, in a component that draws nothing. */
export function mountHook<T>(hook: () => T): { readonly current: () => T; unmount(): void } {
  const drawn: T[] = []
  const place = Object({ nodeType: 1, childNodes: [], firstChild: null, ownerDocument: null })
  function Component() {
    drawn.push(hook())
    return null
  }
  render(h(Component, null), place)
  const current = () => {
    const last = drawn.at(-1)
    if (last === undefined) throw new Error('nothing was drawn')
    return last
  }
  return { current, unmount: () => render(null, place) }
}

const { setImmediate } = globalThis

/** Advances the fake clock, and lets streams and drawing catch up. */
export async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms)
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => void setImmediate(resolve))
}

/** A promise and the functions that settle it. */
export function held<T>() {
  return Promise.withResolvers<T>()
}

export type Stream = {
  /** The position that the page reported last. */
  readonly after: string | null
  readonly signal: AbortSignal
  say(words: string | Uint8Array<ArrayBuffer>): Promise<void>
  end(): Promise<void>
}

/** Answers `GET /api/events`. */
export function createStream({ headers, signal }: RequestInit): { stream: Stream; response: Response } {
  const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>()
  const writer = writable.getWriter()
  const stream: Stream = {
    after: new Headers(headers).get('last-event-id'),
    signal: signal ?? new AbortController().signal,
    say: async (words) => {
      await writer.write(typeof words === 'string' ? new TextEncoder().encode(words) : words)
      await pass(0)
    },
    end: async () => {
      await writer.close()
      await pass(0)
    },
  }
  stream.signal.addEventListener('abort', () => void writer.abort(stream.signal.reason).catch(() => {}))
  return { stream, response: new Response(readable) }
}

/** An event as the service writes it. */
export const eventText = (id: string, kind: string, data: unknown) =>
  `id: ${id}\nevent: ${kind}\ndata: ${JSON.stringify(data)}\n\n`
