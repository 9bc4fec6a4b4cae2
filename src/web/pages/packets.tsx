import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { useEffect } from 'preact/hooks'
import { api, ask, isRecord } from '../api.ts'
import { dateTime, humanize, stamp } from '../format.ts'
import { useAction, useLoad } from '../load.ts'
import { BROADCAST, nodeByNum, nodeName, useNodes } from '../mesh.ts'
import { Icon } from '../parts/icon.tsx'
import { Empty, Failure } from '../parts/notice.tsx'
import { Page } from '../parts/page.tsx'
import { Select } from '../parts/field.tsx'
import { href, place, setQuery } from '../router.ts'
import { can } from '../session.ts'
import { t } from '../strings.ts'

type Packet = InferResponseType<typeof api.packets.$get>['packets'][number]

const POLL_MS = 4000
const PAGE = '100'

/** What the radios heard, packet by packet. */
export function PacketsPage() {
  const mayName = can('nodes', 'read')
  const { query } = place.value
  const port = query.get('port') ?? ''
  const from = query.get('from') ?? ''
  const by = { limit: PAGE, ...(port !== '' && { port }), ...(from !== '' && { from }) }
  const key = JSON.stringify(by)
  const { data, error, reload } = useLoad(() => ask(api.packets.$get({ query: by })), [key], POLL_MS)
  const older = useSignal<readonly Packet[]>([])
  const next = useSignal<number | null | undefined>(undefined)
  const more = useAction()
  useEffect(() => {
    older.value = []
    next.value = undefined
  }, [key])
  const newest = data.value?.packets ?? []
  const before = next.value === undefined ? (data.value?.nextBefore ?? null) : next.value
  const packets = [...new Map([...newest, ...older.value].map((packet) => [packet.id, packet])).values()].toSorted(
    (a, b) => b.id - a.id,
  )
  const loadMore = (cursor: number) =>
    more.run(async () => {
      const page = await ask(api.packets.$get({ query: { ...by, before: String(cursor) } }))
      // What moved out of the newest page meanwhile stays in sight.
      older.value = [...older.value, ...newest, ...page.packets]
      next.value = page.nextBefore
    })
  return (
    <Page title={t.packets.title}>
      {mayName && <NodeNames />}
      <div class="toolbar">
        <Select
          label={t.packets.port}
          value={port}
          options={[['', t.common.all], ...Object.entries(t.packets.ports)]}
          onChange={(value) => setQuery({ port: value })}
        />
        {from !== '' && (
          <button type="button" class="button" onClick={() => setQuery({ from: '' })}>
            {t.packets.onlyFrom(from)} <Icon name="close" />
          </button>
        )}
      </div>
      <Failure error={more.error.value ?? error.value} retry={reload} />
      {data.value !== null && packets.length === 0 && <Empty icon="packets" title={t.packets.none} />}
      {packets.length > 0 && <PacketTable packets={packets} />}
      {before !== null && (
        <button type="button" class="button" disabled={more.busy.value} onClick={() => void loadMore(before)}>
          {more.busy.value ? t.common.loading : t.common.more}
        </button>
      )}
    </Page>
  )
}

/** Keeps the nodes at hand, so that numbers have names. */
function NodeNames() {
  useNodes()
  return null
}

function PacketTable({ packets }: { packets: readonly Packet[] }) {
  return (
    <div class="table-box">
      <table class="table audit">
        <thead>
          <tr>
            <th scope="col">{t.audit.when}</th>
            <th scope="col">{t.packets.from}</th>
            <th scope="col">{t.packets.kind}</th>
            <th scope="col" class="wide-only">
              {t.packets.to}
            </th>
            <th scope="col" class="wide-only">
              {t.packets.signal}
            </th>
          </tr>
        </thead>
        <tbody>
          {packets.map((packet) => (
            <PacketRow packet={packet} key={packet.id} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function PacketRow({ packet }: { packet: Packet }) {
  const isOpen = useSignal(false)
  const { rxSnr, hopsAway } = packet
  const arrival = [
    hopsAway === null ? null : t.nodes.hopsAway(hopsAway),
    rxSnr === null ? null : `${rxSnr} dB`,
    packet.viaMqtt ? t.nodes.mqtt : null,
  ]
  return (
    <>
      <tr>
        <td class="nowrap">
          <button
            type="button"
            class="expander"
            aria-expanded={isOpen.value}
            onClick={() => (isOpen.value = !isOpen.value)}
          >
            <Icon name="next" />
            <time dateTime={new Date(packet.timestamp).toISOString()} title={dateTime(packet.timestamp)}>
              {stamp(packet.timestamp)}
            </time>
          </button>
        </td>
        <td>
          <button type="button" class="text-button" onClick={() => setQuery({ from: packet.fromNodeId })}>
            {nameOf(packet.fromNodeNum, packet.fromNodeId)}
          </button>
        </td>
        <td>{packet.portName === null ? t.packets.unreadable : humanize(packet.portName.replace(/_APP$/, ''))}</td>
        <td class="wide-only">
          {packet.toNodeNum === BROADCAST ? t.packets.everybody : nameOf(packet.toNodeNum, packet.toNodeId)}
        </td>
        <td class="wide-only faint">{arrival.filter((part) => part !== null).join(' · ')}</td>
      </tr>
      {isOpen.value && (
        <tr class="detail">
          <td colSpan={5}>
            <Details packet={packet} />
          </td>
        </tr>
      )}
    </>
  )
}

function Details({ packet }: { packet: Packet }) {
  const { payload, ...rest } = packet
  const facts = [...Object.entries(rest), ...Object.entries(isRecord(payload) ? payload : {})].filter(
    ([, value]) => value !== null && value !== false,
  )
  return (
    <>
      {can('nodes', 'read') && (
        <p>
          <a href={href(`/nodes/${packet.fromNodeId}`)}>{t.map.open}</a>
        </p>
      )}
      <dl class="facts mono">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === 'object' ? JSON.stringify(value) : String(value)}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}

function nameOf(nodeNum: number, nodeId: string): string {
  const node = nodeByNum(nodeNum)
  return node === undefined ? nodeId : nodeName(node)
}
