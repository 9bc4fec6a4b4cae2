import { useSignal } from '@preact/signals'
import { humanize } from '../../../format.ts'
import { type Node, nodeName, nodes } from '../../../state/mesh/nodes.ts'
import { Age } from '../../../parts/age.tsx'
import { Select } from '../../../parts/form/field.tsx'
import { lazyPage } from '../../../parts/list/lazy-page.tsx'
import { SearchQuery } from '../../../parts/list/search-query.tsx'
import { SteadyList } from '../../../parts/list/steady-list.tsx'
import { type Column, VirtualTable } from '../../../parts/list/virtual-table.tsx'
import { place, setQuery } from '../../../router.ts'
import { isAnonymous } from '../../../state/session.ts'
import { useSteady } from '../../../state/steady.ts'
import { t } from '../../../strings.ts'
import type { MapFilter } from '../filter.ts'
import type { Link } from '../layers/lines.ts'
import type { Waypoint } from '../waypoints/waypoint.ts'
import type { Traceroute } from '../../../parts/mesh/traceroute.ts'

const ChosenNode = lazyPage(async () => (await import('./chosen.tsx')).ChosenNode)
const OneTrace = lazyPage(async () => (await import('./one-trace.tsx')).OneTrace)
const Waypoints = lazyPage(async () => (await import('./waypoint-list.tsx')).Waypoints)

type Props = {
  shown: readonly Node[]
  total: number
  filter: MapFilter
  chosen: Node | null
  links: readonly Link[]
  traces: readonly Traceroute[]
  trackLength: number
  waypoints: readonly Waypoint[]
  onPlace(place: { readonly latitude: number; readonly longitude: number }): void
}

/** The content of the map in words, for users who can't see it or can't use a pointer. */
export function MapPanel(props: Props) {
  const { chosen, traces, waypoints } = props
  const isOpen = useSignal(false)
  return (
    <section class={isOpen.value || chosen !== null ? 'map-panel open' : 'map-panel'} aria-label={t.map.panel}>
      {chosen === null && (
        <button
          type="button"
          class="button panel-handle"
          aria-expanded={isOpen.value}
          onClick={() => (isOpen.value = !isOpen.value)}
        >
          {isOpen.value ? t.map.hideList : t.map.showList}
        </button>
      )}
      {chosen === null && traces.length === 1 && traces[0] !== undefined && <OneTrace trace={traces[0]} />}
      {chosen === null ? <Nodes {...props} /> : <ChosenNode {...props} chosen={chosen} />}
      {chosen === null && waypoints.length > 0 && <Waypoints {...props} />}
    </section>
  )
}

const COLUMNS: readonly Column<Node, 'name' | 'heard'>[] = [
  {
    key: 'name',
    name: t.map.name,
    cell: (node) => (
      <button
        type="button"
        class="link-button"
        dir="auto"
        title={nodeName(node)}
        onClick={() => setQuery({ node: node.nodeId, trace: '' })}
      >
        {nodeName(node)}
      </button>
    ),
  },
  { key: 'heard', name: t.map.lastHeard, isNumber: true, cell: (node) => <Age at={node.lastHeard} short /> },
]

const numberOf = ({ nodeNum }: Node) => nodeNum

function Nodes({ shown, total, filter }: Props) {
  const by = useSignal<{ by: 'name' | 'heard'; isDown: boolean }>({ by: 'heard', isDown: true })
  const { by: key, isDown } = by.value
  const up = shown.toSorted((a, b) =>
    key === 'name' ? nodeName(a).localeCompare(nodeName(b)) : (a.lastHeard ?? 0) - (b.lastHeard ?? 0),
  )
  const steady = useSteady('map', isDown ? up.toReversed() : up, numberOf, `${place.value.query} ${key} ${isDown}`)
  return (
    <>
      <Filters filter={filter} />
      <p class="faint" role="status">
        {t.map.shown(shown.length, total)}
      </p>
      {shown.length > 0 && (
        <SteadyList steady={steady} fill>
          <VirtualTable
            label={t.map.listLabel}
            rows={steady.rows}
            columns={COLUMNS}
            rowKey={numberOf}
            sort={by.value}
            onSort={(wanted) => (by.value = { by: wanted, isDown: wanted === key ? !isDown : wanted === 'heard' })}
          />
        </SteadyList>
      )}
    </>
  )
}

function Filters({ filter }: { filter: MapFilter }) {
  const known = (nodes.value ?? []).flatMap(({ role, position }) => (role === null || position === null ? [] : role))
  const roles = [...new Set([...known, ...(filter.role === '' ? [] : [filter.role])])].toSorted()
  return (
    <>
      <SearchQuery label={t.nodes.searchLabel} hint={t.nodes.searchHint} />
      <div class="map-filters">
        <Select
          label={t.map.heard}
          value={filter.age}
          options={[
            ['', t.map.anyTime],
            ['0', t.map.active],
            ['1', t.map.lastDay],
          ]}
          onChange={(age) => setQuery({ age })}
        />
        <Select
          label={t.map.role}
          value={filter.role}
          options={[['', t.map.anyRole], ...roles.map((role) => [role, humanize(role)] as const)]}
          onChange={(role) => setQuery({ role })}
        />
        <Select
          label={t.map.way}
          value={filter.mqtt}
          options={[
            ['', t.map.anyWay],
            ['no', t.map.byRadio],
            ['yes', t.map.byMqtt],
          ]}
          onChange={(mqtt) => setQuery({ mqtt })}
        />
        {!isAnonymous.value && (
          <label class="check">
            <input
              type="checkbox"
              checked={filter.favorites}
              onChange={(event) => setQuery({ fav: event.currentTarget.checked ? '1' : '' })}
            />
            {t.map.favorites}
          </label>
        )}
      </div>
    </>
  )
}
