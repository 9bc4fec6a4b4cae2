import { api, ask, send } from '../../../api.ts'
import type { Shape } from '../../../../shared/mesh/overlay.ts'
import { createBreath } from './breath.ts'

/** Bytes of the shapes of one request; with the rest it must stay below 256 KB. */
const MAX_PART = 240_000

/** The shapes in parts that each fit into a request. */
export async function partsOf(shapes: readonly Shape[]): Promise<Shape[][]> {
  const utf8 = new TextEncoder()
  const breathe = createBreath()
  const parts: Shape[][] = [[]]
  let bytes = 0
  for (const shape of shapes) {
    const size = utf8.encode(JSON.stringify(shape)).length + 1
    if (bytes + size > MAX_PART && bytes > 0) {
      parts.push([])
      bytes = 0
    }
    parts.at(-1)?.push(shape)
    bytes += size
    await breathe()
  }
  return parts
}

/** Puts them on the map: nobody sees them before the last part has arrived. Throws `ApiError`. */
export async function sendOverlay(
  name: string,
  shapes: readonly Shape[],
  onPart: (part: number, of: number) => void,
): Promise<void> {
  const [first = [], ...others] = await partsOf(shapes)
  const all = others.length + 1
  onPart(1, all)
  const { id } = await ask(api.map.overlays.$post({ json: { name, features: first, isWhole: others.length === 0 } }))
  for (const [index, features] of others.entries()) {
    onPart(index + 2, all)
    const json = { features, isWhole: index === others.length - 1 }
    await send(api.map.overlays[':id'].shapes.$post({ param: { id: String(id) }, json }))
  }
}
