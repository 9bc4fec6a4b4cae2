import { nextTurn } from '../../base/pacing/next-turn.ts'
import { seesNodes } from '../../accounts/access/visible.ts'
import type { SignedInCtx } from '../../base/context.ts'
import type { Pause } from '../../base/pacing/slices.ts'
import { readKnownNodes, readWorld } from '../world/read-world.ts'
import { type Watched, watcher } from '../world/watched.ts'
import type { Fact } from '../facts.ts'
import type { Said } from '../../words/words.ts'
import type { World, WorldNeeds, WorldNode } from '../world/world.ts'

export type Range = {
  readonly from: number
  readonly to: number
  /** Awaited between the slices of long work; false: the reader is gone. */
  readonly pause: Pause
}

/** When a rule would have fired. `resolvedAt` null: it would still fire, or it is a single event. */
export type Fire = {
  readonly at: number
  readonly resolvedAt: number | null
  readonly nodeNum: number | null
  readonly fact: Fact
}

/** `note`: limits of the stored history. */
export type Past = { readonly fires: readonly Fire[]; readonly note: Said | null }

/** The nodes that are not hidden from the viewer. */
export async function readNodes({
  store,
  viewer: { view },
}: Pick<SignedInCtx, 'store' | 'viewer'>): Promise<readonly WorldNode[]> {
  const all = (await readKnownNodes(store, goOn)) ?? []
  return all.filter(({ nodeNum }) => seesNodes(view, [nodeNum]))
}

/** Collects the past findings for each watched node. */
export async function lookAtNodes(
  ctx: SignedInCtx,
  watched: Watched,
  find: (node: WorldNode) => Promise<Fire[]>,
): Promise<Past> {
  const fires: Fire[] = []
  for (const node of (await readNodes(ctx)).filter(watcher(watched))) {
    fires.push(...(await find(node)))
    await nextTurn()
  }
  return { fires, note: null }
}

type Present = { readonly since: number; readonly nodeNum: number | null; readonly fact: Fact }

/** The current findings, for kinds whose history is not stored. */
export async function lookAtPresent(
  { store, radio, viewer: { view } }: SignedInCtx,
  { from, to }: Range,
  needs: WorldNeeds,
  find: (world: World) => readonly Present[],
): Promise<Past['fires']> {
  const read = await readWorld({ store, radio, now: to, startedAt: null }, [needs], goOn)
  if (read === null) throw new Error('reading was cut off')
  const { world } = read
  const seen = { ...world, nodes: world.nodes.filter(({ nodeNum }) => seesNodes(view, [nodeNum])) }
  return find(seen).map(({ since, nodeNum, fact }) => ({ at: Math.max(since, from), resolvedAt: null, nodeNum, fact }))
}

async function goOn(): Promise<boolean> {
  await nextTurn()
  return true
}
