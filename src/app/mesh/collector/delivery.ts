import * as z from 'zod'
import type { Store } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { announce, logExcess } from '../ingest/announce.ts'
import { configuredRadios } from '../radios/channel-table.ts'
import { storeBatch, type Stored } from '../ingest/ingest.ts'
import type { OnBatch } from '../ingest/on-batch.ts'
import { isNode } from '../ingest/plan.ts'
import { tellOwner } from '../live/tell-owner.ts'
import { type ingestSchema, MAX_ITEMS, readItems, type Rejection, REJECTIONS, type Taken } from './items.ts'
import { claimLocalNode, claimSource, type KnownSource, readSource } from '../radios/source-table.ts'
import { isRefusedContent } from '../ingest/refused-content.ts'

export const ingestAnswerSchema = z
  .object({
    accepted: z.int().describe('Items that are stored, by this delivery or an earlier one'),
    duplicates: z.int().describe('Stored packets that were duplicates'),
    rejected: z
      .array(z.object({ index: z.int(), reason: z.enum(REJECTIONS) }))
      .max(MAX_ITEMS)
      .describe('Rejected items, by their index in the delivery; do not send them again'),
  })
  .meta({ id: 'IngestAnswer' })

/**
 * Stores a collector's delivery. The token identifies the collector. Throws `source_taken` when a radio of this service
 * or another owner's token has the name, and `too_many_sources`. Decision: docs/decisions/deliveries-known-again.md
 */
export async function storeDelivery(
  ctx: Ctx,
  delivery: z.infer<typeof ingestSchema>,
  tokenId: number,
  onBatch: OnBatch | null = null,
): Promise<z.infer<typeof ingestAnswerSchema>> {
  const { store, log } = ctx
  const { source } = delivery
  const known = await ownSource(ctx, source, tokenId)
  const read = readItems(delivery, known, ctx.now())
  const foreign = await foreignNodes(ctx, { known, tokenId, taken: read.taken })
  const isForeign = ({ heard: { event } }: Taken) => event.type === 'my-info' && foreign.has(event.nodeNum)
  const taken = read.taken.filter((each) => !isForeign(each))
  const rejected: Rejection[] = [
    ...read.rejected,
    ...read.taken.filter(isForeign).map(({ index }) => ({ index, reason: 'not_your_radio' as const })),
  ]
  const beside = { known, radios: configuredRadios(ctx.radio), now: ctx.now(), onBatch }
  const { stored, refused } = await storeTaken(store, taken, beside)
  for (const { excesses } of stored) for (const excess of excesses) logExcess(log, excess)
  await announce(ctx, { news: stored.flatMap(({ news }) => news) })
  for (const ownerId of new Set(stored.flatMap(({ alerted }) => alerted))) tellOwner(ctx, ownerId)
  for (const { counts } of stored) ctx.meter?.countBatch(counts)
  const all = [...rejected, ...refused].toSorted((a, b) => a.index - b.index)
  if (all.length > 0) {
    const reasons = Object.fromEntries(
      [...Map.groupBy(all, ({ reason }) => reason)].map(([r, { length }]) => [r, length]),
    )
    log.info('Delivered packets were rejected', { source, ...reasons })
  }
  const duplicates = stored.reduce((sum, { duplicates }) => sum + duplicates, 0)
  return { accepted: taken.length - refused.length, duplicates, rejected: all }
}

/** The source with this name. It belongs to the token from now on. */
async function ownSource({ store, now }: Ctx, name: string, tokenId: number): Promise<KnownSource> {
  const before = await readSource(store, name)
  if (before !== null && before.kind !== 'ingest') {
    throw new AppError('source_taken', 'This service has a source of its own with this name')
  }
  if (before !== null && before.tokenId === tokenId) return before
  const claimed = await claimSource(store, { name, tokenId, now: now() })
  if (claimed !== null) return claimed
  if (before !== null && before.tokenId !== null) {
    throw new AppError(
      'source_taken',
      "Another owner's token delivers under this name; revoke it, or choose another name",
    )
  }
  throw new AppError('too_many_sources', 'This token, or the whole service, already has the maximum number of sources')
}

/** Nodes that a delivery wrongly claims as the radio of its source. */
async function foreignNodes(
  { store, log, now, radio }: Ctx,
  {
    known,
    tokenId,
    taken,
  }: { readonly known: KnownSource; readonly tokenId: number; readonly taken: readonly Taken[] },
): Promise<ReadonlySet<number>> {
  const claimed = taken.flatMap(({ heard: { event } }) =>
    event.type === 'my-info' && isNode(event.nodeNum) ? [event.nodeNum] : [],
  )
  const foreign = new Set<number>()
  for (const nodeNum of new Set(claimed)) {
    const claim = { name: known.name, tokenId, nodeNum, radios: configuredRadios(radio), now: now() }
    if (!(await claimLocalNode(store, claim))) foreign.add(nodeNum)
  }
  const nodes = [...foreign].slice(0, 5).map(formatNodeId)
  if (foreign.size > 0 && known.localNodeNum !== null) {
    log.warn('A source says that it is a different node now; do two collectors use the same name?', {
      source: known.name,
      nodes,
    })
  } else if (foreign.size > 0) {
    log.warn('A delivery calls nodes its own radio that are not', { source: known.name, tokenId, nodes })
  }
  return foreign
}

/**
 * Stores the batch at once. If the database refuses something in it, stores its halves separately: one item must not
 * block the others.
 */
async function storeTaken(
  store: Store,
  taken: readonly Taken[],
  beside: Parameters<typeof storeBatch>[2],
): Promise<{ stored: Stored[]; refused: Rejection[] }> {
  if (taken.length === 0) return { stored: [], refused: [] }
  try {
    return {
      stored: [
        await storeBatch(
          store,
          taken.map(({ heard }) => heard),
          beside,
        ),
      ],
      refused: [],
    }
  } catch (error) {
    if (!isRefusedContent(error)) throw error
    const [only] = taken
    if (taken.length === 1 && only !== undefined) {
      return { stored: [], refused: [{ index: only.index, reason: 'not_storable' }] }
    }
    const middle = taken.length >> 1
    const first = await storeTaken(store, taken.slice(0, middle), beside)
    const second = await storeTaken(store, taken.slice(middle), beside)
    return { stored: [...first.stored, ...second.stored], refused: [...first.refused, ...second.refused] }
  }
}
