import { useEffect, useMemo, useRef } from 'preact/hooks'
import { nameOf, nodeByNum, nodes, shortNameOf, useNodes } from '../../../state/mesh/nodes.ts'
import { now } from '../../../parts/age.tsx'
import { ConnectHelp } from '../../../parts/connect-help.tsx'
import { RangeControl } from '../../../parts/form/range-control.tsx'
import { SearchQuery } from '../../../parts/list/search-query.tsx'
import { linkNames, markOf } from '../../../parts/mesh/linked-names.tsx'
import { Empty, Failure, Problem } from '../../../parts/notice.tsx'
import { Page } from '../../../parts/page.tsx'
import { place, setQuery } from '../../../router.ts'
import { type Range, readRange } from '../../../state/range.ts'
import { topologyTexts } from '../../../strings/mesh/topology.ts'
import { t } from '../../../strings.ts'
import { theme } from '../../../theme.ts'
import './graph.css'
import type { Lost } from './arrange.worker.ts'
import { type Arrangement, type Graph, useArrangement, useTopology } from './data.ts'
import { createGraph, type GraphDrawing } from './drawing.ts'
import { idOf, NodeLinks, NodeList } from './list.tsx'

const USUAL = '7d'
/** Sentences that are shown; the others are counted. */
const MAX_SENTENCES = 5

/** Who hears whom, as a graph, beside a list of the nodes with the same information in words. */
export function TopologyPage() {
  useNodes()
  const { query } = place.value
  const topology = useTopology(readRange<Range>(query, USUAL).range)
  const { data, error, reload, pairs, nums, isWhole } = topology
  const arrangement = useArrangement(topology)
  const asked = query.get('node')
  const chosen = useMemo(() => nums.find((num) => idOf(num) === asked) ?? null, [nums, asked])
  const choose = (num: number | null) => setQuery({ node: num === null ? '' : idOf(num) })
  const drawing = useRef<GraphDrawing | null>(null)
  const lost = arrangement.lost.value
  const cuts = useMemo(() => new Map((lost ?? []).map((each) => [each.nodeNum, each.count])), [lost])
  const cutNums = useMemo(() => new Set(cuts.keys()), [cuts])
  return (
    <Page
      title={t.nav.topology}
      fill
      actions={
        <button type="button" class="button" onClick={() => drawing.current?.fit()}>
          {topologyTexts.fit}
        </button>
      }
    >
      <div class="toolbar">
        <SearchQuery label={t.nodes.searchLabel} hint={t.nodes.searchHint} />
        <RangeControl label={topologyTexts.heard} fallback={USUAL} />
        <span class="faint" role="status">
          {data.value !== null && topologyTexts.count(nums.length, pairs.length)}
        </span>
      </div>
      <Failure error={error.value} retry={reload} />
      {data.value !== null && nums.length === 0 && (
        <Empty icon="neighbors" title={topologyTexts.none}>
          <p>{topologyTexts.noneHelp}</p>
          <ConnectHelp />
        </Empty>
      )}
      {nums.length > 0 && (
        <div class="topology">
          <div class="topology-graph">
            <Drawing {...{ topology, arrangement, chosen, choose, drawing }} cuts={cutNums} />
            <Legend />
          </div>
          <div class="topology-side card">
            {arrangement.hasFailed.value && <Problem>{topologyTexts.failed}</Problem>}
            {isWhole ? lost !== null && <Dependence lost={lost} /> : <p class="faint">{topologyTexts.notWhole}</p>}
            {chosen === null ? (
              <NodeList graph={topology} cuts={cuts} q={query.get('q') ?? ''} choose={choose} />
            ) : (
              <NodeLinks graph={topology} chosen={chosen} lost={cuts.get(chosen) ?? 0} choose={choose} />
            )}
          </div>
        </div>
      )}
    </Page>
  )
}

type DrawingProps = {
  readonly topology: Graph
  readonly arrangement: Arrangement
  readonly cuts: ReadonlySet<number>
  readonly chosen: number | null
  readonly choose: (num: number | null) => void
  readonly drawing: { current: GraphDrawing | null }
}

const ARROWS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
}

function Drawing({ topology, arrangement, cuts, chosen, choose, drawing }: DrawingProps) {
  const box = useRef<HTMLDivElement>(null)
  const latest = useRef(choose)
  latest.current = choose
  useEffect(() => {
    if (box.current === null) return
    const made = createGraph(box.current, (num) => latest.current(num))
    drawing.current = made
    return () => {
      drawing.current = null
      made.destroy()
    }
  }, [])
  const { pairs, receivers } = topology
  const { places } = arrangement
  const at = places.value
  const isRough = !arrangement.isDone.value
  const known = nodes.value
  useEffect(() => {
    const nameOf = (num: number) => {
      const node = nodeByNum(num)
      return node === undefined ? idOf(num).slice(-4) : shortNameOf(node)
    }
    drawing.current?.show({ pairs, receivers, cuts, chosen, places: at, now: now.peek(), isRough, nameOf })
  }, [pairs, receivers, cuts, chosen, at, known, isRough])
  useEffect(() => drawing.current?.recolour(), [theme.value])
  const press = (event: KeyboardEvent) => {
    const arrow = ARROWS[event.key]
    if (arrow !== undefined) {
      const next = drawing.current?.next(...arrow) ?? null
      if (next !== null) choose(next)
    } else if (event.key === '+' || event.key === '=') drawing.current?.zoom(1.5)
    else if (event.key === '-') drawing.current?.zoom(1 / 1.5)
    else if (event.key === '0') drawing.current?.fit()
    else if (event.key === 'Escape') choose(null)
    else return
    event.preventDefault()
  }
  const name = chosen === null ? null : nameOf(chosen, idOf(chosen))
  return (
    <>
      <div
        class="topology-box"
        ref={box}
        role="application"
        tabIndex={0}
        aria-label={name === null ? topologyTexts.label : `${topologyTexts.label}: ${name}`}
        aria-describedby="topology-keys"
        onKeyDown={press}
      />
      <p id="topology-keys" class="sr-only">
        {topologyTexts.keys}
      </p>
      {!arrangement.isDone.value && (
        <p class="topology-note faint" role="status">
          {topologyTexts.arranging}
        </p>
      )}
    </>
  )
}

function Legend() {
  const { radio, cut, one, old } = topologyTexts.legend
  return (
    <ul class="topology-legend faint">
      <li>
        <i class="radio" aria-hidden="true" />
        {radio}
      </li>
      <li>
        <i class="cut" aria-hidden="true" />
        {cut}
      </li>
      <li>
        <i class="one" aria-hidden="true">
          →
        </i>
        {one}
      </li>
      <li>
        <i class="old" aria-hidden="true" />
        {old}
      </li>
    </ul>
  )
}

/** Nodes without which others are lost, in sentences. */
function Dependence({ lost }: { lost: readonly Lost[] }) {
  const shown = lost.slice(0, MAX_SENTENCES)
  const named = shown.map(({ nodeNum }) => ({ nodeId: idOf(nodeNum), name: nameOf(nodeNum, idOf(nodeNum)) }))
  return (
    <section class="topology-lost">
      {lost.length === 0 && <p>{topologyTexts.noneLost}</p>}
      <ul>
        {shown.map(({ nodeNum, count }, index) => (
          <li key={nodeNum}>{linkNames(topologyTexts.lost(markOf(index), count), named)}</li>
        ))}
        {lost.length > shown.length && <li>{topologyTexts.moreLost(lost.length - shown.length)}</li>}
      </ul>
      <p class="faint">{topologyTexts.lostHelp}</p>
    </section>
  )
}
