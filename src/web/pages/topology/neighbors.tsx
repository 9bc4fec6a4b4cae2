import { type Value, saveCsv } from '../../csv.ts'
import { decimal } from '../../format.ts'
import { useOfflineCache } from '../../state/offline-cache.ts'
import { type Neighbor, useNeighbors } from '../../state/mesh/neighbors.ts'
import { isCalled, nodeByNum, nodeName, useNodes } from '../../state/mesh/nodes.ts'
import { Age, now } from '../../parts/age.tsx'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { RangeControl } from '../../parts/form/range-control.tsx'
import { SearchQuery } from '../../parts/list/search-query.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { type Column, VirtualTable } from '../../parts/list/virtual-table.tsx'
import { href, place, setQuery } from '../../router.ts'
import { can } from '../../state/session.ts'
import { useSteady } from '../../state/steady.ts'
import { t } from '../../strings.ts'
import '../../parts/mesh/ways.css'
import './neighbors.css'
import { decibels, signalOf } from '../../parts/mesh/snr.ts'
import { type Range, type RangeName, rangeQuery, readRange } from '../../state/range.ts'
import { comparePairs, nameOfEnd, type Pair, PAIR_KEYS, type PairKey, pairsOf } from './pairs.ts'

/** `any`, and the hours of older addresses: what the page shows if its address names no range. */
const USUAL = new Map<string, RangeName | null>([
  ['any', null],
  ['1', '1h'],
  ['24', '24h'],
  ['168', '7d'],
])
/** Columns whose highest values come first. */
const DOWN_FIRST: ReadonlySet<PairKey> = new Set(['difference', 'reported'])

/** Who hears whom, as the nodes report it: one row for both directions between two nodes. */
export function NeighborsPage() {
  useNodes()
  const { query } = place.value
  const q = query.get('q') ?? ''
  const usual = USUAL.get(query.get('age') ?? '24') ?? (query.get('age') === 'any' ? null : '24h')
  const { range } = readRange(query, usual)
  const by = PAIR_KEYS.find((key) => key === query.get('sort')) ?? 'signal'
  const isDown = query.get('order') === null ? DOWN_FIRST.has(by) : query.get('order') === 'down'
  const loaded = useNeighbors(true)
  const { data, error, reload } = loaded
  useOfflineCache('neighbors', loaded)
  const pairs = pairsOf(data.value ?? [], range, now.value)
  const rows = pairs
    .filter(({ link }) => isEndCalled(link, q.trim().toLowerCase()))
    .toSorted((a, b) => comparePairs(a, b, by) * (isDown ? -1 : 1) || comparePairs(a, b, 'signal'))
  const steady = useSteady('neighbors', rows, keyOf, query.toString())
  return (
    <Page title={t.neighbors.title} fill>
      <div class="toolbar">
        <SearchQuery label={t.nodes.searchLabel} hint={t.nodes.searchHint} />
        <RangeControl label={t.neighbors.age} fallback={usual} />
        <span class="faint" role="status">
          {data.value !== null && t.neighbors.count(rows.length)}
        </span>
        {can('nodes', 'read') && (
          <a class="button" href={href(`/map?${mapQuery(q, range)}`)}>
            {t.nodes.showOnMap}
          </a>
        )}
        {rows.length > 0 && (
          <button type="button" class="button" onClick={() => saveCsv('neighbours', csvRows(rows))}>
            {t.common.exportAs} {t.common.csv}
          </button>
        )}
      </div>
      <Failure error={error.value} retry={reload} />
      {data.value?.length === 0 && (
        <Empty icon="neighbors" title={t.neighbors.none}>
          <p>{t.neighbors.noneHelp}</p>
          <ConnectHelp />
        </Empty>
      )}
      {data.value !== null && data.value.length > 0 && pairs.length === 0 && (
        <Empty icon="neighbors" title={t.neighbors.noneRecent}>
          <button type="button" class="button" onClick={() => setQuery({ ...rangeQuery(null), age: 'any' })}>
            {t.neighbors.showAll}
          </button>
        </Empty>
      )}
      {rows.length > 0 && (
        <SteadyList steady={steady} fill>
          <VirtualTable
            label={t.neighbors.title}
            rows={steady.rows}
            columns={COLUMNS}
            rowKey={keyOf}
            narrowRowPx={56}
            sort={{ by, isDown }}
            onSort={(key) => setQuery({ sort: key, order: isDownNext(key, by, isDown) ? 'down' : 'up' })}
          />
        </SteadyList>
      )}
    </Page>
  )
}

const keyOf = ({ key }: Pair) => key

function isDownNext(key: PairKey, by: PairKey, isDown: boolean): boolean {
  return key === by ? !isDown : DOWN_FIRST.has(key)
}

/** The address of the map with the same links. */
function mapQuery(q: string, range: Range | null): string {
  const wanted = q.trim() === '' ? { links: '1' } : { links: 'ends', q: q.trim() }
  const named = Object.entries(rangeQuery(range ?? '1y')).filter(([, value]) => value !== '')
  return new URLSearchParams([...Object.entries(wanted), ...named]).toString()
}

const COLUMNS: readonly Column<Pair, PairKey>[] = [
  {
    key: 'node',
    name: t.neighbors.node,
    cell: ({ link }) => (
      <>
        <NodeLink nodeNum={link.nodeNum} nodeId={link.nodeId} />
        <span class="narrow-only">
          <NodeLink nodeNum={link.neighborNum} nodeId={link.neighborId} />
        </span>
      </>
    ),
  },
  {
    key: 'neighbor',
    name: t.neighbors.neighbor,
    wideOnly: true,
    cell: ({ link }) => <NodeLink nodeNum={link.neighborNum} nodeId={link.neighborId} />,
  },
  {
    key: 'signal',
    name: t.neighbors.signal,
    isNumber: true,
    cell: ({ link, other }) => (
      <>
        <Direction link={link} />
        <span class="narrow-only">
          <Direction link={other} />
        </span>
      </>
    ),
  },
  {
    key: 'other',
    name: t.neighbors.other,
    isNumber: true,
    wideOnly: true,
    cell: ({ other }) => <Direction link={other} />,
  },
  {
    key: 'difference',
    name: t.neighbors.difference,
    isNumber: true,
    cell: ({ difference }) => (difference === null ? <Unknown /> : `${decimal(difference, 2)} dB`),
  },
  {
    key: 'reported',
    name: t.neighbors.reported,
    isNumber: true,
    wideOnly: true,
    cell: ({ at }) => <Age at={at} short />,
  },
]

/** How one node hears the other, and when it said so. */
function Direction({ link }: { link: Neighbor | null }) {
  if (link === null) return <Unknown />
  return (
    <span class="direction">
      <span class={`hop snr-${signalOf(link.snr)}`}>{decibels(link.snr)}</span>{' '}
      <span class="faint direction-age">
        <Age at={link.timestamp} short />
      </span>
    </span>
  )
}

function Unknown() {
  return (
    <span class="faint" title={t.neighbors.notReported}>
      <span aria-hidden="true">{t.common.none}</span>
      <span class="sr-only">{t.neighbors.notReported}</span>
    </span>
  )
}

function NodeLink({ nodeNum, nodeId }: { nodeNum: number; nodeId: string }) {
  const node = nodeByNum(nodeNum)
  if (node === undefined) return <span class="mono">{nodeId}</span>
  const name = nodeName(node)
  return (
    <a class="clip" dir="auto" href={href(`/nodes/${nodeId}`)} title={name}>
      {name}
    </a>
  )
}

function isEndCalled({ nodeNum, nodeId, neighborNum, neighborId }: Neighbor, wanted: string): boolean {
  const isIt = (num: number, id: string) => {
    const node = nodeByNum(num)
    return node === undefined ? `${id} ${num}`.includes(wanted) : isCalled(node, wanted)
  }
  return isIt(nodeNum, nodeId) || isIt(neighborNum, neighborId)
}

function csvRows(rows: readonly Pair[]): Value[][] {
  const { node, neighbor, signal, other, difference, reported } = t.neighbors
  const { id } = t.nodes.columns
  const head = [node, id, neighbor, id, `${signal} (dB)`, reported, `${other} (dB)`, reported, `${difference} (dB)`]
  const time = (link: Neighbor | null) => (link === null ? null : new Date(link.timestamp).toISOString())
  return [
    head,
    ...rows.map(({ link, other: back, difference: by }) => [
      nameOfEnd(link.nodeNum, link.nodeId),
      link.nodeId,
      nameOfEnd(link.neighborNum, link.neighborId),
      link.neighborId,
      link.snr,
      time(link),
      back?.snr ?? null,
      time(back),
      by,
    ]),
  ]
}
