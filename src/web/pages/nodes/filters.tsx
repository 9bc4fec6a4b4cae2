import { humanize } from '../../format.ts'
import { isActive, isCalled, type Node } from '../../state/mesh.ts'
import { Select } from '../../parts/form/field.tsx'
import { place, setQuery } from '../../router.ts'
import { t } from '../../strings.ts'

export const SHOWN = ['all', 'active', 'favorites'] as const
type Shown = (typeof SHOWN)[number]
type Within = keyof typeof t.nodes.heardWithin
type Way = keyof typeof t.nodes.ways
type Place = keyof typeof t.nodes.places
type Proof = keyof typeof t.nodes.proofs

/** Which nodes the address asks for; an empty text is any. */
export type NodeFilters = {
  readonly q: string
  readonly show: Shown
  readonly heard: Within | ''
  readonly role: string
  readonly way: Way | ''
  readonly position: Place | ''
  readonly signed: Proof | ''
}

/** The filters behind the button: their names in the address. */
const EXTRA = ['heard', 'role', 'way', 'position', 'signed'] as const

const names = <K extends string>(texts: Readonly<Record<K, string>>): K[] =>
  Object.keys(texts).filter((name): name is K => name in texts)

const WITHIN = names(t.nodes.heardWithin)
const WAYS = names(t.nodes.ways)
const PLACES = names(t.nodes.places)
const PROOFS = names(t.nodes.proofs)

/** Unknown values count as no filter. */
export function readNodeFilters(query: URLSearchParams): NodeFilters {
  const one = <K extends string>(name: string, known: readonly K[]) => known.find((key) => key === query.get(name))
  return {
    q: query.get('q') ?? '',
    show: one('show', SHOWN) ?? 'all',
    heard: one('heard', WITHIN) ?? '',
    role: query.get('role') ?? '',
    way: one('way', WAYS) ?? '',
    position: one('position', PLACES) ?? '',
    signed: one('signed', PROOFS) ?? '',
  }
}

/** How many of the filters behind the button are in use. */
export function countExtra(filters: NodeFilters): number {
  return EXTRA.filter((name) => filters[name] !== '').length
}

export function clearExtra(): void {
  setQuery({ heard: '', role: '', way: '', position: '', signed: '' })
}

export function isWanted(node: Node, filters: NodeFilters, now: number): boolean {
  const { show, heard, role, way, position, signed } = filters
  const q = filters.q.trim().toLowerCase()
  return (
    (show === 'all' || (show === 'active' ? isActive(node, now) : node.isFavorite)) &&
    (heard === '' || (node.lastHeard !== null && now - node.lastHeard <= Number(heard) * 1000)) &&
    (role === '' || node.role === role) &&
    (way === '' || node.viaMqtt === (way === 'mqtt')) &&
    (position === '' || (node.position !== null) === (position === 'known')) &&
    (signed === '' || isProven(node, signed)) &&
    (q === '' || isCalled(node, q))
  )
}

function isProven(node: Node, proof: Proof): boolean {
  if (proof === 'doubtful') return node.keyMismatch || node.spoofSuspected
  return node.signed === (proof === 'signed')
}

const ANY = ['', t.common.all] as const

/** The less common filters. */
export function ExtraFilters({ nodes }: { nodes: readonly Node[] }) {
  const filters = readNodeFilters(place.value.query)
  const roles = [...new Set(nodes.flatMap(({ role }) => role ?? []).concat(filters.role || []))].toSorted()
  return (
    <>
      <Select
        label={t.nodes.heard}
        value={filters.heard}
        options={[ANY, ...WITHIN.map((key) => [key, t.nodes.heardWithin[key]] as const)]}
        onChange={(heard) => setQuery({ heard })}
      />
      <Select
        label={t.nodes.role}
        value={filters.role}
        options={[ANY, ...roles.map((role) => [role, humanize(role)] as const)]}
        onChange={(role) => setQuery({ role })}
      />
      <Select
        label={t.nodes.way}
        value={filters.way}
        options={[ANY, ...WAYS.map((key) => [key, t.nodes.ways[key]] as const)]}
        onChange={(way) => setQuery({ way })}
      />
      <Select
        label={t.nodes.place}
        value={filters.position}
        options={[ANY, ...PLACES.map((key) => [key, t.nodes.places[key]] as const)]}
        onChange={(position) => setQuery({ position })}
      />
      <Select
        label={t.nodes.proof}
        value={filters.signed}
        options={[ANY, ...PROOFS.map((key) => [key, t.nodes.proofs[key]] as const)]}
        onChange={(signed) => setQuery({ signed })}
      />
    </>
  )
}
