import { namesOf } from '../../../shared/names.ts'
import { blur } from '../../accounts/access/blur.ts'
import type { PublicView } from '../../accounts/access/public-view.ts'
import { blanksOf, columnsAmong, PUBLIC_COLUMNS } from './columns.ts'
import { type Node, type NodeDetail, nodeDetailSchema, nodeSchema } from './nodes.ts'

// The part of a node for anonymous callers: public columns, and what is listed here. Nothing else is shown.

/** What is shown as well, in the form of the API; a position is rounded. */
const COMPUTED = ['nodeId', 'deviceMetrics', 'status', 'signed'] as const satisfies readonly (keyof Node)[]
const SHOWN: readonly (keyof Node)[] = [...PUBLIC_COLUMNS, ...COMPUTED]
const BLANK_COMPUTED = { nodeId: '!00000001', deviceMetrics: null, status: null, signed: false } satisfies Partial<Node>

/** A node of which nothing is known but its first number. */
const BLANK: NodeDetail = nodeDetailSchema.parse({
  ...blanksOf(columnsAmong(namesOf(nodeDetailSchema.shape))),
  ...BLANK_COMPUTED,
  nodeNum: 1,
  position: null,
  hidden: false,
  formerNodeNums: [],
  refused: [],
  claims: [],
  declaredOwn: null,
  suspicions: [],
  weakKey: false,
})
/** The same without the fields that lists leave out. */
const BLANK_NODE: Node = nodeSchema.parse(BLANK)
/** What is never shown: notes, marks and firmware, the signal at our radios, and which nodes are our own. */
const WITHHELD = pick(
  BLANK,
  namesOf(nodeSchema.shape).filter((name) => name !== 'position' && !SHOWN.includes(name)),
)

function pick(from: Partial<Node>, names: readonly (keyof Node)[]): Partial<Node> {
  return Object.fromEntries(names.flatMap((name) => (name in from ? [[name, from[name]]] : [])))
}

/**
 * A node as anonymous callers see it.
 * Decision: docs/decisions/ids-count-everything.md
 */
export function nodeForAnonymous(node: Node, view: PublicView): Node {
  return { ...BLANK_NODE, ...pick(node, SHOWN), position: placeForAnonymous(node.position, view) }
}

/** The same with the fields that lists leave out: nothing of them is shown. */
export function detailForAnonymous(node: Node, view: PublicView): NodeDetail {
  return { ...BLANK, ...nodeForAnonymous(node, view) }
}

/** The same for changes of a node. If they contain the whole node, so does the result. */
export function changesForAnonymous(changes: Partial<Node>, view: PublicView): Partial<Node> {
  const { nodeNum, position } = changes
  return {
    ...(nodeNum !== undefined && WITHHELD),
    ...pick(changes, SHOWN),
    ...(position !== undefined && { position: placeForAnonymous(position, view) }),
  }
}

function placeForAnonymous(position: Node['position'], { precisionBits: bits }: PublicView): Node['position'] {
  if (position === null) return null
  const { latitude, longitude, altitude, precisionBits, time } = position
  return { ...blur({ latitude, longitude, altitude, precisionBits }, bits), time }
}
