import { forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationNodeDatum } from 'd3-force'
import { lostWithout } from '../../../../shared/mesh/graph.ts'

// Runs on a thread of its own, so that the page can be used meanwhile.

export type Order = {
  readonly nums: readonly number[]
  /** Indexes of `nums`. */
  readonly links: readonly (readonly [number, number])[]
  readonly roots: readonly number[]
  /** Where each node was before; null: it is new. */
  readonly before: readonly (readonly [number, number] | null)[]
}

/** A node without which `count` others are lost, the first of them named. */
export type Lost = { readonly nodeNum: number; readonly count: number; readonly some: readonly number[] }

export type Arranged =
  | { readonly kind: 'lost'; readonly lost: readonly Lost[] }
  | {
      readonly kind: 'places'
      /** x and y of each node. */
      readonly xy: Float32Array<ArrayBuffer>
      readonly isDone: boolean
    }

/** The picture is shown this often while it comes to rest. */
const SHOWN_MS = 400
const DISTANCE = 46
const REPULSION = -90
/** Groups without a link between them stay in sight of each other. */
const GRAVITY = 0.045

const tell = (message: Arranged, transfer: Transferable[] = []) => postMessage(message, { transfer })

addEventListener('message', ({ data }: MessageEvent<Order>) => void arrange(data))

async function arrange(order: Order): Promise<void> {
  const { nums, links, roots, before } = order
  const numOf = (index: number) => nums[index] ?? 0
  const lost = await lostWithout(
    links.map(([a, b]) => ({ from: numOf(a), to: numOf(b) })),
    roots,
    async () => true,
  )
  // Without a receiver everything is lost already.
  if (roots.length > 0)
    tell({
      kind: 'lost',
      lost: Array.from(lost, ([nodeNum, found]) => ({ nodeNum, ...found })).toSorted((a, b) => b.count - a.count),
    })
  const nodes = before.map((place): SimulationNodeDatum => (place === null ? {} : { x: place[0], y: place[1] }))
  const isKnown = before.filter((place) => place !== null).length > nodes.length / 2
  const simulation = forceSimulation(nodes)
    .stop()
    .alpha(isKnown ? 0.3 : 1)
    .force('links', forceLink(links.map(([source, target]) => ({ source, target }))).distance(DISTANCE))
    .force('apart', forceManyBody().strength(REPULSION).distanceMax(900))
    .force('x', forceX().strength(GRAVITY))
    .force('y', forceY().strength(GRAVITY))
  let shownAt = performance.now()
  const show = (isDone: boolean) => {
    const xy = Float32Array.from(nodes.flatMap(({ x = 0, y = 0 }) => [x, y]))
    tell({ kind: 'places', xy, isDone }, [xy.buffer])
    shownAt = performance.now()
  }
  while (simulation.alpha() > simulation.alphaMin()) {
    simulation.tick()
    if (performance.now() - shownAt > SHOWN_MS) show(false)
  }
  show(true)
}
