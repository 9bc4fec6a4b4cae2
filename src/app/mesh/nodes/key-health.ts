import { and, isNotNull } from 'drizzle-orm'
import * as z from 'zod'
import { nodes } from '../../../db/schema.ts'
import { isWeakKey } from '../../../meshtastic/crypto/public-key.ts'
import { ofNodesSeenBy } from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'
import { nodeNumField } from '../../http/fields.ts'

export const keyHealthSchema = z
  .object({
    nodeNum: nodeNumField,
    changed: z.boolean().describe('Another key was announced in the name of the node: its `keyMismatch`'),
    weak: z.boolean().describe('Made with too little entropy: its `weakKey`'),
    sharedWith: z.array(nodeNumField).describe('Other nodes with the same key at the same time'),
  })
  .meta({ id: 'KeyHealth', description: 'A node whose public key is not its own, or may not be' })

/** The nodes with such a key, as far as the viewer sees nodes: a hidden one is no duplicate of a visible one. */
export async function listKeyHealth({ store, viewer: { view } }: Reader): Promise<z.infer<typeof keyHealthSchema>[]> {
  const { nodeNum, publicKey, keyMismatch, firstHeard, lastHeard } = nodes
  const known = await store.db
    .select({ nodeNum, publicKey, changed: keyMismatch, firstHeard, lastHeard })
    .from(nodes)
    .where(and(isNotNull(publicKey), ofNodesSeenBy(view, nodeNum)))
    .all()
  const weak = await findWeakKeys(known)
  const byKey = Map.groupBy(known, (node) => node.publicKey)
  return known.flatMap((node) => {
    const sharing = (byKey.get(node.publicKey) ?? []).filter((other) => other !== node && overlap(node, other))
    const isWeak = node.publicKey !== null && weak.has(node.publicKey)
    if (!node.changed && !isWeak && sharing.length === 0) return []
    const sharedWith = sharing.map((other) => other.nodeNum)
    return [{ nodeNum: node.nodeNum, changed: node.changed, weak: isWeak, sharedWith }]
  })
}

type Heard = { readonly firstHeard: number; readonly lastHeard: number | null }

/** Whether both were there at the same time: a node that continues under another number is silent under the old one. */
export function overlap(a: Heard, b: Heard): boolean {
  const [older, newer] = a.firstHeard <= b.firstHeard ? [a, b] : [b, a]
  return newer.lastHeard !== null && (older.lastHeard ?? 0) > newer.firstHeard
}

const strong = new Set<string>()
const MAX_STRONG = 20_000

export async function findWeakKeys(known: readonly { readonly publicKey: string | null }[]): Promise<Set<string>> {
  const weak = new Set<string>()
  for (const { publicKey } of known) {
    if (publicKey === null || strong.has(publicKey)) continue
    if (await isWeakKey(publicKey)) weak.add(publicKey)
    else if (strong.size < MAX_STRONG) strong.add(publicKey)
  }
  return weak
}
