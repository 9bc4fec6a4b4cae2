import { type Alert } from '../../../state/firing.ts'
import { needTexts } from '../../../strings/mesh/needs.ts'
import type { Need } from './need.ts'

/** More would push everything else out of sight. */
const MAX_SHOWN = 5

/** The firing alerts that nobody has acknowledged. `count`: of all of them, also of those that are not loaded. */
export function alertNeeds(alerts: readonly Alert[], count: number): Need[] {
  const open = alerts.filter(({ acknowledgedAt }) => acknowledgedAt === null)
  const shown = open.slice(0, MAX_SHOWN)
  const more = Math.max(count, open.length) - shown.length
  return [
    ...shown.map(({ id, what, startedAt, ruleName, inhibited, nodeId }): Need => ({
      key: `alert ${id}`,
      severity: 'error',
      text: what,
      since: startedAt,
      details: [ruleName, ...(inhibited ? [needTexts.unsure] : [])],
      remedy:
        nodeId === null
          ? { path: '/alerts', name: needTexts.openAlerts }
          : { path: `/nodes/${nodeId}`, name: needTexts.openNode },
      alertId: id,
    })),
    ...(more > 0 ? [{ ...MORE, key: 'alerts', text: needTexts.moreAlerts(more) }] : []),
  ]
}

const MORE = {
  severity: 'error',
  since: null,
  details: [],
  remedy: { path: '/alerts', name: needTexts.openAlerts },
} as const
