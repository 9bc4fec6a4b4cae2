import { useSignal } from '@preact/signals'
import { Fragment } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { PacketPage } from '../../../app/mesh/topology/packets.ts'
import { api, askAs, reconnects } from '../../api.ts'
import { useOfflineCache } from '../../state/offline-cache.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { type Range, rangeKey, readRange, timesOf } from '../../state/range.ts'
import { nameOf, useNames } from '../../state/mesh/nodes.ts'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Select } from '../../parts/form/field.tsx'
import { RangeControl } from '../../parts/form/range-control.tsx'
import { Icon } from '../../parts/icon.tsx'
import { LogRow, LogTable, More } from '../../parts/list/log-table.tsx'
import { MAX_AT_ONCE } from '../../parts/list/whole-list.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { Mark } from '../../parts/list/mark.tsx'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Facts, Page } from '../../parts/page.tsx'
import { href, place, queryNode, setQuery } from '../../router.ts'
import { can } from '../../state/session.ts'
import { useSteady } from '../../state/steady.ts'
import { t } from '../../strings.ts'
import { packetTexts } from '../../strings/mesh/packets.ts'
import './packets.css'
import { arrivalOf, contentFacts, contentOf, factsOf, receiverOf } from '../../parts/mesh/packet-words.ts'
import { packetKind } from '../../parts/mesh/packet-kind.ts'

type Packet = PacketPage['packets'][number]
type Filter = { readonly port: string; readonly node: string; readonly range: Range | null }

/** As often as the list moves by itself. Only later packets are loaded. */
const POLL_MS = 10_000
const PAGE_SIZE = 100

/** The log of heard packets. */
export function PacketsPage() {
  useNames()
  const { query } = place.value
  const port = query.get('port') ?? ''
  const filter = {
    port: port in packetTexts.ports ? port : '',
    node: queryNode(query, 'node') ?? queryNode(query, 'from') ?? '',
    ...readRange(query, null),
  }
  return (
    <Page title={packetTexts.title}>
      <Filters {...filter} />
      <Packets {...filter} key={JSON.stringify(filter)} />
    </Page>
  )
}

function Filters({ port, node }: Filter) {
  return (
    <div class="toolbar">
      <Select
        label={packetTexts.port}
        value={port}
        options={[['', t.common.all], ...Object.entries(packetTexts.ports)]}
        onChange={(value) => setQuery({ port: value })}
      />
      <RangeControl fallback={null} />
      {node !== '' && (
        <button type="button" class="button" onClick={() => setQuery(withSender(''))}>
          {packetTexts.onlyFrom(node)} <Icon name="close" />
        </button>
      )}
    </div>
  )
}

/** In older addresses, the sender has the name of a time. */
function withSender(node: string): Record<string, string> {
  return { node, ...(queryNode(place.peek().query, 'from') !== null && { from: '' }) }
}

function Packets(filter: Filter) {
  const { packets, next, isBusy, error, more, loadNext, reload } = usePackets(filter)
  const steady = useSteady('packets', packets ?? [], idOf)
  return (
    <>
      <Failure error={error} retry={reload} />
      {packets?.length === 0 && next === null && (
        <Empty icon="packets" title={packetTexts.none}>
          <ConnectHelp />
        </Empty>
      )}
      {steady.rows.length > 0 && (
        <SteadyList steady={steady}>
          <LogTable
            headings={[
              { name: t.common.when },
              { name: packetTexts.packet },
              { name: packetTexts.to, wideOnly: true },
              { name: packetTexts.signal, wideOnly: true },
            ]}
          >
            {steady.rows.map((packet) => (
              <PacketRow packet={packet} key={packet.id} />
            ))}
          </LogTable>
        </SteadyList>
      )}
      <More next={next} isBusy={isBusy} onMore={more} loadNext={loadNext} />
    </>
  )
}

const idOf = ({ id }: Packet) => id

/** The newest packets, kept up to date, and earlier ones on request. `filter` never changes. */
function usePackets({ port, node, range }: Filter) {
  const known = useSignal<readonly Packet[] | null>(null)
  const next = useSignal<number | null>(null)
  const action = useAction()
  const load = (before: number | null, limit = PAGE_SIZE, after: number | null = null) =>
    askAs<PacketPage>(
      api.packets.$get({
        query: {
          limit: String(limit),
          ...(port !== '' && { port }),
          ...(node !== '' && { from: node }),
          ...timesOf(range),
          ...(before !== null && { before: String(before) }),
          ...(after !== null && { after: String(after) }),
        },
      }),
    )
  /** The newest page of this visit, with the number of reconnects then: after one, the log may be another. */
  const last = useRef<{ readonly page: PacketPage; readonly reconnects: number } | null>(null)
  const loadNewest = async (): Promise<PacketPage> => {
    const now = reconnects.peek()
    const page = await withNews(last.current?.reconnects === now ? last.current.page : null)
    last.current = { page, reconnects: now }
    return page
  }
  /** Loads only packets after the known ones, unless there are more than fit in a page. */
  const withNews = async (known: PacketPage | null): Promise<PacketPage> => {
    const after = known?.packets[0]?.id
    if (known === null || after === undefined) return load(null)
    const page = await load(null, PAGE_SIZE, after)
    if (page.nextBefore !== null) return page
    const all = [...page.packets, ...known.packets]
    const packets = all.slice(0, PAGE_SIZE)
    return { packets, nextBefore: all.length > PAGE_SIZE ? (packets.at(-1)?.id ?? null) : known.nextBefore }
  }
  const newest = useLoad(loadNewest, [], POLL_MS)
  useOfflineCache(`packets ${port} ${node} ${rangeKey(range)}`, newest)
  useEffect(() => {
    const page = newest.data.value
    if (page === null) return
    const oldest = page.packets.at(-1)?.id ?? 0
    const isGap = page.nextBefore !== null && oldest > (known.peek()?.[0]?.id ?? 0)
    if (isGap || known.peek() === null) next.value = page.nextBefore
    known.value = merge(isGap ? [] : (known.peek() ?? []), page.packets)
  }, [newest.data.value])
  const loadOlder = async (before: number | null, limit: number) => {
    const page = await load(before, limit)
    known.value = merge(known.peek() ?? [], page.packets)
    next.value = page.nextBefore
  }
  return {
    packets: known.value,
    next: next.value,
    isBusy: action.busy.value,
    error: action.error.value ?? newest.error.value,
    more: (before: number) => void action.run(() => loadOlder(before, PAGE_SIZE)),
    loadNext: async () => {
      await loadOlder(next.peek(), MAX_AT_ONCE)
      return next.peek() !== null
    },
    reload: newest.reload,
  }
}

/** Newest first, each once. */
function merge(known: readonly Packet[], fresh: readonly Packet[]): Packet[] {
  const byId = new Map([...known, ...fresh].map((packet) => [packet.id, packet]))
  return [...byId.values()].toSorted((a, b) => b.id - a.id)
}

function PacketRow({ packet }: { packet: Packet }) {
  const content = contentOf(packet)
  return (
    <LogRow at={packet.timestamp} span={3} wideSpan={2} details={() => <Details packet={packet} />}>
      <td class="packet-line">
        <button type="button" class="text-button" onClick={() => setQuery(withSender(packet.fromNodeId))}>
          {nameOf(packet.fromNodeNum, packet.fromNodeId)}
        </button>
        {': '}
        {packetKind(packet.portName)}
        {content !== null && (
          <span class="faint">
            {', '}
            <bdi>{content}</bdi>
          </span>
        )}{' '}
        <TrustMark packet={packet} />
        <span class="faint narrow-only">
          {receiverOf(packet)}
          {arrivalOf(packet).map((part) => (
            <Fragment key={part}>
              {' · '}
              <span class="nowrap">{part}</span>
            </Fragment>
          ))}
        </span>
      </td>
      <td class="wide-only">{receiverOf(packet)}</td>
      <td class="wide-only faint nowrap">{arrivalOf(packet).join(' · ')}</td>
    </LogRow>
  )
}

function TrustMark({ packet: { signed, spoofSuspected } }: { packet: Packet }) {
  if (spoofSuspected) return <Mark icon="warning" words={packetTexts.spoofed} tone="bad" />
  return signed ? <Mark icon="shield" words={t.nodes.signed} tone="good" /> : null
}

function Details({ packet }: { packet: Packet }) {
  const content = contentFacts(packet)
  return (
    <div class="packet-detail">
      {content.length > 0 && (
        <section>
          <h2>{packetKind(packet.portName)}</h2>
          <Facts entries={content} />
        </section>
      )}
      <section>
        <h2>{packetTexts.packet}</h2>
        <Facts entries={factsOf(packet)} />
        {can('nodes', 'read') && <a href={href(`/nodes/${packet.fromNodeId}`)}>{t.map.open}</a>}
      </section>
    </div>
  )
}
