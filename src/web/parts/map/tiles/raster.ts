import { TileType } from 'pmtiles'
import { type Coords, type DoneCallback, type GridLayer, latLngBounds } from 'leaflet'
import { gridLayer } from './leaflet-tiles.ts'
import { type Archive, openArchive, readAttribution } from './archive.ts'
import { firstZoom } from './cover.ts'

/** Only the file itself says so of a region. */
export async function isVector(tiles: Archive): Promise<boolean> {
  if (tiles.format !== null) return tiles.format === 'vector'
  return (await openArchive(tiles).getHeader()).tileType === TileType.Mvt
}

/**
 * The images of a map file. They are drawn on a canvas, because showing them as images would need a wider content
 * security policy.
 */
export async function rasterLayer(tiles: Archive, onAttribution: (text: string) => void): Promise<GridLayer> {
  const archive = openArchive(tiles)
  const says = await readAttribution(archive)
  if (says !== null) onAttribution(says)
  const [west, south, east, north] = tiles.bounds
  const layer = gridLayer({
    minNativeZoom: tiles.minZoom,
    minZoom: firstZoom(tiles),
    maxNativeZoom: tiles.maxZoom,
    maxZoom: 24,
    bounds: latLngBounds([south, west], [north, east]),
  })
  const draw = async (canvas: HTMLCanvasElement, { z, x, y }: Coords) => {
    const found = await archive.getZxy(z, x, y)
    if (found === undefined) return
    const image = await createImageBitmap(new Blob([found.data]))
    canvas.width = image.width
    canvas.height = image.height
    canvas.getContext('2d')?.drawImage(image, 0, 0)
    image.close()
  }
  const createTile = (coords: Coords, done: DoneCallback) => {
    const canvas = document.createElement('canvas')
    void finish(draw(canvas, coords), (cause) => done(cause, canvas))
    return canvas
  }
  return Object.assign(layer, { createTile })
}

/** Reports the end of drawing a tile to Leaflet. */
async function finish(drawing: Promise<void>, done: (cause: Error | undefined) => void): Promise<void> {
  try {
    await drawing
  } catch (cause) {
    done(cause instanceof Error ? cause : new Error(String(cause)))
    return
  }
  done(undefined)
}
