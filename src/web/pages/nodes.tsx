import { useComputed, useSignal } from '@preact/signals'
import { count, decimal, humanize } from '../format.ts'
import { isActive, type Node, nodeName, nodes, nodesError, refreshNodes, useNodes } from '../mesh.ts'
import { Age, now } from '../parts/age.tsx'
import { SearchBox, Segments } from '../parts/field.tsx'
import { Battery, Signal } from '../parts/gauges.tsx'
import { Icon } from '../parts/icon.tsx'
import { Empty, Failure } from '../parts/notice.tsx'
import { Page } from '../parts/page.tsx'
import { type Column, VirtualTable } from '../parts/virtual-table.tsx'
import { href, place, setQuery } from '../router.ts'
import { t } from '../strings.ts'

const KEYS = ['name', 'lastHeard', 'hops', 'snr', 'battery', 'channelUtilization', 'hwModel', 'role'] as const
type Key = (typeof KEYS)[number]

const FILTERS = ['all', 'active', 'favorites'] as const
type Filter = (typeof FILTERS)[number]

const SORT_VALUE: Record<Key, (node: Node) => number | string | null> = {
  name: (node) => nodeName(node).toLowerCase(),
  lastHeard: (node) => node.lastHeard,
  hops: (node) => node.hopsAway,
  snr: (node) => node.snr,
  battery: (node) => node.deviceMetrics?.batteryLevel ?? null,
  channelUtilization: (node) => node.deviceMetrics?.channelUtilization ?? null,
  hwModel: (node) => node.hwModel,
  role: (node) => node.role,
}

/** Columns whose greatest value is what people look for. */
const DOWN_FIRST: ReadonlySet<Key> = new Set(['lastHeard', 'snr', 'battery', 'channelUtilization'])

const COLUMNS: readonly Column<Node, Key>[] = [
  { key: 'name', name: t.nodes.columns.name, cell: (node) => <NameCell node={node} /> },
  {
    key: 'lastHeard',
    name: t.nodes.columns.lastHeard,
    cell: (node) => <Age at={node.lastHeard} short />,
    isNumber: true,
  },
  { key: 'hops', name: t.nodes.columns.hops, cell: hopsCell, isNumber: true },
  { key: 'snr', name: t.nodes.columns.snr, cell: (node) => <Signal snr={node.snr} />, wideOnly: true },
  {
    key: 'battery',
    name: t.nodes.columns.battery,
    cell: (node) => <Battery level={node.deviceMetrics?.batteryLevel} />,
  },
  {
    key: 'channelUtilization',
    name: t.nodes.columns.channelUtilization,
    cell: (node) => percent(node.deviceMetrics?.channelUtilization),
    wideOnly: true,
    isNumber: true,
  },
  { key: 'hwModel', name: t.nodes.columns.hwModel, cell: (node) => node.hwModel ?? t.common.none, wideOnly: true },
  {
    key: 'role',
    name: t.nodes.columns.role,
    cell: (node) => (node.role === null ? t.common.none : humanize(node.role)),
    wideOnly: true,
  },
]

export function percent(value: number | null | undefined): string {
  return value === null || value === undefined ? t.common.none : `${decimal(value)} %`
}

function hopsCell(node: Node) {
  if (node.viaMqtt) return <span class="tag">{t.nodes.mqtt}</span>
  if (node.hopsAway === null) return <span class="faint">{t.common.none}</span>
  return node.hopsAway === 0 ? <span class="good">{t.nodes.direct}</span> : node.hopsAway
}

function NameCell({ node }: { node: Node }) {
  return (
    <span class="node-name">
      <span class={isActive(node, now.value) ? 'badge live' : 'badge'} aria-hidden="true">
        {node.shortName ?? node.nodeId.slice(-4)}
      </span>
      <a class="row-link" href={href(`/nodes/${node.nodeId}`)}>
        {nodeName(node)}
      </a>
      {node.isFavorite && <Icon name="star" filled />}
      {node.keyMismatch && <span class="tag bad">{t.nodes.mismatch}</span>}
    </span>
  )
}

export function NodesPage() {
  useNodes()
  const { query } = place.value
  const q = useSignal(query.get('q') ?? '')
  const filter: Filter = FILTERS.find((name) => name === query.get('show')) ?? 'all'
  const by: Key = KEYS.find((key) => key === query.get('sort')) ?? 'lastHeard'
  const isDown = query.get('order') === null ? DOWN_FIRST.has(by) : query.get('order') === 'down'
  const asked = useSignal({ filter, by, isDown })
  if (asked.peek().filter !== filter || asked.peek().by !== by || asked.peek().isDown !== isDown) {
    asked.value = { filter, by, isDown }
  }
  const rows = useComputed(() => select(nodes.value ?? [], q.value, asked.value, now.value))
  const all = nodes.value
  return (
    <Page title={t.nodes.title} fill>
      <div class="toolbar">
        <SearchBox
          label={t.nodes.searchLabel}
          hint={t.nodes.searchHint}
          value={q.value}
          onInput={(text) => (q.value = text)}
        />
        <Segments
          label={t.nodes.filter}
          value={filter}
          options={FILTERS.map((name) => [name, t.nodes[name]] as const)}
          onChange={(show) => setQuery({ show: show === 'all' ? '' : show })}
        />
        <span class="faint" role="status">
          {all !== null && t.nodes.count(count(rows.value.length), count(all.length))}
        </span>
      </div>
      <Failure error={nodesError.value} retry={() => void refreshNodes()} />
      {all?.length === 0 && (
        <Empty icon="nodes" title={t.nodes.empty}>
          <p>{t.nodes.emptyHelp}</p>
        </Empty>
      )}
      {all !== null && all.length > 0 && rows.value.length === 0 && <p class="faint">{t.nodes.none}</p>}
      {rows.value.length > 0 && (
        <VirtualTable
          label={t.nodes.table}
          rows={rows.value}
          columns={COLUMNS}
          rowKey={(node) => node.nodeNum}
          rowClass={(node) => (node.isIgnored ? 'off' : '')}
          sort={{ by, isDown }}
          onSort={(key) => {
            const down = key === by ? !isDown : DOWN_FIRST.has(key)
            setQuery({ sort: key, order: down ? 'down' : 'up' })
          }}
        />
      )}
    </Page>
  )
}

type Asked = { readonly filter: Filter; readonly by: Key; readonly isDown: boolean }

function select(all: readonly Node[], q: string, { filter, by, isDown }: Asked, now: number): Node[] {
  const wanted = q.trim().toLowerCase()
  const found = all.filter(
    (node) =>
      (filter === 'all' || (filter === 'active' ? isActive(node, now) : node.isFavorite)) &&
      (wanted === '' || `${node.longName} ${node.shortName} ${node.nodeId}`.toLowerCase().includes(wanted)),
  )
  const value = SORT_VALUE[by]
  // Unknown values come last, whichever way the rest is sorted.
  return found.toSorted((a, b) => {
    const [x, y] = [value(a), value(b)]
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1
    const order = typeof x === 'string' && typeof y === 'string' ? x.localeCompare(y) : Number(x) - Number(y)
    return isDown ? -order : order
  })
}
