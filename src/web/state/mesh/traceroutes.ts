import { useMemo, useRef } from 'preact/hooks'
import type { Traceroute, TraceroutePage } from '../../../app/mesh/topology/traceroutes.ts'
import { api, askAs } from '../../api.ts'
import type { LiveEvent } from '../live.ts'
import { type Loaded, useLoad } from '../load.ts'
import { type Range, rangeKey, timesOf } from '../range.ts'
import { createTagged } from '../tagged.ts'

const POLL_MS = 5000
/** For more changed traceroutes, the page is loaded again. */
const MAX_SINGLE = 4

/** The limits of a list, as in the query of `GET /api/traceroutes`. */
export type TracerouteQuery = {
  readonly limit: string
  readonly node?: string
  readonly with?: string
  readonly origin?: 'own' | 'overheard'
  readonly answered?: 'true' | 'false'
}
/** With the time of the request, which moves with a range that ends now. */
type Timed = TracerouteQuery & ReturnType<typeof timesOf>
type Page = TraceroutePage & { readonly key: string }

/** The newest traceroutes, kept up to date: only those are loaded that were added or have changed. */
export function useTraceroutes(by: TracerouteQuery, range: Range | null): Loaded<Page> {
  const key = JSON.stringify(by) + rangeKey(range)
  const pages = useMemo(() => createTagged<TraceroutePage>(), [key])
  const known = useRef<Page | null>(null)
  /** What has changed since the last load, by id; null: anything may have. */
  const changed = useRef<ReadonlySet<number> | null>(null)
  const note = (event: LiveEvent) => {
    const id = event?.data['id']
    const before = changed.current
    changed.current = typeof id === 'number' && before !== null ? new Set([...before, id]) : null
    return false
  }
  const load = async (): Promise<Page> => {
    const query = { ...by, ...timesOf(range) }
    const before = known.current?.key === key ? known.current : null
    const ids = changed.current
    changed.current = new Set()
    try {
      const isFew = before !== null && ids !== null && ids.size > 0 && ids.size <= MAX_SINGLE
      known.current = isFew
        ? withChanged(before, await Promise.all([...ids].map((id) => readOne(query, id))))
        : { ...(await pages.read((options) => api.traceroutes.$get({ query }, options))), key }
      return known.current
    } catch (error) {
      changed.current = null
      throw error
    }
  }
  return useLoad(load, [key], POLL_MS, ['traceroute'], note)
}

/** Null: it does not belong to the list. */
async function readOne(query: Timed, id: number): Promise<Traceroute | null> {
  const one = { ...query, limit: '1', before: String(id + 1) }
  const { traceroutes } = await askAs<TraceroutePage>(api.traceroutes.$get({ query: one }))
  return traceroutes.find((trace) => trace.id === id) ?? null
}

/** Newest first. Those that move out of the first page stay. */
function withChanged(page: Page, changed: readonly (Traceroute | null)[]): Page {
  const byId = new Map(page.traceroutes.map((trace) => [trace.id, trace]))
  for (const trace of changed) if (trace !== null) byId.set(trace.id, trace)
  return { ...page, traceroutes: [...byId.values()].toSorted((a, b) => b.id - a.id) }
}
