import { useOfflineCache } from '../../state/offline-cache.ts'
import { type Neighbor, useNeighbors } from '../../state/mesh/neighbors.ts'
import { isCalled, nodeByNum, nodeName, useNodes } from '../../state/mesh/nodes.ts'
import { Age } from '../../parts/age.tsx'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { SearchQuery } from '../../parts/list/search-query.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { type Column, VirtualTable } from '../../parts/list/virtual-table.tsx'
import { href, place, setQuery } from '../../router.ts'
import { can } from '../../state/session.ts'
import { useSteady } from '../../state/steady.ts'
import { t } from '../../strings.ts'
import '../../parts/mesh/ways.css'
import { decibels, signalOf } from '../../parts/mesh/snr.ts'

const KEYS = ['node', 'neighbor', 'signal', 'reported'] as const
type Key = (typeof KEYS)[number]

/** Who hears whom, as the nodes report it. */
export function NeighborsPage() {
  useNodes()
  const { query } = place.value
  const q = query.get('q') ?? ''
  const by = KEYS.find((key) => key === query.get('sort')) ?? 'signal'
  const isDown = query.get('order') === null ? by === 'signal' || by === 'reported' : query.get('order') === 'down'
  const loaded = useNeighbors(true)
  const { data, error, reload } = loaded
  useOfflineCache('neighbors', loaded)
  const wanted = q.trim().toLowerCase()
  const rows = (data.value ?? [])
    .filter(
      (row) => isEndCalled(row.nodeNum, row.nodeId, wanted) || isEndCalled(row.neighborNum, row.neighborId, wanted),
    )
    .toSorted((a, b) => compare(a, b, by) * (isDown ? -1 : 1))
  const steady = useSteady('neighbors', rows, pairOf, query.toString())
  return (
    <Page title={t.neighbors.title} fill>
      <div class="toolbar">
        <SearchQuery label={t.nodes.searchLabel} hint={t.nodes.searchHint} />
        <span class="faint" role="status">
          {data.value !== null && t.neighbors.count(rows.length)}
        </span>
        {can('nodes', 'read') && (
          <a class="button" href={href('/map?links=1')}>
            {t.nodes.showOnMap}
          </a>
        )}
      </div>
      <Failure error={error.value} retry={reload} />
      {data.value?.length === 0 && (
        <Empty icon="neighbors" title={t.neighbors.none}>
          <p>{t.neighbors.noneHelp}</p>
          <ConnectHelp />
        </Empty>
      )}
      {rows.length > 0 && (
        <SteadyList steady={steady} fill>
          <VirtualTable
            label={t.neighbors.title}
            rows={steady.rows}
            columns={COLUMNS}
            rowKey={pairOf}
            sort={{ by, isDown }}
            onSort={(key) => setQuery({ sort: key, order: key === by && isDown ? 'up' : 'down' })}
          />
        </SteadyList>
      )}
    </Page>
  )
}

const pairOf = ({ nodeNum, neighborNum }: Neighbor) => `${nodeNum} ${neighborNum}`

const COLUMNS: readonly Column<Neighbor, Key>[] = [
  {
    key: 'node',
    name: t.neighbors.node,
    cell: ({ nodeNum, nodeId }) => <NodeLink nodeNum={nodeNum} nodeId={nodeId} />,
  },
  {
    key: 'neighbor',
    name: t.neighbors.neighbor,
    cell: ({ neighborNum, neighborId }) => <NodeLink nodeNum={neighborNum} nodeId={neighborId} />,
  },
  {
    key: 'signal',
    name: t.neighbors.signal,
    isNumber: true,
    cell: ({ snr }) => <span class={`hop snr-${signalOf(snr)}`}>{decibels(snr)}</span>,
  },
  {
    key: 'reported',
    name: t.neighbors.reported,
    isNumber: true,
    wideOnly: true,
    cell: ({ timestamp }) => <Age at={timestamp} short />,
  },
]

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

function isEndCalled(nodeNum: number, nodeId: string, wanted: string): boolean {
  const node = nodeByNum(nodeNum)
  return node === undefined ? `${nodeId} ${nodeNum}`.includes(wanted) : isCalled(node, wanted)
}

function compare(a: Neighbor, b: Neighbor, by: Key): number {
  switch (by) {
    case 'node':
      return sortName(a.nodeNum, a.nodeId).localeCompare(sortName(b.nodeNum, b.nodeId)) || b.snr - a.snr
    case 'neighbor':
      return sortName(a.neighborNum, a.neighborId).localeCompare(sortName(b.neighborNum, b.neighborId)) || b.snr - a.snr
    case 'signal':
      return a.snr - b.snr
    case 'reported':
      return a.timestamp - b.timestamp
    default:
      return by satisfies never
  }
}

function sortName(nodeNum: number, nodeId: string): string {
  const node = nodeByNum(nodeNum)
  return node === undefined ? nodeId : nodeName(node)
}
