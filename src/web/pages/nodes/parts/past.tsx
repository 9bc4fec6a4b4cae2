import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import type { ComponentChildren } from 'preact'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../../shared/time.ts'
import { api, ask } from '../../../api.ts'
import { count, date, dateMinutes, decimal, duration, humanize, modelName } from '../../../format.ts'
import { distance, measure } from '../../../measure.ts'
import { Age, now } from '../../../parts/age.tsx'
import { linkNames, markOf } from '../../../parts/mesh/linked-names.tsx'
import { decibels } from '../../../parts/mesh/snr.ts'
import { Failure } from '../../../parts/notice.tsx'
import { Card } from '../../../parts/page.tsx'
import { useLoad } from '../../../state/load.ts'
import { type Node, nodeByNum, nodeName } from '../../../state/mesh/nodes.ts'
import { isAnonymous } from '../../../state/session.ts'
import { pastTexts } from '../../../strings/mesh/past.ts'
import './past.css'

const POLL_MS = 60_000
/** Only of a node that was not heard within this time, it matters that no reasons could be asked for. */
const SILENT_MS = 2 * HOUR_MS
const DAYS = 30
const HOURS = 24
const EVENTS = 8
const MAX_ALERTS = 50
/** The rows for the ways by which it came, with the distance above them. */
const WAYS = 2
/** The side of an hour's square and the distance between two, in units of the drawing. */
const SIDE = 9
const STEP = 10

type Past = InferResponseType<(typeof api.nodes)[':id']['past']['$get'], 200>
type Silence = InferResponseType<(typeof api.nodes)[':id']['silence']['$get'], 200>
type Reason = Silence['reasons'][number]

/** Why the node may be silent, once it has been for longer than usual, or nothing of it can be read any more. */
export function NodeSilence({ node }: { node: Node }) {
  const param = { id: node.nodeId }
  const { data, error } = useLoad(() => ask(api.nodes[':id'].silence.$get({ param })), [node.nodeId], POLL_MS)
  const silence = data.value
  const isLate = node.lastHeard !== null && Math.abs(now.value - node.lastHeard) > SILENT_MS
  if (silence?.isSilent !== true && (error.value === null || !isLate)) return null
  return (
    <Card title={pastTexts.why} help={pastTexts.whyHelp}>
      <Failure error={error.value} />
      {silence !== null && (
        <>
          {silence.usualPause !== null && (
            <p class="faint">{pastTexts.usually(duration(Math.round(silence.usualPause / MINUTE_MS) * 60))}</p>
          )}
          {silence.reasons.length === 0 && <p>{pastTexts.noReason}</p>}
          <ol class="rows tight">
            {silence.reasons.map((reason, index) => (
              <li key={index}>
                <span class="grow break">{wordsOf(reason)}</span>
                {reason.kind !== 'retention' && (
                  <span class={reason.isLikely ? 'tag warn' : 'tag'}>
                    {reason.isLikely ? pastTexts.likely : pastTexts.possible}
                  </span>
                )}
              </li>
            ))}
          </ol>
        </>
      )}
    </Card>
  )
}

/** A reason as a sentence with its evidence. */
function wordsOf(reason: Reason): ComponentChildren {
  const texts = pastTexts.reasons
  switch (reason.kind) {
    case 'battery': {
      const { level, voltage, perDay } = reason
      const shown = [level === null ? [] : `${decimal(level, 0)} %`, voltage === null ? [] : measure(voltage, 'V', 2)]
      const last = shown.flat().join(', ')
      return perDay === null || reason.isLikely
        ? texts.battery(last)
        : texts.batteryFell(last, `${decimal(perDay, 0)} %`)
    }
    case 'repeater': {
      const names = reason.gone.map((_, index) => markOf(index)).join(', ')
      const others = reason.others === 0 ? '' : ` ${texts.repeaterOthers(reason.others)}`
      return linkNames(`${texts.repeater(names)}${others}`, reason.gone)
    }
    case 'moved':
      return texts.moved(distance(reason.metres), dateMinutes(reason.at))
    case 'changed': {
      const { field, before, after, at } = reason
      if (field === 'publicKey') return texts.keyChanged(dateMinutes(at))
      return texts.changed(pastTexts.fields[field], shown(field, before), shown(field, after), dateMinutes(at))
    }
    case 'renumbered': {
      const text = reason.sameKey ? texts.sameKey(markOf(0)) : texts.sameName(markOf(0))
      return linkNames(text, [reason])
    }
    case 'radio':
    case 'broker': {
      const since = reason.since === null ? '–' : dateMinutes(reason.since)
      const text = texts[reason.kind](reason.source, since)
      return reason.state === null || reason.state === 'connected' ? text : `${text} ${texts.notConnected}`
    }
    case 'gateway':
      return linkNames(texts.gateway(markOf(0), reason.source, dateMinutes(reason.since)), [reason])
    case 'ignored':
      return texts.ignored
    case 'filtered': {
      const { by, packets } = reason
      const source = reason.source ?? ''
      if (by === 'suspicion') return texts.suspicion(packets ?? 0)
      if (by === 'removed') return texts.removed(source, dateMinutes(reason.since))
      return by === 'collector' ? texts.collector(source) : texts.newcomers(source, packets ?? 0)
    }
    case 'unread': {
      const { packets, change } = reason
      const text = packets === 0 ? texts.notOurs : texts.unread(packets, dateMinutes(reason.since))
      if (change === null) return text
      const who = change.by ?? pastTexts.theService
      return `${text} ${texts.channelsChanged(who, change.source, dateMinutes(change.at))}`
    }
    case 'clock': {
      const span = reason.ahead === null ? '' : duration(Math.abs(reason.ahead) / SECOND_MS)
      if (reason.whose === 'node') return texts.clockOfNode(span)
      return reason.ahead === null ? texts.clockUnsure : texts.clockAhead(span)
    }
    case 'retention':
      return texts.retention(dateMinutes(reason.since))
  }
}

function shown(field: string, value: string | null): string {
  if (value === null || value === '') return pastTexts.withdrawn
  if (field === 'role') return humanize(value)
  return field === 'hwModel' ? modelName(value) : value
}

/** When and by whom the node was heard, and what happened to it. */
export function NodePast({ node }: { node: Node }) {
  const param = { id: node.nodeId }
  const { data, error } = useLoad(
    () => ask(api.nodes[':id'].past.$get({ param })),
    [node.nodeId],
    POLL_MS,
    ['node'],
    null,
    node.nodeId,
    POLL_MS,
  )
  const past = data.value
  const alerts = useAlerts(node)
  return (
    <div class="node-past">
      <Card title={pastTexts.heard} help={pastTexts.heardHelp}>
        <Failure error={error.value} />
        {past !== null && <Calendar past={past} />}
        {past !== null && <Ways past={past} />}
        {past !== null && <Receivers past={past} />}
      </Card>
      <Card title={pastTexts.story}>
        {past !== null && <Story events={[...past.events, ...alerts].toSorted((a, b) => b.t - a.t)} />}
      </Card>
    </div>
  )
}

type Alert = { readonly kind: 'alert'; readonly t: number; readonly what: string }

/** The reader's alerts about a node. */
function useAlerts({ nodeNum }: Node): readonly Alert[] {
  const { data } = useLoad(
    async () => {
      if (isAnonymous.value) return []
      const { alerts } = await ask(api.alerts.$get({ query: { node: String(nodeNum), limit: String(MAX_ALERTS) } }))
      return alerts.map(({ startedAt, firedAt, what }) => ({ kind: 'alert' as const, t: firedAt ?? startedAt, what }))
    },
    [nodeNum],
    POLL_MS,
    ['alert'],
  )
  return data.value ?? []
}

function Calendar({ past: { from, hours, days } }: { past: Past }) {
  if (hours.length === 0) return <p class="faint">{pastTexts.nothingHeard}</p>
  const first = new Date(from)
  first.setHours(0, 0, 0, 0)
  const most = Math.max(...hours.map(({ packets }) => packets))
  const level = (packets: number) => Math.ceil((Math.log1p(packets) / Math.log1p(most)) * 4)
  return (
    <svg
      class="heard-hours"
      viewBox={`0 0 ${(DAYS + 1) * STEP} ${(HOURS + WAYS) * STEP}`}
      role="img"
      aria-label={pastTexts.heardHours(hours.length, DAYS * HOURS)}
    >
      <rect class="none" width={(DAYS + 1) * STEP - 1} height={HOURS * STEP - 1} />
      {hours.map(({ t, packets }) => {
        const at = new Date(t)
        // Days that begin or end summer time have another length.
        const day = Math.round((new Date(t).setHours(0, 0, 0, 0) - first.getTime()) / DAY_MS)
        return (
          <rect key={t} class={`l${level(packets)}`} x={day * STEP} y={at.getHours() * STEP} width={SIDE} height={SIDE}>
            <title>{pastTexts.hour(dateMinutes(t), packets)}</title>
          </rect>
        )
      })}
      {days.map((day) => {
        // Its middle lies in the same column nearly everywhere.
        const noon = new Date(day.t + DAY_MS / 2).setHours(0, 0, 0, 0)
        const x = Math.max(0, Math.round((noon - first.getTime()) / DAY_MS)) * STEP
        const height = Math.max(1, (day.direct / Math.max(1, day.packets)) * SIDE)
        const y = (HOURS + WAYS) * STEP - 1
        return (
          <g key={day.t}>
            <rect class="l1" x={x} y={y - SIDE} width={SIDE} height={SIDE} />
            <rect class="l4" x={x} y={y - height} width={SIDE} height={height} />
            <title>{pastTexts.day(date(day.t + DAY_MS / 2), day.packets, day.direct, hopsOf([day]))}</title>
          </g>
        )
      })}
    </svg>
  )
}

/** By which hops it came, as the end of a sentence. */
function hopsOf(days: Past['days']): string {
  const known = days.flatMap(({ minHops, maxHops }) => [minHops ?? [], maxHops ?? []].flat())
  const most = Math.max(0, ...known)
  return most === 0 ? '' : pastTexts.overHops(Math.max(1, Math.min(...known)), most)
}

/** How much came directly, in words: the squares say it only to a pointer. */
function Ways({ past: { days } }: { past: Past }) {
  const [packets, direct] = [days.map((day) => day.packets), days.map((day) => day.direct)].map((list) =>
    list.reduce((sum, n) => sum + n, 0),
  )
  if (packets === undefined || direct === undefined || packets === 0) return null
  return <p class="faint">{pastTexts.directShare(`${decimal((direct / packets) * 100, 0)} %`, hopsOf(days))}</p>
}

function Receivers({ past: { receivers } }: { past: Past }) {
  return (
    <>
      <h3>{pastTexts.by}</h3>
      {receivers.length === 0 && <p class="faint">{pastTexts.noReceiver}</p>}
      <ul class="rows tight">
        {receivers.map(({ source, gateway, gatewayId, lastAt, packets, hops, snr }) => (
          <li key={`${source} ${gatewayId}`}>
            <span class="grow break">
              <bdi>{gatewayId === null ? source : pastTexts.over(gatewayName(gateway, gatewayId), source)}</bdi>
              <span class="faint">
                {' · '}
                {[
                  hops === null ? [] : hops === 0 ? pastTexts.direct : pastTexts.hops(hops),
                  snr === null ? [] : decibels(snr),
                  pastTexts.packets(packets),
                ]
                  .flat()
                  .join(' · ')}
              </span>
            </span>
            <span class="faint nowrap">
              <Age at={lastAt} short />
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}

function gatewayName(gateway: number | null, gatewayId: string): string {
  const node = gateway === null ? undefined : nodeByNum(gateway)
  return node === undefined ? gatewayId : nodeName(node)
}

type Told = Past['events'][number] | Alert

function Story({ events }: { events: readonly Told[] }) {
  const isWhole = useSignal(false)
  const list = isWhole.value ? events : events.slice(0, EVENTS)
  return (
    <>
      <ul class="rows tight">
        {list.map((event, index) => (
          <li key={index}>
            <span class="grow break">
              <bdi>{told(event)}</bdi>
            </span>
            <span class="faint nowrap">{dateMinutes(event.t)}</span>
          </li>
        ))}
      </ul>
      {events.length > list.length && (
        <button class="button small" onClick={() => (isWhole.value = true)}>
          {pastTexts.more} ({count(events.length)})
        </button>
      )}
    </>
  )
}

const markName = (field: string) =>
  Object.entries(pastTexts.marks).find(([name]) => name === field)?.[1] ?? humanize(field)

function told(event: Told): string {
  switch (event.kind) {
    case 'first_heard':
      return pastTexts.firstHeard
    case 'silent':
      return event.until === null
        ? pastTexts.silentNow
        : pastTexts.silentFor(duration((event.until - event.t) / SECOND_MS))
    case 'moved':
      return pastTexts.movedBy(distance(event.metres))
    case 'alert':
      return pastTexts.alert(event.what)
    case 'set': {
      const who = event.by ?? pastTexts.theService
      if (event.isRestart) return pastTexts.restartedBy(who)
      const what = event.fields.map(markName).join(', ')
      return event.section === null
        ? pastTexts.setHere(who, what)
        : pastTexts.setThere(who, humanize(event.section), what)
    }
    case 'changed': {
      const { field, before, after } = event
      if (field === 'publicKey') return pastTexts.newKey
      if (field === 'restarted') return pastTexts.restarted(duration(Number(before)))
      return pastTexts.becomes(pastTexts.fields[field], shown(field, before), shown(field, after))
    }
  }
}
