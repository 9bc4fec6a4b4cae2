import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import { firmwareName, humanize, modelName } from '../../format.ts'
import { hasKeyProblem } from '../../state/mesh/key-health.ts'
import { activeMs, isActive, isCalled, type Node } from '../../state/mesh/nodes.ts'
import { Icon } from '../../parts/icon.tsx'
import { place, setQuery } from '../../router.ts'
import { isAnonymous } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { signalOf } from '../../parts/mesh/snr.ts'

const SHOWN = ['all', 'active', 'favorites'] as const
type Shown = (typeof SHOWN)[number]

/** Anonymous visitors are told of no favourites. */
export function offeredShown(): readonly Shown[] {
  return SHOWN.filter((name) => name !== 'favorites' || !isAnonymous.value)
}

type Option = readonly [value: string, name: string]

/** One of the filters that can be added. */
type Facet = {
  readonly label: string
  /** The choice with which it is added; without one, the first. */
  readonly first?: string
  /** The choices besides `any`. For a facet of existing values, they depend on the nodes. */
  options(nodes: readonly Node[]): readonly Option[]
  has(node: Node, value: string, now: number): boolean
}

const listed = (texts: Readonly<Record<string, string>>): readonly Option[] => Object.entries(texts)

function heardBefore({ lastHeard }: Node, ms: number, now: number): boolean {
  return lastHeard !== null && now - lastHeard >= ms
}

/** The values of the nodes in `read`, for a facet of protocol names. */
function named(label: string, read: (node: Node) => string | null, show: (name: string) => string): Facet {
  return {
    label,
    options: (nodes) =>
      [...new Set(nodes.flatMap((node) => read(node) ?? []))].toSorted().map((name) => [name, show(name)] as const),
    has: (node, value) => read(node) === value,
  }
}

/** The version of a firmware without the hash of its build: one release has several builds. */
function versionOf(firmware: string | null): string | null {
  return firmware === null ? null : firmwareName(firmware)
}

/** By their names in the address. */
const FACETS = {
  heard: {
    first: '86400',
    label: t.nodes.heard,
    options: () => listed(t.nodes.heardWithin),
    has: ({ lastHeard }, value, now) => lastHeard !== null && now - lastHeard <= Number(value) * 1000,
  },
  silent: {
    label: t.nodes.silent,
    options: () => listed(t.nodes.silentFor),
    has: (node, value, now) => heardBefore(node, value === 'inactive' ? activeMs.value : Number(value) * 1000, now),
  },
  battery: {
    first: '20',
    label: t.nodes.batteryBelow,
    options: () => listed(t.nodes.batteryLevels),
    // The last reported level counts: a node may have fallen silent because of it.
    has: ({ deviceMetrics }, value) => (deviceMetrics?.batteryLevel ?? Infinity) < Number(value),
  },
  hops: {
    label: t.nodes.hops,
    options: () => listed(t.nodes.hopCounts),
    has: ({ hopsAway }, value) => hopsAway !== null && (value === '3' ? hopsAway >= 3 : hopsAway === Number(value)),
  },
  signal: {
    first: 'weak',
    label: t.nodes.signal,
    options: () => listed(t.nodes.signals),
    has: ({ snr }, value) => signalOf(snr) === value,
  },
  role: named(t.nodes.role, ({ role }) => role, humanize),
  hardware: named(t.nodes.hardware, ({ hwModel }) => hwModel, modelName),
  firmware: named(t.nodes.firmware, ({ firmwareVersion }) => versionOf(firmwareVersion), firmwareName),
  way: {
    label: t.nodes.way,
    options: () => listed(t.nodes.ways),
    has: ({ viaMqtt }, value) => viaMqtt === (value === 'mqtt'),
  },
  position: {
    label: t.nodes.place,
    options: () => listed(t.nodes.places),
    has: ({ position }, value) => (position !== null) === (value === 'known'),
  },
  signed: {
    label: t.nodes.proof,
    options: () => listed(t.nodes.proofs),
    has: (node, value) =>
      value === 'doubtful' ? node.keyMismatch || node.spoofSuspected : node.signed === (value === 'signed'),
  },
  keys: {
    label: t.nodes.keys,
    options: () => (isAnonymous.value ? [] : listed(t.nodes.keyProblems)),
    has: ({ nodeNum }, value) => hasKeyProblem(nodeNum, value),
  },
} as const satisfies Readonly<Record<string, Facet>>

const facets: readonly (readonly [name: string, facet: Facet])[] = Object.entries(FACETS)

/** The nodes that match the address. */
export type NodeFilters = {
  readonly q: string
  readonly show: Shown
  readonly used: readonly UsedFacet[]
}

/** An active facet, by its name in the address, with its value. */
type UsedFacet = { readonly name: string; readonly facet: Facet; readonly value: string }

/** Unknown values count as no filter, except in a facet of names, because possibly no node has that name now. */
export function readNodeFilters(query: URLSearchParams): NodeFilters {
  return {
    q: query.get('q') ?? '',
    show: offeredShown().find((name) => name === query.get('show')) ?? 'all',
    used: facets.flatMap(([name, facet]) => {
      const value = query.get(name) ?? ''
      const known = facet.options([])
      const isUsed = value !== '' && (known.length === 0 || known.some(([option]) => option === value))
      return isUsed ? [{ name, facet, value }] : []
    }),
  }
}

export function clearFacets(): void {
  setQuery(Object.fromEntries(facets.map(([name]) => [name, ''])))
}

export function isWanted(node: Node, { q, show, used }: NodeFilters, now: number): boolean {
  const wanted = q.trim().toLowerCase()
  return (
    (show === 'all' || (show === 'active' ? isActive(node, now) : node.isFavorite)) &&
    used.every(({ facet, value }) => facet.has(node, value, now)) &&
    (wanted === '' || isCalled(node, wanted))
  )
}

/** A path to the list of nodes with these filters. */
export function nodesWith(filters: Partial<Record<keyof typeof FACETS | 'show' | 'sort' | 'order', string>>): string {
  return `/nodes?${new URLSearchParams(filters).toString()}`
}

/** Opens the list of filters that are not active. */
export function AddFilter({ isOpen, controls }: { isOpen: Signal<boolean>; controls: string }) {
  return (
    <button
      type="button"
      class="button add-filter"
      aria-expanded={isOpen.value}
      aria-controls={controls}
      onClick={() => (isOpen.value = !isOpen.value)}
    >
      <Icon name="plus" />
      {t.nodes.addFilter}
    </button>
  )
}

type Props = {
  nodes: readonly Node[]
  /** Whether a filter is being added. */
  isOpen: Signal<boolean>
  id: string
}

/** The filters that can be added, and a chip for each active one, which changes or removes it. */
export function FilterChips({ nodes, isOpen, id }: Props) {
  const { used } = readNodeFilters(place.value.query)
  const added = useSignal<string | null>(null)
  const rest = facets.filter(
    ([name, facet]) => used.every((one) => one.name !== name) && facet.options(nodes).length > 0,
  )
  const add = (name: string, facet: Facet) => {
    isOpen.value = false
    added.value = name
    setQuery({ [name]: facet.first ?? facet.options(nodes)[0]?.[0] ?? '' })
  }
  return (
    <>
      <div
        id={id}
        class="filter-menu"
        role="group"
        aria-label={t.nodes.filterBy}
        hidden={!isOpen.value}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          isOpen.value = false
          focusAdd()
        }}
      >
        {rest.map(([name, facet]) => (
          <button type="button" class="button small" key={name} onClick={() => add(name, facet)}>
            {facet.label}
          </button>
        ))}
      </div>
      {used.map((one) => (
        <Chip {...one} nodes={nodes} isNew={added.value === one.name} key={one.name} />
      ))}
    </>
  )
}

/** Where keyboard users continue when what they used has gone. */
function focusAdd(): void {
  document.querySelector<HTMLElement>('.add-filter')?.focus()
}

/** One active filter: its choices, and its end. */
function Chip({ name, facet, value, nodes, isNew }: UsedFacet & { nodes: readonly Node[]; isNew: boolean }) {
  const id = useId()
  const select = useRef<HTMLSelectElement>(null)
  useEffect(() => {
    if (isNew) select.current?.focus()
  }, [])
  const options = facet.options(nodes)
  // A name that no node has any more still filtered the list.
  const gone = options.some(([option]) => option === value) ? [] : [[value, value] as const]
  return (
    <div class="filter-chip">
      <label for={id}>{facet.label}</label>
      <select
        id={id}
        ref={select}
        value={value}
        onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}
      >
        {[...options, ...gone].map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
      <button
        type="button"
        class="icon-button"
        aria-label={t.nodes.takeOut(facet.label)}
        onClick={() => {
          setQuery({ [name]: '' })
          focusAdd()
        }}
      >
        <Icon name="close" />
      </button>
    </div>
  )
}
