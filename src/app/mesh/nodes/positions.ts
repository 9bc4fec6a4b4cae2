import { and, asc, eq, gte, lte, sql } from 'drizzle-orm'
import * as z from 'zod'
import { positions } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import type { Reader } from '../../base/context.ts'
import { onVisibleChannel, visibleValues } from '../../accounts/access/visible.ts'
import { getNodeRowId } from './seen.ts'
import { timeField } from '../../http/fields.ts'

export const trackSchema = z.object({
  positions: z.array(
    z.object({
      time: timeField,
      latitude: z.number(),
      longitude: z.number(),
      altitude: z.number().nullable(),
      precisionBits: z.int().nullable(),
    }),
  ),
  nextFrom: z.int().nullable().describe('`from` of the rest of the track; null: this is all of it'),
})

const queries = prepareOnce((db) => ({
  track: db
    .select({
      time: positions.t,
      latitude: positions.latitude,
      longitude: positions.longitude,
      altitude: positions.altitude,
      precisionBits: positions.precisionBits,
    })
    .from(positions)
    .where(
      and(
        eq(positions.nodeId, sql.placeholder('id')),
        gte(positions.t, sql.placeholder('from')),
        lte(positions.t, sql.placeholder('to')),
        onVisibleChannel(positions.channel),
      ),
    )
    .orderBy(asc(positions.t))
    .limit(sql.placeholder('limit'))
    .prepare(),
}))

/**
 * Where a node was between `from` and `to` (ms, inclusive), oldest first, as far as the viewer may see it. Throws
 * `node_not_found`.
 */
export async function readTrack(
  { store, viewer: { view } }: Reader,
  nodeNum: number,
  { from, to, limit }: { from: number; to: number; limit: number },
): Promise<z.infer<typeof trackSchema>> {
  const id = await getNodeRowId(store, view, nodeNum)
  const rows = await queries(store).track.all({ id, from, to, limit: limit + 1, ...visibleValues(view) })
  return { positions: rows.slice(0, limit), nextFrom: rows[limit]?.time ?? null }
}
