import type { OpenMapArchive } from './archive.ts'
import * as z from 'zod'
import { tileOrigin } from '../../config/secure-url.ts'
import type { Ctx, Ports } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import type { MapTilesSetting } from '../../settings/map-tiles.ts'
import { readSettings } from '../../settings/settings.ts'
import { TILE_FORMATS } from './pmtiles-header.ts'

const attribution = z.string().nullable().describe('Attribution of the tiles, plain text')
const zoom = z.int().min(0)

export const mapSchema = z
  .object({
    tiles: z
      .discriminatedUnion('kind', [
        z.object({
          kind: z.literal('url'),
          url: z.string().describe('With {z}, {x} and {y}'),
          darkUrl: z.string().nullable().describe('Tiles for dark pages; null: the same'),
          maxZoom: zoom,
          attribution,
        }),
        z.object({
          kind: z.literal('archive').describe('At /api/map/archive'),
          format: z.enum(TILE_FORMATS),
          minZoom: zoom,
          maxZoom: zoom,
          bounds: z.tuple([z.number(), z.number(), z.number(), z.number()]).describe('West, south, east, north'),
          attribution: attribution.describe('Plain text; null: the attribution in the file'),
        }),
      ])
      .nullable()
      .describe('Null: none, the map shows its own coasts, borders and towns, or the map of the region'),
  })
  .meta({ id: 'MapTiles' })

type Source = Exclude<MapTilesSetting, { kind: 'configured' }>
type Given = Pick<Ports, 'config' | 'mapArchive'>

/** The tiles from the setting, or else from the environment variables. */
function sourceOf({ config, mapArchive }: Given, setting: MapTilesSetting): Source {
  if (setting.kind !== 'configured') return setting
  const { MAP_TILE_URL: url, MAP_TILE_MAX_ZOOM: maxZoom, MAP_TILE_ATTRIBUTION: by } = config
  if (url !== null) return { kind: 'url', url, darkUrl: null, maxZoom, attribution: by }
  return mapArchive === null ? { kind: 'none' } : { kind: 'file', attribution: by }
}

/**
 * The source of the map's tiles. Throws `map_unavailable`.
 * Decision: docs/decisions/map-asks-nobody.md
 */
export async function readMap(ctx: Ctx): Promise<z.infer<typeof mapSchema>> {
  const source = sourceOf(ctx, (await readSettings(ctx.store)).mapTiles)
  if (source.kind === 'url') return { tiles: source }
  // After a restore on another machine, a setting may choose a file that this one doesn't have.
  if (source.kind === 'none' || ctx.mapArchive === null) return { tiles: null }
  const archive = await openArchive(ctx)
  await archive.close()
  const { format, minZoom, maxZoom, bounds } = archive.header
  const by = source.attribution ?? ctx.config.MAP_TILE_ATTRIBUTION
  return { tiles: { kind: 'archive', format, minZoom, maxZoom, bounds: [...bounds], attribution: by } }
}

/**
 * The hosts from which pages may load tile images. If the database does not answer, those from the environment
 * variables, because pages still load.
 */
export async function tileOrigins(ports: Given & Pick<Ports, 'store'>): Promise<readonly string[]> {
  const setting = await readSettings(ports.store).then(
    ({ mapTiles }) => mapTiles,
    () => ({ kind: 'configured' }) as const,
  )
  const source = sourceOf(ports, setting)
  if (source.kind !== 'url') return []
  const urls = [source.url, source.darkUrl].filter((url) => url !== null)
  return [...new Set(urls.flatMap((url) => tileOrigin(url) ?? []))]
}

/** The map file. The caller closes it. Throws `not_found`, `map_unavailable`. */
export async function openArchive({ mapArchive }: Ctx): Promise<OpenMapArchive> {
  if (mapArchive === null) throw new AppError('not_found')
  return mapArchive.open()
}
