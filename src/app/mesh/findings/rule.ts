import type * as z from 'zod'
import type { Store } from '../../../db/store.ts'
import type { FindingRule } from '../../../shared/mesh/finding-rules.ts'
import type { Link } from './links.ts'

/** What a rule may look at, at one moment. Hidden nodes are not in it. */
export type Looking = {
  readonly store: Store
  readonly now: number
  /** Who hears whom, from reports of the last week. */
  readonly links: readonly Link[]
  /** Nodes heard in the last two days, by their numbers. */
  readonly heard: readonly number[]
  /** Lets other work have its turn; false: stop. */
  readonly pause: () => Promise<boolean>
}

/** Nodes that one query looks at: at first, at least and at most. */
const SLICE_NODES = { first: 20, least: 5, most: 50 }
/** Where each query is a round trip, of which an invocation may make only so many. */
const SLICE_NODES_AFAR = 5000
/** How long a query should hold the event loop, in milliseconds: a busy node has a thousand times the rows of another. */
const AIM_MS = 6

/** What a query finds about the nodes heard lately; other work has its turn between slices. */
export async function aboutHeard<Row>(
  { heard, pause, store }: Looking,
  read: (nums: string) => Promise<readonly Row[]> | readonly Row[],
): Promise<Row[]> {
  const all: Row[] = []
  const { first, least, most } = SLICE_NODES
  let slice = store.batch === undefined ? first : SLICE_NODES_AFAR
  for (let at = 0; at < heard.length && (await pause());) {
    const begun = performance.now()
    all.push(...(await read(JSON.stringify(heard.slice(at, at + slice)))))
    at += slice
    if (store.batch !== undefined) continue
    const fitting = (slice * AIM_MS) / Math.max(performance.now() - begun, AIM_MS / 2)
    slice = Math.max(least, Math.min(most, Math.floor(fitting)))
  }
  return all
}

export type Found<Evidence> = {
  /** Node numbers, first the one to visit. */
  readonly nodes: readonly number[]
  /** The numbers of the nodes that tell it from others of the rule; without it all of them. */
  readonly subject?: readonly number[]
  /** The channels on which the evidence arrived; null: any. */
  readonly channels: readonly (number | null)[]
  /** Most of what is known fits; false: something does. */
  readonly isLikely: boolean
  readonly evidence: Evidence
}

/** How a rule looks at the past: at any `now`, with the nodes heard then. */
export type Past = {
  /** Milliseconds between two looks. */
  readonly everyMs: number
  /** When what is stored of its evidence begins; null: nothing is. */
  oldest(looking: Looking): Promise<number | null>
}

/** Something that can be wrong in a mesh. It sends nothing. */
export type Rule = {
  readonly name: FindingRule
  readonly evidence: z.ZodObject
  /** So many of the nodes a viewer must see to be told; null: all. */
  readonly least: number | null
  /** Null: only the present of what it looks at is stored. */
  readonly past: Past | null
  look(looking: Looking): Promise<readonly Found<Record<string, unknown>>[]>
}

/** Checks that what a rule finds fits its schema. */
export function defineRule<const Schema extends z.ZodObject>(rule: {
  readonly name: FindingRule
  readonly evidence: Schema
  readonly least?: number
  readonly past?: Past
  look(looking: Looking): Promise<readonly Found<z.infer<Schema>>[]>
}): Rule {
  return { least: null, past: null, ...rule }
}
