import type { OpenMapArchive } from './archive.ts'
import * as z from 'zod'
import type { Ctx } from '../../context.ts'
import { AppError } from '../../http/errors.ts'
import { TILE_FORMATS } from './pmtiles-header.ts'

const attribution = z.string().nullable().describe('Whose tiles they are, plain text')
const zoom = z.int().min(0)

export const mapSchema = z
  .object({
    tiles: z
      .discriminatedUnion('kind', [
        z.object({
          kind: z.literal('url'),
          url: z.string().describe('With {z}, {x} and {y}'),
          maxZoom: zoom,
          attribution,
        }),
        z.object({
          kind: z.literal('archive').describe('At /api/map/archive'),
          format: z.enum(TILE_FORMATS),
          minZoom: zoom,
          maxZoom: zoom,
          bounds: z.tuple([z.number(), z.number(), z.number(), z.number()]).describe('West, south, east, north'),
          attribution: attribution.describe('Plain text; null: what the file itself says'),
        }),
      ])
      .nullable()
      .describe('Null: none, the map shows degrees'),
  })
  .meta({ id: 'MapTiles' })

/** The source of the map's tiles. Throws `map_unavailable`. */
export async function readMap(ctx: Ctx): Promise<z.infer<typeof mapSchema>> {
  const { MAP_TILE_URL, MAP_TILE_MAX_ZOOM, MAP_TILE_ATTRIBUTION: attribution } = ctx.config
  if (MAP_TILE_URL !== null) {
    return { tiles: { kind: 'url', url: MAP_TILE_URL, maxZoom: MAP_TILE_MAX_ZOOM, attribution } }
  }
  if (ctx.mapArchive === null) return { tiles: null }
  const archive = await openArchive(ctx)
  await archive.close()
  const { format, minZoom, maxZoom, bounds } = archive.header
  return { tiles: { kind: 'archive', format, minZoom, maxZoom, bounds: [...bounds], attribution } }
}

/** The map file, to be closed. Throws `not_found`, `map_unavailable`. */
export async function openArchive({ mapArchive }: Ctx): Promise<OpenMapArchive> {
  if (mapArchive === null) throw new AppError('not_found')
  return mapArchive.open()
}
