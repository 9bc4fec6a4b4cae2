import { humanize } from '../../../format.ts'
import { Age } from '../../../parts/age.tsx'
import { Battery, Signal } from '../../../parts/gauges.tsx'
import { Facts } from '../../../parts/page.tsx'
import type { Node } from '../../../state/mesh/nodes.ts'
import { t } from '../../../strings.ts'

/** The most important values of a node, as far as it has sent them. */
export function Values({ node }: { node: Node }) {
  const { deviceMetrics: metrics, hopsAway, snr, role } = node
  const level = metrics?.batteryLevel ?? null
  return (
    <Facts
      entries={[
        [t.map.lastHeard, <Age at={node.lastHeard} />],
        [t.nodes.columns.battery, level === null ? null : <Battery level={level} />],
        [t.nodes.snr, snr === null ? null : <Signal snr={snr} />],
        [t.nodes.hops, hopsAway === null ? null : t.nodes.hopsAway(hopsAway)],
        [t.map.role, role === null ? null : humanize(role)],
      ]}
    />
  )
}
