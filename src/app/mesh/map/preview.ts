import * as z from 'zod'
import { tileOrigin } from '../../config/secure-url.ts'
import { tileUrlField } from '../../settings/map-tiles.ts'

const decimal = (digits: 2 | 3) =>
  z
    .string()
    .regex(digits === 2 ? /^-?\d{1,2}(\.\d{1,8})?$/ : /^-?\d{1,3}(\.\d{1,8})?$/)
    .transform(Number)

/** A place for a preview of tiles that are not saved yet. */
export const previewSchema = z.strictObject({
  url: tileUrlField.describe('With {z}, {x} and {y}'),
  latitude: decimal(2).pipe(z.number().min(-85).max(85)).describe('Degrees'),
  longitude: decimal(3).pipe(z.number().min(-180).max(180)).describe('Degrees'),
  zoom: z
    .string()
    .regex(/^\d{1,2}$/)
    .transform(Number)
    .pipe(z.int().max(24))
    .describe('Zoom level of the tiles'),
})

const TILE_PX = 256
const COLUMNS = 3
const ROWS = 2

/** Some tiles around a place, as a page without scripts. */
export function previewPage({ url, latitude, longitude, zoom }: z.infer<typeof previewSchema>): string {
  const size = 2 ** zoom
  const radians = (latitude * Math.PI) / 180
  const column = Math.floor(((longitude + 180) / 360) * size)
  const row = Math.floor(((1 - Math.asinh(Math.tan(radians)) / Math.PI) / 2) * size)
  const images = Array.from({ length: COLUMNS * ROWS }, (_, index) => {
    const [right, down] = [index % COLUMNS, Math.floor(index / COLUMNS)]
    const y = row + down - Math.floor((ROWS - 1) / 2)
    if (y < 0 || y >= size) return ''
    const x = (((column + right - 1) % size) + size) % size
    const address = fill(url, { z: zoom, x, y })
    return `<image href="${escape(address)}" x="${right * TILE_PX}" y="${down * TILE_PX}" width="${TILE_PX}" height="${TILE_PX}"/>`
  })
  const box = `0 0 ${COLUMNS * TILE_PX} ${ROWS * TILE_PX}`
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Tiles</title><svg viewBox="${box}" width="100%" role="img" aria-label="Tiles">${images.join('')}</svg></html>`
}

/** The page may show images of that host, and belongs to this site. */
export function previewHeaders(url: string): Record<string, string> {
  const images = ["'self'", tileOrigin(url) ?? []].flat().join(' ')
  return {
    'Content-Security-Policy': `default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; img-src ${images}`,
    // Like the map itself: tile servers want to know which site asks.
    'Referrer-Policy': 'origin',
  }
}

function fill(url: string, { z, x, y }: { z: number; x: number; y: number }): string {
  return url.replaceAll(/\{([zxyr])\}/g, (_, name: string) =>
    name === 'r' ? '' : String(name === 'z' ? z : name === 'x' ? x : y),
  )
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
