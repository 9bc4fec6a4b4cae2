import { PMTiles } from 'pmtiles'
import type { InferResponseType } from 'hono/client'
import { type api, BASE, isRecord } from '../../../api.ts'

/** Where the map's tiles come from. */
export type Tiles = NonNullable<InferResponseType<typeof api.map.$get, 200>['tiles']>

/** The map file of this service, read range by range. */
export function openArchive(): PMTiles {
  return new PMTiles(new URL(`${BASE}api/map/archive`, location.origin).href)
}

/** The attribution in the file, without its markup; null: none. */
export async function readAttribution(archive: PMTiles): Promise<string | null> {
  const metadata: unknown = await archive.getMetadata()
  if (!isRecord(metadata) || typeof metadata['attribution'] !== 'string') return null
  const text = new DOMParser().parseFromString(metadata['attribution'], 'text/html').body.textContent.trim()
  return text === '' ? null : text
}
