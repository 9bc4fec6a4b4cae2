import { firmwareName, humanize, modelName } from '../../format.ts'
import { activeMs, isActive, isCalled, type Node } from '../../state/mesh/nodes.ts'
import { Select } from '../../parts/form/field.tsx'
import { place, setQuery } from '../../router.ts'
import { t } from '../../strings.ts'
import { signalOf } from '../../parts/mesh/snr.ts'

export const SHOWN = ['all', 'active', 'favorites'] as const
type Shown = (typeof SHOWN)[number]

type Option = readonly [value: string, name: string]

/** One of the filters behind the button. */
type Facet = {
  readonly label: string
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
} as const satisfies Readonly<Record<string, Facet>>

const facets: readonly (readonly [name: string, facet: Facet])[] = Object.entries(FACETS)

/** The nodes that match the address. */
export type NodeFilters = {
  readonly q: string
  readonly show: Shown
  /** The active facets, each with its value. */
  readonly used: readonly (readonly [facet: Facet, value: string])[]
}

/** Unknown values count as no filter, except in a facet of names, because possibly no node has that name now. */
export function readNodeFilters(query: URLSearchParams): NodeFilters {
  return {
    q: query.get('q') ?? '',
    show: SHOWN.find((name) => name === query.get('show')) ?? 'all',
    used: facets.flatMap(([name, facet]) => {
      const value = query.get(name) ?? ''
      const known = facet.options([])
      const isUsed = value !== '' && (known.length === 0 || known.some(([option]) => option === value))
      return isUsed ? [[facet, value] as const] : []
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
    used.every(([facet, value]) => facet.has(node, value, now)) &&
    (wanted === '' || isCalled(node, wanted))
  )
}

/** A path to the list of nodes with these filters. */
export function nodesWith(filters: Partial<Record<keyof typeof FACETS | 'show' | 'sort' | 'order', string>>): string {
  return `/nodes?${new URLSearchParams(filters).toString()}`
}

/** The less common filters. */
export function Facets({ nodes }: { nodes: readonly Node[] }) {
  const { used } = readNodeFilters(place.value.query)
  return facets.map(([name, facet]) => {
    const value = used.find(([one]) => one === facet)?.[1] ?? ''
    const options = facet.options(nodes)
    // A name that no node has any more still filtered the list.
    const chosen = value === '' || options.some(([option]) => option === value) ? [] : [[value, value] as const]
    return (
      <Select
        key={name}
        label={facet.label}
        value={value}
        options={[['', t.common.all] as const, ...options, ...chosen]}
        onChange={(next) => setQuery({ [name]: next })}
      />
    )
  })
}
