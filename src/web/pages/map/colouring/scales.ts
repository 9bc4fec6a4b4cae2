import './scales.css'
import { colourTexts } from '../../../strings/mesh/map-colours.ts'
import type { Node } from '../../../state/mesh/nodes.ts'
import type { ColouringName, Scale } from './colouring.ts'

type Texts = { readonly names: readonly string[]; readonly help: readonly string[]; readonly unknown: string }

/** `shades`: which of the five colours each class has. `classOf`: null if the node has not said it. */
function scale(texts: Texts, shades: readonly (0 | 1 | 2 | 3 | 4)[], classOf: (node: Node) => number | null): Scale {
  return {
    tokens: [...shades.map((shade) => `--shade-${shade}` as const), '--age-2'],
    classOf: (node) => classOf(node) ?? shades.length,
    names: [...texts.names, colourTexts.unknown],
    help: [...texts.help, texts.unknown],
  }
}

/** The class of a value: the first whose limit it reaches, else the last. */
const reach = (value: number | null | undefined, limits: readonly number[]): number | null => {
  if (value === null || value === undefined) return null
  const found = limits.findIndex((limit) => value >= limit)
  return found < 0 ? limits.length : found
}

const ROLES: ReadonlyMap<string, number> = new Map([
  ...['ROUTER', 'ROUTER_LATE', 'ROUTER_CLIENT', 'REPEATER', 'CLIENT_BASE'].map((role) => [role, 0] as const),
  ['CLIENT', 1],
  ...['CLIENT_MUTE', 'CLIENT_HIDDEN'].map((role) => [role, 2] as const),
  ...['TRACKER', 'SENSOR', 'LOST_AND_FOUND'].map((role) => [role, 3] as const),
  ...['TAK', 'TAK_TRACKER'].map((role) => [role, 4] as const),
])

const SCALES: Readonly<Record<Exclude<ColouringName, 'age'>, Scale>> = {
  snr: scale(colourTexts.snr, [0, 1, 2, 3], ({ snr }) => reach(snr, [0, -7, -15])),
  hops: scale(colourTexts.hops, [0, 1, 2, 3, 4], ({ hopsAway, isLocal }) =>
    isLocal ? 0 : hopsAway === null ? null : Math.min(4, hopsAway),
  ),
  battery: scale(colourTexts.battery, [0, 1, 2, 3], ({ deviceMetrics }) =>
    reach(deviceMetrics?.batteryLevel, [101, 50, 20]),
  ),
  role: scale(colourTexts.role, [0, 1, 2, 3, 4], ({ role }) => (role === null ? null : (ROLES.get(role) ?? null))),
}

export const scaleOf = (name: Exclude<ColouringName, 'age'>): Scale => SCALES[name]
