import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useMemo } from 'preact/hooks'
import { saveCsv } from '../../csv.ts'
import { keyHealth } from '../../state/mesh/key-health.ts'
import { type Node, nodes, nodesError, refreshNodes, useNodes } from '../../state/mesh/nodes.ts'
import { now } from '../../parts/age.tsx'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Segments, Select } from '../../parts/form/field.tsx'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { SearchQuery } from '../../parts/list/search-query.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { VirtualTable } from '../../parts/list/virtual-table.tsx'
import { href, place, setQuery } from '../../router.ts'
import { useSteady } from '../../state/steady.ts'
import { compareTexts } from '../../strings/mesh/compare.ts'
import { t } from '../../strings.ts'
import './filters.css'
import {
  chosenAmong,
  ColumnChoice,
  filledColumns,
  type Key,
  KEYS,
  nodeRows,
  sortNodes,
  sortsDownFirst,
} from './columns.tsx'
import { AddFilter, clearFacets, FilterChips, isWanted, offeredShown, readNodeFilters } from './filters.tsx'
import { KeyHelp } from './keys.tsx'
import { comparisonOf, MAX_COMPARED, picked } from './picked.ts'
import { SaveView, Views } from './views.tsx'

export function NodesPage() {
  useNodes()
  useEffect(() => () => void (picked.value = null), [])
  const { query } = place.value
  const filters = readNodeFilters(query)
  const by: Key = KEYS.find((key) => key === query.get('sort')) ?? 'lastHeard'
  const isDown = query.get('order') === null ? sortsDownFirst(by) : query.get('order') === 'down'
  const doubted = filters.used.find(({ name }) => name === 'keys')
  const all = nodes.value
  const at = now.value
  const rows = useMemo(() => {
    const found = (all ?? []).filter((node) => isWanted(node, filters, at))
    return sortNodes(found, by, isDown)
  }, [all, query, at, keyHealth.value])
  const filled = useMemo(() => filledColumns(all ?? []), [all])
  const steady = useSteady('nodes', rows, numberOf, query.toString())
  const sorted = t.nodes.sorted(t.nodes.columns[by], isDown)
  return (
    <Page title={t.nodes.title} fill>
      <Toolbar by={by} isDown={isDown} rows={rows} filled={filled}>
        <span class="faint" role="status">
          {all !== null && t.nodes.count(rows.length, all.length)}
        </span>
        <span class="sr-only" role="status">
          {sorted}
        </span>
      </Toolbar>
      {doubted !== undefined && <KeyHelp problem={doubted.value} />}
      <Failure error={nodesError.value} retry={() => void refreshNodes()} />
      {all?.length === 0 && (
        <Empty icon="nodes" title={t.nodes.empty}>
          <p>{t.nodes.emptyHelp}</p>
          <ConnectHelp />
        </Empty>
      )}
      {all !== null && all.length > 0 && rows.length === 0 && <p class="faint">{t.nodes.none}</p>}
      {rows.length > 0 && (
        <SteadyList steady={steady} fill>
          <VirtualTable
            label={t.nodes.table}
            rows={steady.rows}
            columns={chosenAmong(filled)}
            rowKey={numberOf}
            rowClass={(node) => (node.isIgnored ? 'off' : '')}
            sort={{ by, isDown }}
            onSort={(key) => sortBy(key, key === by ? !isDown : sortsDownFirst(key))}
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

type ToolbarProps = {
  by: Key
  isDown: boolean
  rows: readonly Node[]
  filled: ReturnType<typeof filledColumns>
  children: ComponentChildren
}

function Toolbar({ by, isDown, rows, filled, children }: ToolbarProps) {
  const filters = readNodeFilters(place.value.query)
  const isFiltered = filters.used.length > 0
  const isAdding = useSignal(false)
  const isOpen = useSignal(false)
  const [addId, id] = [useId(), useId()]
  const isPicking = picked.value !== null
  return (
    <>
      <div class="toolbar">
        <SearchQuery label={t.nodes.searchLabel} hint={t.nodes.searchHint} />
        <Segments
          label={t.nodes.filter}
          value={filters.show}
          options={offeredShown().map((name) => [name, t.nodes[name]] as const)}
          onChange={(show) => setQuery({ show: show === 'all' ? '' : show })}
        />
        <AddFilter isOpen={isAdding} controls={addId} />
        <button
          type="button"
          class="button"
          aria-expanded={isOpen.value}
          aria-controls={id}
          onClick={() => (isOpen.value = !isOpen.value)}
        >
          {t.nodes.viewsAndColumns}
        </button>
        <button
          type="button"
          class="button"
          aria-pressed={isPicking}
          onClick={() => (picked.value = isPicking ? null : [])}
        >
          {compareTexts.compare}
        </button>
        {children}
      </div>
      <div class={isFiltered || isAdding.value ? 'filter-chips' : ''}>
        <FilterChips nodes={nodes.value ?? []} isOpen={isAdding} id={addId} />
        {isFiltered && (
          <>
            <button type="button" class="button quiet" onClick={clearFacets}>
              {t.common.clear}
            </button>
            <SaveView />
          </>
        )}
      </div>
      <div id={id} class="toolbar" hidden={!isOpen.value}>
        <Views />
        {!isFiltered && <SaveView />}
        <Select
          label={t.nodes.sortColumn}
          value={by}
          options={KEYS.map((key) => [key, t.nodes.columns[key]] as const)}
          onChange={(key) => sortBy(key, sortsDownFirst(key))}
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
        <ColumnChoice filled={filled} />
        <button type="button" class="button" onClick={() => saveCsv('nodes', nodeRows(rows))}>
          {t.common.exportAs} {t.common.csv}
        </button>
      </div>
      {picked.value !== null && <PickBar picks={picked.value} />}
    </>
  )
}

/** How many nodes are picked for a comparison, and the way to it. */
function PickBar({ picks }: { picks: readonly string[] }) {
  return (
    <div class="notice pick-bar">
      <span class="grow" role="status">
        {picks.length < 2 ? compareTexts.pickHelp(MAX_COMPARED) : compareTexts.picked(picks.length, MAX_COMPARED)}
      </span>
      {picks.length >= 2 && (
        <a class="button primary" href={href(comparisonOf(picks))}>
          {compareTexts.comparePicked(picks.length)}
        </a>
      )}
      <button type="button" class="button" onClick={() => (picked.value = null)}>
        {t.common.cancel}
      </button>
    </div>
  )
}
