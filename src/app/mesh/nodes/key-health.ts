import { and, gt, isNotNull } from 'drizzle-orm'
import * as z from 'zod'
import { nodes } from '../../../db/schema.ts'
import { isWeakKey } from '../../../meshtastic/crypto/public-key.ts'
import type { Store } from '../../../db/store.ts'
import { ofNodesSeenBy, type View } from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'
import { sha256Hex } from '../../base/crypto.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { nodeNumField } from '../../http/fields.ts'

/** Nodes in the answer, as in the list of nodes, and numbers at each. */
const MAX_LISTED = 5000
const MAX_SHARING = 20
/** Keys that are hashed, or compared, in one turn of the event loop, and rows that are read in one. */
const SLICE = 500
const READ_ROWS = 2000

export const keyHealthSchema = z
  .object({
    nodeNum: nodeNumField,
    changed: z.boolean().describe('Another key was announced in the name of the node: its `keyMismatch`'),
    weak: z.boolean().describe('Made with too little entropy: its `weakKey`'),
    sharedWith: z.array(nodeNumField).describe('Other nodes with the same key at the same time, at most 20'),
    holders: z.int().describe('All nodes with the key, itself and silent ones included'),
  })
  .meta({ id: 'KeyHealth', description: 'A node whose public key is not its own, or may not be' })

/**
 * The nodes with such a key, those known the longest first, as far as the viewer sees nodes: a hidden one is no
 * duplicate of a visible one.
 */
export async function listKeyHealth({ store, viewer: { view } }: Reader): Promise<z.infer<typeof keyHealthSchema>[]> {
  const known = await readKeys(store, view)
  const weak: ReadonlySet<string | null> = await findWeakKeys(known)
  const holders = new Map<string | null, number>()
  for (const { publicKey } of known) holders.set(publicKey, (holders.get(publicKey) ?? 0) + 1)
  const longest = new Map<string | null, Sharing[]>()
  const found: (Known & Sharing)[] = []
  for (const [n, node] of known.entries()) {
    // Anybody can give one key to as many nodes as there may be.
    if (n % SLICE === SLICE - 1) await nextTurn()
    const key = node.publicKey
    if (holders.get(key) === 1) {
      if (node.changed || weak.has(key)) found.push({ ...node, sharedWith: [] })
      continue
    }
    const others = longest.get(key) ?? []
    const sharedWith = others.flatMap((other) => {
      if (!overlap(other, node)) return []
      if (other.sharedWith.length < MAX_SHARING) other.sharedWith.push(node.nodeNum)
      return other.nodeNum
    })
    const sharing = { ...node, sharedWith }
    found.push(sharing)
    // Whoever overlaps with anybody overlaps with one of those that stayed the longest.
    longest.set(
      key,
      [...others, sharing].toSorted((a, b) => (b.lastHeard ?? 0) - (a.lastHeard ?? 0)).slice(0, MAX_SHARING),
    )
  }
  await nextTurn()
  return found
    .filter(({ changed, publicKey, sharedWith }) => changed || weak.has(publicKey) || sharedWith.length > 0)
    .slice(0, MAX_LISTED)
    .map(({ nodeNum, changed, publicKey, sharedWith }) => ({
      nodeNum,
      changed,
      weak: weak.has(publicKey),
      sharedWith,
      holders: holders.get(publicKey) ?? 0,
    }))
}

/** Nodes with a public key that the viewer sees, those known the longest first. */
async function readKeys({ db }: Store, view: View): Promise<Known[]> {
  const { id, nodeNum, publicKey, keyMismatch, firstHeard, lastHeard } = nodes
  const known: Known[] = []
  for (let after = 0; ;) {
    const rows = await db
      .select({ id, nodeNum, publicKey, changed: keyMismatch, firstHeard, lastHeard })
      .from(nodes)
      .where(and(gt(id, after), isNotNull(publicKey), ofNodesSeenBy(view, nodeNum)))
      .orderBy(id)
      .limit(READ_ROWS)
      .all()
    known.push(...rows)
    const last = rows.at(-1)
    if (last === undefined || rows.length < READ_ROWS) return known.toSorted((a, b) => a.firstHeard - b.firstHeard)
    after = last.id
    await nextTurn()
  }
}

type Heard = { readonly firstHeard: number; readonly lastHeard: number | null }
type Known = Heard & { readonly nodeNum: number; readonly publicKey: string | null; readonly changed: boolean }
type Sharing = Heard & { readonly nodeNum: number; readonly sharedWith: number[] }

/** Those that were there at the same time as another one. Sorting them takes the longest. */
export function findMeeting<T extends Heard>(all: readonly T[]): ReadonlySet<T> {
  const byStart = all.toSorted((a, b) => a.firstHeard - b.firstHeard)
  const found = new Set<T>()
  let lastOfOlder = -Infinity
  for (const one of byStart) {
    const { firstHeard, lastHeard } = one
    if (lastHeard !== null && lastOfOlder > firstHeard) found.add(one)
    lastOfOlder = Math.max(lastOfOlder, lastHeard ?? 0)
  }
  let firstOfNewer = Infinity
  for (const one of byStart.toReversed()) {
    const { firstHeard, lastHeard } = one
    if ((lastHeard ?? 0) > firstOfNewer) found.add(one)
    if (lastHeard !== null) firstOfNewer = firstHeard
  }
  return found
}

/** Whether both were there at the same time: a node that continues under another number is silent under the old one. */
function overlap(a: Heard, b: Heard): boolean {
  const [older, newer] = a.firstHeard <= b.firstHeard ? [a, b] : [b, a]
  return newer.lastHeard !== null && (older.lastHeard ?? 0) > newer.firstHeard
}

const strong = new Set<string>()
const MAX_STRONG = 20_000

export async function findWeakKeys(known: readonly { readonly publicKey: string | null }[]): Promise<Set<string>> {
  const weak = new Set<string>()
  let hashed = 0
  for (const { publicKey } of known) {
    if (publicKey === null || strong.has(publicKey)) continue
    if (++hashed % SLICE === 0) await nextTurn()
    if (isWeakKey(publicKey, sha256Hex)) weak.add(publicKey)
    else if (strong.size < MAX_STRONG) strong.add(publicKey)
  }
  return weak
}
