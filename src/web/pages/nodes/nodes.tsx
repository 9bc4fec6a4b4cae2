import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId, useMemo } from 'preact/hooks'
import { humanize, modelName } from '../../format.ts'
import {
  isActive,
  type Node,
  nodeName,
  nodes,
  nodesError,
  refreshNodes,
  shortNameOf,
  useNodes,
} from '../../state/mesh.ts'
import { Age, now } from '../../parts/age.tsx'
import { Segments, Select } from '../../parts/form/field.tsx'
import { Battery, Signal } from '../../parts/gauges.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Mark } from '../../parts/list/mark.tsx'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { SearchQuery } from '../../parts/list/search-query.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { type Column, VirtualTable } from '../../parts/list/virtual-table.tsx'
import { href, place, setQuery } from '../../router.ts'
import { useSteady } from '../../state/steady.ts'
import { t } from '../../strings.ts'
import { clearExtra, countExtra, ExtraFilters, isWanted, readNodeFilters, SHOWN } from './filters.tsx'

const KEYS = ['name', 'lastHeard', 'hops', 'snr', 'battery', 'channelUtilization', 'hwModel', 'role'] as const
type Key = (typeof KEYS)[number]

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

/** Columns that sort in descending order on the first click. */
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
  {
    key: 'hwModel',
    name: t.nodes.columns.hwModel,
    cell: (node) => <Name of={node.hwModel} show={modelName} />,
    widestOnly: true,
  },
  {
    key: 'role',
    name: t.nodes.columns.role,
    cell: (node) => <Name of={node.role} show={humanize} />,
    wideOnly: true,
  },
]

export function percent(value: number | null | undefined): string {
  return value === null || value === undefined ? t.common.none : `${value.toFixed(1)} %`
}

/** A name of the protocol, readable; whole in the tooltip where the column is too narrow. */
function Name({ of: name, show }: { of: string | null; show(name: string): string }) {
  if (name === null) return <span class="faint">{t.common.none}</span>
  return <span title={name}>{show(name)}</span>
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
        {shortNameOf(node)}
      </span>
      <a class="row-link" href={href(`/nodes/${node.nodeId}`)}>
        {nodeName(node)}
      </a>
      {node.isFavorite && <Icon name="star" filled />}
      {node.signed && <Mark icon="shield" words={t.nodes.signed} tone="good" />}
      {(node.keyMismatch || node.spoofSuspected) && (
        <Mark icon="warning" words={node.spoofSuspected ? t.nodes.spoofed : t.nodes.mismatch} tone="bad" />
      )}
    </span>
  )
}

export function NodesPage() {
  useNodes()
  const { query } = place.value
  const filters = readNodeFilters(query)
  const by: Key = KEYS.find((key) => key === query.get('sort')) ?? 'lastHeard'
  const isDown = query.get('order') === null ? DOWN_FIRST.has(by) : query.get('order') === 'down'
  const all = nodes.value
  const at = now.value
  const rows = useMemo(() => {
    const found = (all ?? []).filter((node) => isWanted(node, filters, at))
    return sort(found, by, isDown)
  }, [all, query, at])
  const steady = useSteady(rows, numberOf, query.toString())
  const sorted = t.nodes.sorted(t.nodes.columns[by], isDown)
  return (
    <Page title={t.nodes.title} fill>
      <Toolbar by={by} isDown={isDown}>
        <span class="faint" role="status">
          {all !== null && t.nodes.count(rows.length, all.length)}
        </span>
        <span class="sr-only" role="status">
          {sorted}
        </span>
      </Toolbar>
      <Failure error={nodesError.value} retry={() => void refreshNodes()} />
      {all?.length === 0 && (
        <Empty icon="nodes" title={t.nodes.empty}>
          <p>{t.nodes.emptyHelp}</p>
        </Empty>
      )}
      {all !== null && all.length > 0 && rows.length === 0 && <p class="faint">{t.nodes.none}</p>}
      {rows.length > 0 && (
        <SteadyList steady={steady} fill>
          <VirtualTable
            label={t.nodes.table}
            rows={steady.rows}
            columns={COLUMNS}
            rowKey={numberOf}
            rowClass={(node) => (node.isIgnored ? 'off' : '')}
            sort={{ by, isDown }}
            onSort={(key) => sortBy(key, key === by ? !isDown : DOWN_FIRST.has(key))}
          />
        </SteadyList>
      )}
    </Page>
  )
}

const numberOf = ({ nodeNum }: Node) => nodeNum

function sortBy(key: Key, isDown: boolean): void {
  setQuery({ sort: key, order: isDown ? 'down' : 'up' })
}

function Toolbar({ by, isDown, children }: { by: Key; isDown: boolean; children: ComponentChildren }) {
  const filters = readNodeFilters(place.value.query)
  const used = countExtra(filters)
  const isOpen = useSignal(used > 0)
  const id = useId()
  return (
    <>
      <div class="toolbar">
        <SearchQuery label={t.nodes.searchLabel} hint={t.nodes.searchHint} />
        <Segments
          label={t.nodes.filter}
          value={filters.show}
          options={SHOWN.map((name) => [name, t.nodes[name]] as const)}
          onChange={(show) => setQuery({ show: show === 'all' ? '' : show })}
        />
        <button
          type="button"
          class="button"
          aria-expanded={isOpen.value}
          aria-controls={id}
          onClick={() => (isOpen.value = !isOpen.value)}
        >
          {t.nodes.filters(used)}
        </button>
        {children}
      </div>
      <div id={id} class="toolbar" hidden={!isOpen.value}>
        <ExtraFilters nodes={nodes.value ?? []} />
        <Select
          label={t.nodes.sortColumn}
          value={by}
          options={KEYS.map((key) => [key, t.nodes.columns[key]] as const)}
          onChange={(key) => sortBy(key, DOWN_FIRST.has(key))}
        />
        <Select
          label={t.nodes.sortOrder}
          value={isDown ? 'down' : 'up'}
          options={[
            ['up', t.nodes.orders.up],
            ['down', t.nodes.orders.down],
          ]}
          onChange={(order) => sortBy(by, order === 'down')}
        />
        {used > 0 && (
          <button type="button" class="button" onClick={clearExtra}>
            {t.common.clear}
          </button>
        )}
      </div>
    </>
  )
}

const collator = new Intl.Collator('en', { numeric: true })

function sort(found: readonly Node[], by: Key, isDown: boolean): Node[] {
  const value = SORT_VALUE[by]
  // Unknown values come last, whichever way the rest is sorted.
  return found.toSorted((a, b) => {
    const [x, y] = [value(a), value(b)]
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1
    const order = typeof x === 'string' && typeof y === 'string' ? collator.compare(x, y) : Number(x) - Number(y)
    return isDown ? -order : order
  })
}
