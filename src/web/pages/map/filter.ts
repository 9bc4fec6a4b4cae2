import { activeMs, isCalled, type Node } from '../../state/mesh/nodes.ts'
import { DAY_MS } from '../../../shared/time.ts'

export type MapFilter = {
  readonly q: string
  /** `0`: active ones; `1`: those heard within a day; empty: all. */
  readonly age: string
  readonly role: string
  /** `yes`: only those heard by MQTT alone; `no`: the others; empty: all. */
  readonly mqtt: string
  readonly favorites: boolean
}

/** As in the page's address. */
export function readFilter(query: URLSearchParams): MapFilter {
  return {
    q: query.get('q') ?? '',
    age: query.get('age') ?? '',
    role: query.get('role') ?? '',
    mqtt: query.get('mqtt') ?? '',
    favorites: query.get('fav') !== null,
  }
}

/** 0: active; 1: heard within a day; 2: earlier, or never. */
export function ageOf(node: Node, now: number): 0 | 1 | 2 {
  const ms = node.lastHeard === null ? Number.POSITIVE_INFINITY : now - node.lastHeard
  return ms < activeMs.peek() ? 0 : ms < DAY_MS ? 1 : 2
}

/** Ignored nodes are never shown. */
export function passes(node: Node, { q, age, role, mqtt, favorites }: MapFilter, now: number): boolean {
  if (node.isIgnored || (favorites && !node.isFavorite)) return false
  if (role !== '' && node.role !== role) return false
  if (mqtt !== '' && node.viaMqtt !== (mqtt === 'yes')) return false
  if (age !== '' && ageOf(node, now) > Number(age)) return false
  return isCalled(node, q.trim().toLowerCase())
}
