import { computed, effect, signal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { isOwnKind } from '../../../shared/mesh/link-kinds.ts'
import type { DownlinkKind } from '../../../shared/mesh/downlink.ts'
import { api, ask } from '../../api.ts'
import { useLoad } from '../load.ts'
import { has } from '../session.ts'

export type Info = InferResponseType<typeof api.info.$get>
export type Link = Info['links'][number]

const POLL_MS = 10_000
// The interval where there are no live events and each row read is charged.
const SLOW_POLL_MS = 60_000

/** The radios, brokers and other sources; null until they are loaded, and for users who may not see them. */
export const info = signal<Info | null>(null)

/** Keeps `info` up to date: once per page. Rendered only for users who may see it. */
export function InfoKeeper(): null {
  const { data } = useLoad(() => ask(api.info.$get()), [], has('radio') ? POLL_MS : SLOW_POLL_MS, ['link'])
  const found = data.value
  if (found !== null && found !== info.peek()) queueMicrotask(() => (info.value = found))
  return null
}

/** No radio, broker or collector delivers anything, because there is none. False while that is unknown. */
export const isDeaf = computed(
  () => info.value?.links.length === 0 && !info.value.sources.some(({ kind }) => kind === 'ingest'),
)

/** Radios of collectors that send what this service asks for; null while that is unknown here. */
export const commanded = computed(
  () => info.value?.sources.filter(({ kind, sends }) => kind === 'ingest' && sends.length > 0) ?? null,
)

/** Whether this can be sent from here, as far as is known: the service has the last word. */
export function maySend(kind: DownlinkKind): boolean {
  return has('radio') || (commanded.value?.some(({ sends }) => sends.includes(kind)) ?? info.value === null)
}

/** Drops data that was loaded for another user. */
export function forgetLinks(): void {
  info.value = null
  lostSince.value = new Map()
}

export type LostLink = { readonly link: Link; readonly since: number }

/** Whether it has not failed yet: nothing is lost. A radio that is read answers. */
function isBeginning({ state, reason }: Link): boolean {
  return state === 'handshake' || (state === 'connecting' && reason === null)
}

/** By the name of the link: since when it has been disconnected. Retries do not change it. */
const lostSince = signal<ReadonlyMap<string, number>>(new Map())
let wereConnected: ReadonlySet<string> = new Set()

effect(() => {
  const links = info.value?.links ?? []
  const before = lostSince.peek()
  const lost = links.flatMap((link) => {
    if (link.state === 'connected') return []
    const known = before.get(link.name)
    if (known !== undefined) return [[link.name, known] as const]
    if (isBeginning(link)) return []
    // It may have failed several times by now, so the time of its last connection is better than that of the latest
    // attempt.
    return [[link.name, wereConnected.has(link.name) ? link.since : (link.lastFrameAt ?? link.since)] as const]
  })
  wereConnected = new Set(links.flatMap(({ name, state }) => (state === 'connected' ? name : [])))
  if (lost.length > 0 || before.size > 0) lostSince.value = new Map(lost)
})

/** Radios and brokers that were lost, and since when. */
export const lostLinks = computed((): readonly LostLink[] =>
  (info.value?.links ?? []).flatMap((link) => {
    const since = lostSince.value.get(link.name)
    return since === undefined ? [] : { link, since }
  }),
)

/** Whether messages can be sent without these links. */
export function canSendWithout(lost: readonly LostLink[]): boolean {
  const names = new Set(lost.map(({ link }) => link.name))
  return (info.value?.links ?? []).some(({ name, kind }) => isOwnKind(kind) && !names.has(name))
}
