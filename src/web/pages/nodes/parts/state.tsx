import type { ComponentChildren } from 'preact'
import { duration, plain } from '../../../format.ts'
import { ExactAge, now } from '../../../parts/age.tsx'
import { Battery, Signal } from '../../../parts/gauges.tsx'
import { Facts } from '../../../parts/page.tsx'
import { isActive, type Node } from '../../../state/mesh/nodes.ts'
import { nodeTexts } from '../../../strings/mesh/node.ts'
import { t } from '../../../strings.ts'
import { percent } from '../columns.tsx'

/** Whether the node is alive, by what way it is heard, and how it is. */
export function NodeState({ node }: { node: Node }) {
  const { deviceMetrics: metrics, status } = node
  return (
    <section class="card node-state">
      <div class="card-head">
        <h2>{nodeTexts.state}</h2>
        <Liveness node={node} />
      </div>
      <Facts
        entries={[
          [nodeTexts.lastHeard, <ExactAge at={node.lastHeard} />],
          [
            nodeTexts.lastHeardByRadio,
            node.lastHeardByBroker === null ? null : <ExactAge at={node.lastHeardByRadio} />,
          ],
          [nodeTexts.via, node.isLocal ? nodeTexts.local : wayOf(node)],
          [t.nodes.status, status ? <Status {...status} /> : null],
        ]}
      />
      <dl class="node-figures">
        <Figure name={nodeTexts.battery} value={metrics && <Battery level={metrics.batteryLevel} />} />
        <Figure name={t.nodes.snr} value={node.snr !== null && <Signal snr={node.snr} />} />
        <Figure name={nodeTexts.channelUtilization} value={metrics && percent(metrics.channelUtilization)} />
        <Figure name={nodeTexts.airtime} value={metrics && percent(metrics.airUtilTx)} />
        <Figure
          name={nodeTexts.uptime}
          value={
            metrics?.uptimeSeconds !== undefined && metrics.uptimeSeconds !== null && duration(metrics.uptimeSeconds)
          }
        />
      </dl>
      {metrics === null && <p class="faint">{nodeTexts.noMetrics}</p>}
    </section>
  )
}

function Liveness({ node }: { node: Node }) {
  if (node.lastHeard === null) return <span class="tag">{nodeTexts.states.never}</span>
  return isActive(node, now.value) ? (
    <span class="tag good">{nodeTexts.states.active}</span>
  ) : (
    <span class="tag bad">{nodeTexts.states.silent}</span>
  )
}

/** By radio or over the internet, and how far. */
function wayOf({ viaMqtt, hopsAway }: Node): string {
  const way = viaMqtt ? nodeTexts.viaMqtt : nodeTexts.viaRadio
  return hopsAway === null || viaMqtt ? way : `${way}, ${t.nodes.hopsAway(hopsAway)}`
}

/** A number that people compare; one that is not known is left out. */
function Figure({ name, value }: { name: string; value: ComponentChildren }) {
  if (value === null || value === false) return null
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

function Status({ text, time }: NonNullable<Node['status']>) {
  return (
    <>
      <bdi>{plain(text)}</bdi>
      {time !== null && (
        <>
          <br />
          <span class="faint">
            {nodeTexts.statusFrom} <ExactAge at={time} />
          </span>
        </>
      )}
    </>
  )
}
