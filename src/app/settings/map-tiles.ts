import * as z from 'zod'
import { isTileUrl } from '../config/secure-url.ts'
import { MAX_ATTRIBUTION, MAX_TILE_URL } from '../../shared/limits.ts'

const EXPECTED = 'Expected an https URL (http only on loopback) or a path of this site, with {z}, {x} and {y}'

export const tileUrlField = z.string().max(MAX_TILE_URL).refine(isTileUrl, EXPECTED)

const attribution = z
  .string()
  .min(1)
  .max(MAX_ATTRIBUTION)
  .regex(/^[^\p{Cc}\p{Cs}]+$/u)
  .nullable()
  .describe('Attribution of the tiles, plain text; null: the attribution in the file, if any')

/** Where the map gets its tiles. */
export const mapTilesSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('configured').describe('As MAP_TILE_URL or MAP_PMTILES says') }),
  z.strictObject({
    kind: z
      .literal('none')
      .describe('The map shows its own coasts, borders and towns, or the map of the region, and asks no other host'),
  }),
  z.strictObject({
    kind: z.literal('url').describe('From a host, or from a path of this site'),
    url: tileUrlField.describe('With {z}, {x} and {y}'),
    darkUrl: tileUrlField.nullable().describe('Tiles for dark pages; null: the same, darkened'),
    maxZoom: z.int().min(1).max(24).describe('The highest zoom level that has tiles'),
    attribution,
  }),
  z.strictObject({ kind: z.literal('file').describe('From the file of MAP_PMTILES'), attribution }),
])

export type MapTilesSetting = z.infer<typeof mapTilesSchema>
