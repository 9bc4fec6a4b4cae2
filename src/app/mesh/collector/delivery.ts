import * as z from 'zod'
import type { Store } from '../../../db/store.ts'
import type { RadioEvent } from '../../../meshtastic/radio-event.ts'
import type { Ctx } from '../../context.ts'
import { AppError } from '../../http/errors.ts'
import { announce, logCrowd } from '../ingest/announce.ts'
import { configuredRadios } from '../radios/channel-table.ts'
import { storeBatch, type Stored } from '../ingest/ingest.ts'
import { type ingestSchema, MAX_ITEMS, readItems, type Rejection, REJECTIONS, type Taken } from './items.ts'
import { countIngestSources, type KnownSource, readSource } from '../ingest/sources.ts'
import { isRefusedContent } from './refused-content.ts'

export const ingestAnswerSchema = z.object({
  accepted: z.int().describe('Items that are stored, now or before'),
  duplicates: z.int().describe('Packets among them that were known already'),
  rejected: z
    .array(z.object({ index: z.int(), reason: z.enum(REJECTIONS) }))
    .max(MAX_ITEMS)
    .describe('Items that are not, by their place in the delivery; sending them again is of no use'),
})

/** Of all collectors: a source is for ever, since what it delivered is. */
const MAX_SOURCES = 200

/** Stores what a collector delivers. Throws `source_taken` when a radio of this service has the name, `too_many_sources`. */
export async function storeDelivery(
  ctx: Ctx,
  delivery: z.infer<typeof ingestSchema>,
): Promise<z.infer<typeof ingestAnswerSchema>> {
  const { store, log } = ctx
  const { source } = delivery
  const known = await readSource(store, source)
  if (known !== null && known.kind !== 'ingest') {
    throw new AppError('source_taken', 'This service listens to a source of this name itself')
  }
  if (known === null && (await countIngestSources(store)) >= MAX_SOURCES) {
    throw new AppError(
      'too_many_sources',
      `Collectors have ${MAX_SOURCES} sources already; deliver under one of their names`,
    )
  }
  const { taken, rejected } = readItems(delivery, known, ctx.now())
  const changed = taken.find(({ heard: { event } }) => isOtherNode(event, known))
  if (changed !== undefined)
    log.warn('A source is another node than before; do two collectors use its name?', { source })
  const beside = { known, radios: configuredRadios(ctx.radio), now: ctx.now() }
  const { stored, refused } = await storeTaken(store, taken, beside)
  for (const { crowds } of stored) for (const crowd of crowds) logCrowd(log, crowd)
  announce(
    ctx,
    stored.flatMap(({ news }) => news),
  )
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

/** A radio has a number of its own; of two that take turns under one name, each hears the other's as a forgery. */
function isOtherNode(event: RadioEvent, known: KnownSource | null): boolean {
  const before = known?.localNodeNum ?? null
  return event.type === 'my-info' && before !== null && event.nodeNum !== before
}

/** One batch, and only when the database refuses something of it the halves: one item must not keep the others out. */
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
