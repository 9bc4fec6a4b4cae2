import type { InferResponseType } from 'hono/client'
import { DAY_MS, MINUTE_MS } from '../../../../shared/time.ts'
import { isOwnKind } from '../../../../shared/mesh/link-kinds.ts'
import type { api } from '../../../api.ts'
import { type Info, type LostLink } from '../../../state/mesh/links.ts'
import { t } from '../../../strings.ts'
import { needTexts } from '../../../strings/mesh/needs.ts'
import { problemWords } from '../../../strings/system/radio-problems.ts'
import type { Need, Remedy } from './need.ts'

type Links = InferResponseType<typeof api.dashboard.$get, 200>['links']
type State = {
  readonly name: string
  readonly since: number
  readonly reason: string | null
  readonly isRadio: boolean
}

/** A collector that delivers nothing for so long is down. */
const QUIET_MS = 30 * MINUTE_MS
/** A collector that has been away for longer was switched off. */
const GONE_MS = 7 * DAY_MS

/** Radios and brokers that are down, as the answer for the dashboard has them. */
export function downOf(links: Links): State[] {
  return links
    .filter(({ state, reason }) => state !== 'connected' && state !== 'handshake' && reason !== null)
    .map(({ name, kind, since, lastFrameAt, reason }) => ({
      name,
      since: lastFrameAt ?? since,
      reason,
      isRadio: isOwnKind(kind),
    }))
}

/** The same for those who may see everything about the links. */
export function lostOf(lost: readonly LostLink[]): State[] {
  return lost.map(({ link: { name, kind, reason }, since }) => ({ name, since, reason, isRadio: isOwnKind(kind) }))
}

export function linkNeeds(down: readonly State[], remedy: Remedy | null): Need[] {
  return down.map(({ name, since, reason, isRadio }) => ({
    key: `link ${name}`,
    severity: 'error',
    text: needTexts.linkDown(isRadio ? t.lost.radio(name) : t.lost.broker(name)),
    since,
    // Who cannot open the page of the service can look at the radio.
    details: [
      reason === null ? null : problemWords(reason),
      remedy === null ? (isRadio ? t.lost.checkRadio : t.lost.checkBroker) : null,
    ].filter((detail) => detail !== null),
    remedy,
  }))
}

/** Collectors that deliver nothing, and this service's own deliveries that fail. */
export function collectorNeeds({ sources, collector }: Info, now: number, remedy: Remedy | null): Need[] {
  const quiet = sources.flatMap(({ kind, name, lastReceivedAt }): Need[] => {
    const isQuiet = lastReceivedAt !== null && now - lastReceivedAt > QUIET_MS && now - lastReceivedAt < GONE_MS
    if (kind !== 'ingest' || !isQuiet) return []
    const text = needTexts.sourceQuiet(name)
    return [{ key: `source ${name}`, severity: 'error', text, since: lastReceivedAt, details: [], remedy }]
  })
  if (collector === null || collector.reason === null) return quiet
  const { target, reason, lastDeliveredAt } = collector
  const text = needTexts.notDelivered(target)
  return [...quiet, { key: 'collector', severity: 'error', text, since: lastDeliveredAt, details: [reason], remedy }]
}

/** Whether a collector delivers. */
export function isDelivered({ sources }: Info, now: number): boolean {
  return sources.some(
    ({ kind, lastReceivedAt }) => kind === 'ingest' && lastReceivedAt !== null && now - lastReceivedAt <= QUIET_MS,
  )
}
