import type { Ports } from '../../app/base/context.ts'
import type { Note } from '../../app/mesh/live/event.ts'

/** The binding to the objects with the streams of live events; null: wrangler.toml has none. */
export type Objects = DurableObjectNamespace<LiveRpc>

/** The service where the streams are. */
export type Serving = {
  readonly ports: Pick<Ports, 'store' | 'log'>
  readonly fetch: (request: Request) => Promise<Response>
}

/** What the worker and the other objects call. */
export interface LiveRpc extends Rpc.DurableObjectBranded {
  fetch(request: Request): Promise<Response>
  tell(told: Told): Promise<void>
  /** Object `index` has readers: the first object passes on to it what it is told. */
  join(index: number): Promise<Passed>
}

/** How many notes the first object, or an isolate, has told in its present life. */
export type Passed = { readonly by: string; readonly count: number }

export type Told = {
  readonly notes: readonly Note[]
  /** Earlier notes were lost. */
  readonly isMissing: boolean
  /** What an isolate of the worker tells has numbers without a gap. */
  readonly counted?: Passed
  /** The note's number, if the first object passes it on. */
  readonly passed?: Passed
}

/** When the alarm of the first object rings after alerts were stored: as soon as the first of single events is due. */
export const ALERTS_AFTER_MS = 3000

/** Whether alerts have changed. Another object's notes were the first one's before. */
export function tellsAlert({ notes, passed }: Told): boolean {
  if (passed !== undefined) return false
  return notes.some((note) => note.kind === 'events' && note.events.some(({ kind }) => kind === 'alert'))
}

/** As many objects share the readers, each up to `MOST_READERS`. */
export const OBJECTS = 10
export const MOST_READERS = 1000

/** The request's header with the index of the object, and the answer's header of an object that is full. */
export const INDEX_HEADER = 'x-live-object'
export const FULL_HEADER = 'x-live-full'

/** The object with this index. A stub that has thrown may stay broken, so each call gets a new one. */
export function objectOf(objects: Objects, index: number) {
  return objects.get(objects.idFromName(`live-${index}`))
}
