import { nodeByNum, nodeName, shortNameOf } from '../../state/mesh/nodes.ts'
import { href } from '../../router.ts'
import { can } from '../../state/session.ts'
import { t } from '../../strings.ts'
import './ways.css'
import { decibels, signalOf } from './snr.ts'
import { type Traceroute, type Way, waysOf } from './traceroute.ts'

/** Both directions of a traceroute, node by node, with the signal of each hop between them. */
export function Ways({ trace }: { trace: Traceroute }) {
  return (
    <>
      {waysOf(trace).map((way) => (
        <WayLine way={way} key={way.direction} />
      ))}
    </>
  )
}

function WayLine({ way }: { way: Way }) {
  return (
    <div class="way">
      <span class={`way-name ${way.direction}`}>{t.routes[way.direction]}</span>
      <ol>
        {way.nodes.map((nodeNum, index) => (
          <li key={index}>
            {index > 0 && <Hop snr={way.snr[index - 1] ?? null} />}
            <NodeChip nodeNum={nodeNum} />
          </li>
        ))}
      </ol>
    </div>
  )
}

function Hop({ snr }: { snr: number | null }) {
  return (
    <span class={`hop snr-${signalOf(snr)}`} title={t.routes.signals[signalOf(snr)]}>
      {decibels(snr)}{' '}
      <span class="arrow" aria-hidden="true">
        →
      </span>
    </span>
  )
}

/** A node by its short name, with the long name as a tooltip. */
export function NodeChip({ nodeNum }: { nodeNum: number | null }) {
  if (nodeNum === null) {
    return (
      <span class="node-chip faint" title={t.routes.silentHop}>
        ?
      </span>
    )
  }
  const id = `!${nodeNum.toString(16).padStart(8, '0')}`
  const node = nodeByNum(nodeNum)
  if (node === undefined) return <span class="node-chip mono">{id}</span>
  const text = shortNameOf(node)
  return can('nodes', 'read') ? (
    <a class="node-chip" href={href(`/nodes/${id}`)} title={nodeName(node)}>
      {text}
    </a>
  ) : (
    <span class="node-chip">{text}</span>
  )
}
