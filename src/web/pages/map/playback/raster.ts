/** Pixels in the order of `ImageData`; each is 0xAABBGGRR, with colours that are not multiplied by their opacity. */
export type Raster = { readonly pixels: Int32Array; readonly width: number; readonly height: number }

/** A colour as it is computed for an element, fully opaque: `rgb(…)`, or `color(srgb …)` with parts of one. */
export function pixelOf(colour: string): number {
  const parts = (/\(([^/)]*)/.exec(colour)?.[1] ?? '').match(/[\d.]+/g) ?? []
  const [red = 0, green = 0, blue = 0] = parts.map((part) =>
    Math.min(255, Math.round(Number(part) * (colour.startsWith('color') ? 255 : 1))),
  )
  return (255 << 24) | (blue << 16) | (green << 8) | red
}

// What follows runs for a million pixels a second: it makes no lists and no objects.

/** A pixel with a colour laid over it; `alpha`: how opaque the colour is, from 0 to 255. */
export function over(below: number, colour: number, alpha: number): number {
  const under = below >>> 24
  if (alpha >= 255 || under === 0) return (colour & 0xffffff) | (alpha << 24)
  const all = alpha + under - (((alpha * under) / 255 + 0.5) | 0)
  const share = all === 0 ? 0 : ((256 * alpha) / all + 0.5) | 0
  const red = (below & 255) + ((((colour & 255) - (below & 255)) * share) >> 8)
  const green = ((below >>> 8) & 255) + (((((colour >>> 8) & 255) - ((below >>> 8) & 255)) * share) >> 8)
  const blue = ((below >>> 16) & 255) + (((((colour >>> 16) & 255) - ((below >>> 16) & 255)) * share) >> 8)
  return (all << 24) | (blue << 16) | (green << 8) | red
}

/** Lays a small raster over another one; `left` and `top` are whole pixels, and may lie outside. */
export function lay(onto: Raster, small: Raster, left: number, top: number): void {
  const to = onto.pixels
  const from = small.pixels
  const right = Math.min(onto.width, left + small.width)
  const bottom = Math.min(onto.height, top + small.height)
  for (let y = Math.max(0, top); y < bottom; y++) {
    const row = y * onto.width
    const offset = (y - top) * small.width - left
    for (let x = Math.max(0, left); x < right; x++) {
      const pixel = from[offset + x] ?? 0
      const alpha = pixel >>> 24
      if (alpha === 255) to[row + x] = pixel
      else if (alpha > 0) to[row + x] = over(to[row + x] ?? 0, pixel, alpha)
    }
  }
}
