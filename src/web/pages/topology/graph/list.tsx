import { useEffect, useMemo, useRef } from 'preact/hooks'
import { isCalled, nameOf, nodeByNum } from '../../../state/mesh/nodes.ts'
import { Age } from '../../../parts/age.tsx'
import { decibels, signalOf } from '../../../parts/mesh/snr.ts'
import { href } from '../../../router.ts'
import { can } from '../../../state/session.ts'
import { topologyTexts } from '../../../strings/mesh/topology.ts'
import '../../../parts/mesh/ways.css'
import type { Graph } from './data.ts'
import { latestOf, type TopologyEdge } from './links.ts'

/** Nodes in the list at once; others are found by the search. */
const MAX_ROWS = 100

export const idOf = (nodeNum: number) => `!${nodeNum.toString(16).padStart(8, '0')}`
const named = (nodeNum: number) => nameOf(nodeNum, idOf(nodeNum))

type ListProps = {
  readonly graph: Graph
  /** How many are lost without a node. */
  readonly cuts: ReadonlyMap<number, number>
  readonly q: string
  readonly choose: (num: number) => void
}

/** Those on which most depend first, then those with most links. */
export function NodeList({ graph, cuts, q, choose }: ListProps) {
  const links = useMemo(() => {
    const counts = new Map<number, number>()
    for (const num of graph.pairs.flatMap(({ a, b }) => [a, b])) counts.set(num, (counts.get(num) ?? 0) + 1)
    return counts
  }, [graph.pairs])
  const wanted = q.trim().toLowerCase()
  const isWanted = (num: number) => {
    const node = nodeByNum(num)
    return node === undefined ? `${idOf(num)} ${num}`.includes(wanted) : isCalled(node, wanted)
  }
  const of = (counts: ReadonlyMap<number, number>, num: number) => counts.get(num) ?? 0
  const found = (wanted === '' ? graph.nums : graph.nums.filter(isWanted)).toSorted(
    (a, b) => of(cuts, b) - of(cuts, a) || of(links, b) - of(links, a) || a - b,
  )
  return (
    <section aria-label={topologyTexts.list}>
      <ul class="rows topology-list">
        {found.slice(0, MAX_ROWS).map((num) => (
          <li key={num}>
            <button type="button" class="link-button" onClick={() => choose(num)}>
              <bdi>{named(num)}</bdi>
            </button>
            <span class="faint">
              {graph.receivers.has(num) && `${topologyTexts.radio} · `}
              {topologyTexts.links(of(links, num))}
            </span>
          </li>
        ))}
      </ul>
      {found.length > MAX_ROWS && <p class="faint">{topologyTexts.more(found.length - MAX_ROWS)}</p>}
    </section>
  )
}

type LinksProps = {
  readonly graph: Graph
  readonly chosen: number
  readonly lost: number
  readonly choose: (num: number | null) => void
}

/** Whom a node hears, and who hears it, the latest first. */
export function NodeLinks({ graph, chosen, lost, choose }: LinksProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  const name = named(chosen)
  const links = graph.pairs
    .filter(({ a, b }) => a === chosen || b === chosen)
    .toSorted((a, b) => latestOf(b) - latestOf(a))
    .map((pair) => {
      const isFirst = pair.a === chosen
      return {
        other: isFirst ? pair.b : pair.a,
        out: isFirst ? pair.there : pair.back,
        heard: isFirst ? pair.back : pair.there,
      }
    })
  useEffect(() => {
    // A button of the list has the focus no more.
    if (document.activeElement === document.body) heading.current?.focus()
  }, [chosen])
  return (
    <section aria-label={name}>
      <h2 ref={heading} tabIndex={-1}>
        <bdi>{name}</bdi>
      </h2>
      <p>
        {graph.receivers.has(chosen) && `${topologyTexts.radio} · `}
        {topologyTexts.links(links.length)}
        {lost > 0 && <> · {topologyTexts.lost(name, lost)}</>}
      </p>
      <div class="actions">
        <button type="button" class="button small" onClick={() => choose(null)}>
          {topologyTexts.back}
        </button>
        {can('nodes', 'read') && nodeByNum(chosen) !== undefined && (
          <a class="button small" href={href(`/nodes/${idOf(chosen)}`)}>
            {topologyTexts.page}
          </a>
        )}
      </div>
      <ul class="rows topology-links">
        {links.map(({ other, out, heard }) => (
          <li key={other}>
            <button type="button" class="link-button" onClick={() => choose(other)}>
              <bdi>{named(other)}</bdi>
            </button>
            <dl>
              <Direction name={topologyTexts.hears} edge={out} />
              <Direction name={topologyTexts.heardBy} edge={heard} />
            </dl>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Direction({ name, edge }: { name: string; edge: TopologyEdge | null }) {
  return (
    <>
      <dt class="faint">{name}</dt>
      <dd>
        {edge === null ? (
          <span class="faint">{topologyTexts.notKnown}</span>
        ) : (
          <>
            <span class={`hop snr-${signalOf(edge.snr)}`}>{decibels(edge.snr)}</span>{' '}
            <span class="faint">
              <Age at={edge.at} /> · {edge.by.map((way) => topologyTexts.ways[way]).join(', ')}
            </span>
          </>
        )}
      </dd>
    </>
  )
}
