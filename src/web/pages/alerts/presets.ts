import { alertTexts } from '../../strings/alerts.ts'
import { viewOf } from './kinds/kinds.ts'
import type { NewRule } from './rule.ts'

/** The most common rules. */
export const PRESETS: Readonly<Record<keyof typeof alertTexts.presets, (destinations: number[]) => NewRule>> = {
  repeaters: (destinations) => ({
    kind: 'node_silent',
    name: alertTexts.presets.repeaters,
    destinations,
    nodes: { kind: 'role', roles: ['ROUTER', 'ROUTER_LATE', 'REPEATER'] },
    afterMinutes: 240,
  }),
  battery: (destinations) => viewOf('metric').fresh({ name: alertTexts.presets.battery, destinations }),
  direct: (destinations) => ({
    kind: 'message',
    name: alertTexts.presets.direct,
    destinations,
    direct: true,
    channels: [],
  }),
  backups: (destinations) => viewOf('backup').fresh({ name: alertTexts.presets.backups, destinations }),
}
