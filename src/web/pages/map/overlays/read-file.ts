import { isRecord } from '../../../api.ts'
import { MAX_OVERLAY_BYTES, MAX_OVERLAY_SHAPES, MAX_SHAPE_POINTS } from '../../../../shared/limits.ts'
import { featuresOf, type Shape, shapesOf } from '../../../../shared/mesh/overlay.ts'
import { overlayTexts } from '../../../strings/mesh/overlays.ts'
import { createBreath } from './breath.ts'

export const FILE_TYPES = '.geojson,.json,.kml,.gpx'

export type ReadFile = { readonly shapes: readonly Shape[] } | { readonly fault: string }

/** The shapes of a file, without anything that the service would not keep. */
export async function readFile(file: File): Promise<ReadFile> {
  if (file.size > MAX_OVERLAY_BYTES) return { fault: overlayTexts.faults.large }
  const features = await featuresIn(await file.text()).catch(() => null)
  if (features === null) return { fault: overlayTexts.faults.unreadable }
  const shapes: Shape[] = []
  const breathe = createBreath()
  let count = 0
  for (const feature of features) {
    count += 1
    const found = shapesOf(feature)
    if (typeof found === 'string') return { fault: overlayTexts.faults[found](count, MAX_SHAPE_POINTS) }
    for (const shape of found) shapes.push(shape)
    if (shapes.length > MAX_OVERLAY_SHAPES) return { fault: overlayTexts.faults.many(MAX_OVERLAY_SHAPES) }
    await breathe()
  }
  return shapes.length === 0 ? { fault: overlayTexts.faults.empty } : { shapes }
}

async function featuresIn(text: string): Promise<Iterable<unknown> | null> {
  return /^\s*\uFEFF?\s*</.test(text) ? convertXml(text) : featuresOf(JSON.parse(text.replace(/^\uFEFF/, '')))
}

/** KML or GPX. A document of this parser runs no script and loads nothing. */
async function convertXml(text: string): Promise<Iterable<unknown> | null> {
  const document = new DOMParser().parseFromString(text, 'text/xml')
  if (document.querySelector('parsererror') !== null) return null
  const { gpxGen, kmlGen } = await import('@tmcw/togeojson')
  const root = document.documentElement.localName
  if (root === 'gpx') return plain(gpxGen(document))
  return root === 'kml' ? plain(kmlGen(document)) : null
}

/** Descriptions in HTML become plain text. */
function* plain(features: Iterable<unknown>): Iterable<unknown> {
  for (const feature of features) {
    const properties = isRecord(feature) ? feature['properties'] : null
    if (!isRecord(feature) || !isRecord(properties)) yield feature
    else yield { ...feature, properties: { ...properties, description: textOf(properties['description']) } }
  }
}

/** Its tags go before the browser sees it: even where no script can run, a handler in one would be reported. */
function textOf(description: unknown): unknown {
  const html = isRecord(description) ? description['value'] : description
  if (typeof html !== 'string') return html
  const text = html.replaceAll(/<(script|style)\b[^]*?<\/\1\s*>/gi, ' ').replaceAll(/<[^>]*>?/g, ' ')
  if (text === html) return html
  return new DOMParser().parseFromString(text, 'text/html').documentElement.textContent
}
