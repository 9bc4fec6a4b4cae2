import { PMTiles } from 'pmtiles'
import type { InferResponseType } from 'hono/client'
import { type api, BASE, isRecord } from '../../../api.ts'

type Given = NonNullable<InferResponseType<typeof api.map.$get, 200>['tiles']>
/** A map file of this service. */
export type Archive = Omit<Extract<Given, { kind: 'archive' }>, 'format'> & {
  readonly file: 'archive' | 'region.pmtiles'
  /** Null: not known yet. */
  readonly format: 'vector' | 'raster' | null
}
/** Where the map's tiles come from. */
export type Tiles = Extract<Given, { kind: 'url' }> | Archive

/** The map file, read range by range. */
export function openArchive({ file }: Archive): PMTiles {
  return new PMTiles(new URL(`${BASE}api/map/${file}`, location.origin).href)
}

/** The attribution in the file, without its markup; null: none. */
export async function readAttribution(archive: PMTiles): Promise<string | null> {
  const metadata: unknown = await archive.getMetadata()
  if (!isRecord(metadata) || typeof metadata['attribution'] !== 'string') return null
  const text = new DOMParser().parseFromString(metadata['attribution'], 'text/html').body.textContent.trim()
  return text === '' ? null : text
}
