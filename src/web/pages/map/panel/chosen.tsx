import { humanize, plain } from '../../../format.ts'
import { distanceMetres } from '../../../../shared/mesh/distance.ts'
import { distance } from '../../../measure.ts'
import { type Node, nodeByNum, nodeName, precisionMeters } from '../../../state/mesh/nodes.ts'
import { Age } from '../../../parts/age.tsx'
import { RangeControl } from '../../../parts/form/range-control.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Facts } from '../../../parts/page.tsx'
import { href, place, setQuery } from '../../../router.ts'
import { can } from '../../../state/session.ts'
import { t } from '../../../strings.ts'
import { endFollowing, follow, followed } from '../following.ts'
import { usualOfTrack } from '../switches.ts'
import { Horizon } from '../horizon/panel.tsx'
import type { Link } from '../layers/lines.ts'
import { decibels, signalOf } from '../../../parts/mesh/snr.ts'
import type { Traceroute } from '../../../parts/mesh/traceroute.ts'
import { NodeChip, Ways } from '../../../parts/mesh/way.tsx'
import './chosen.css'

type Props = {
  chosen: Node
  links: readonly Link[]
  traces: readonly Traceroute[]
  trackLength: number
}

/** The chosen node: its data on the map, in words. */
export function ChosenNode({ chosen, links, traces, trackLength }: Props) {
  return (
    <>
      <div class="map-part-head">
        <h2>{nodeName(chosen)}</h2>
        <button type="button" class="icon-button" aria-label={t.map.back} onClick={() => setQuery({ node: '' })}>
          <Icon name="close" />
        </button>
      </div>
      <Facts
        entries={[
          [t.map.lastHeard, <Age at={chosen.lastHeard} />],
          [t.nodes.status, chosen.status ? <bdi>{plain(chosen.status.text)}</bdi> : null],
          [t.map.role, chosen.role === null ? null : humanize(chosen.role)],
          [t.nodes.coordinates, chosen.position === null ? t.nodes.noPosition : <Coordinates {...chosen.position} />],
          [t.nodes.positionTime, chosen.position?.time ? <Age at={chosen.position.time} /> : null],
        ]}
      />
      <div class="actions">
        {chosen.position !== null && <Follow {...chosen} />}
        <a class="button small" href={href(`/nodes/${chosen.nodeId}`)}>
          {t.map.open}
        </a>
        {can('info', 'read') && (
          <a class="button small" href={href(`/traceroutes?node=${chosen.nodeId}`)}>
            {t.routes.title}
          </a>
        )}
      </div>
      <Track length={trackLength} />
      {chosen.position !== null && <Horizon />}
      {links.length > 0 && <Neighbors chosen={chosen} links={links} />}
      {traces.length > 0 && (
        <div class="map-part">
          <h3>{t.routes.title}</h3>
          {traces.map((trace) => (
            <Ways trace={trace} key={trace.id} />
          ))}
        </div>
      )}
    </>
  )
}

function Follow({ nodeNum, nodeId }: Pick<Node, 'nodeNum' | 'nodeId'>) {
  const isOn = followed.value === nodeNum
  return (
    <button
      type="button"
      class="button small"
      aria-pressed={isOn}
      onClick={() => (isOn ? endFollowing() : follow(nodeId))}
    >
      {t.map.follow}
    </button>
  )
}

function Coordinates(position: NonNullable<Node['position']>) {
  const meters = precisionMeters(position.precisionBits)
  return (
    <>
      {position.latitude.toFixed(5)}, {position.longitude.toFixed(5)}
      {meters !== null && <span class="faint"> {t.nodes.within(distance(meters))}</span>}
    </>
  )
}

function Track({ length }: { length: number }) {
  return (
    <div class="map-part inline">
      <RangeControl label={t.nodes.track} fallback={usualOfTrack(place.value.query)} />
      <span class="faint">{t.map.places(length)}</span>
    </div>
  )
}

/** Who hears whom, the best signal first. */
function Neighbors({ chosen, links }: { chosen: Node; links: readonly Link[] }) {
  const direct = links.filter(({ viaMqtt }) => !viaMqtt)
  const hears = direct.filter(({ nodeNum }) => nodeNum === chosen.nodeNum)
  const heardBy = direct.filter(({ neighborNum }) => neighborNum === chosen.nodeNum)
  const list = (title: string, rows: readonly Link[], other: (link: Link) => number) =>
    rows.length > 0 && (
      <>
        <h3>{title}</h3>
        <ul class="neighbor-list">
          {rows
            .toSorted((a, b) => (b.snr ?? -Infinity) - (a.snr ?? -Infinity))
            .map((link) => (
              <li key={other(link)}>
                <NodeChip nodeNum={other(link)} /> <span class="faint">{nameOf(other(link))}</span>
                <Away from={chosen} to={nodeByNum(other(link))} />
                <span class={`hop snr-${signalOf(link.snr)}`}>{decibels(link.snr)}</span>
              </li>
            ))}
        </ul>
      </>
    )
  return (
    <div class="map-part">
      {list(t.neighbors.hears, hears, ({ neighborNum }) => neighborNum)}
      {list(t.neighbors.heardBy, heardBy, ({ nodeNum }) => nodeNum)}
    </div>
  )
}

function Away({ from, to }: { from: Node; to: Node | undefined }) {
  if (from.position === null || !to?.position) return null
  return <span class="away">{distance(distanceMetres(from.position, to.position))}</span>
}

function nameOf(nodeNum: number): string {
  const node = nodeByNum(nodeNum)
  return node === undefined ? '' : nodeName(node)
}
