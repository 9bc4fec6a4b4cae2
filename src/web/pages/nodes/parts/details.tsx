import type { ComponentChildren } from 'preact'
import { decimal, humanize, modelName } from '../../../format.ts'
import { altitude as shownAltitude, distance } from '../../../measure.ts'
import { ExactAge } from '../../../parts/age.tsx'
import { Copyable } from '../../../parts/copy.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Card, Facts } from '../../../parts/page.tsx'
import { type Node, precisionMeters } from '../../../state/mesh/nodes.ts'
import { identityTexts } from '../../../strings/mesh/identity.ts'
import { nodeTexts } from '../../../strings/mesh/node.ts'
import { t } from '../../../strings.ts'
import { useChannels } from '../../automation/channels.ts'
import type { NodeDetail } from './detail.ts'

/** All that is known about a node beside its state. */
export function Details({ node, children }: { node: NodeDetail; children: ComponentChildren }) {
  return (
    <div class="node-details">
      <ReceptionCard node={node} />
      <PositionCard node={node} />
      <IdentityCard node={node} />
      {children}
    </div>
  )
}

/** How the node was heard, and what it is made of. */
function ReceptionCard({ node }: { node: Node }) {
  const channels = useChannels()
  const voltage = node.deviceMetrics?.voltage ?? null
  return (
    <Card title={nodeTexts.device}>
      <Facts
        entries={[
          [t.nodes.role, node.role === null ? null : humanize(node.role)],
          [t.nodes.hardware, node.hwModel === null ? null : modelName(node.hwModel)],
          [t.nodes.firmware, node.firmwareVersion],
          [nodeTexts.voltage, voltage === null ? null : `${decimal(voltage, 2)} V`],
          [nodeTexts.rssi, node.rssi === null ? null : `${decimal(node.rssi, 0)} dBm`],
          [nodeTexts.channel, node.channel === null ? null : channels.name(node.channel)],
          [nodeTexts.firstHeard, <ExactAge at={node.firstHeard} />],
        ]}
      />
    </Card>
  )
}

function PositionCard({ node }: { node: Node }) {
  const { position } = node
  if (position === null) {
    return (
      <Card title={nodeTexts.position}>
        <p class="faint">{t.nodes.noPosition}</p>
      </Card>
    )
  }
  const { latitude, longitude, altitude, precisionBits, time } = position
  const meters = precisionMeters(precisionBits)
  return (
    <Card title={nodeTexts.position}>
      <Facts
        entries={[
          [
            t.nodes.coordinates,
            <Copyable text={`${latitude.toFixed(5)}, ${longitude.toFixed(5)}`} name={t.nodes.coordinates} />,
          ],
          [nodeTexts.altitude, altitude === null ? null : shownAltitude(altitude)],
          [nodeTexts.precision, meters === null ? nodeTexts.exact : t.nodes.within(distance(meters))],
          [t.nodes.positionTime, time === null ? null : <ExactAge at={time} />],
        ]}
      />
    </Card>
  )
}

function IdentityCard({ node }: { node: NodeDetail }) {
  const { signedAt } = node
  const signedParts = [
    node.nameSigned ? nodeTexts.signedParts.names : [],
    node.positionSigned ? nodeTexts.signedParts.position : [],
    node.statusSigned ? nodeTexts.signedParts.status : [],
  ].flat()
  return (
    <Card title={nodeTexts.identity}>
      <Facts
        entries={[
          [nodeTexts.id, <Copyable text={node.nodeId} name={nodeTexts.id} />],
          [nodeTexts.number, <span class="mono">{node.nodeNum}</span>],
          [nodeTexts.formerly, node.formerNodeNums.length === 0 ? null : <FormerIds nodeNums={node.formerNodeNums} />],
          [nodeTexts.shortName, node.shortName],
          [nodeTexts.name, node.nameAltered ? <Altered /> : null],
          [nodeTexts.licensed, node.isLicensed ? t.common.yes : null],
          [identityTexts.keyConfirmed, node.keyConfirmed ? t.common.yes : null],
          [nodeTexts.key, node.publicKey === null ? null : <Copyable text={node.publicKey} name={nodeTexts.key} />],
          [t.nodes.proof, signedAt === null ? nodeTexts.signedNever : <Verified at={signedAt} />],
          [nodeTexts.signedContent, signedParts.length === 0 ? null : signedParts.join(', ')],
        ]}
      />
    </Card>
  )
}

function Altered() {
  return (
    <>
      <Icon name="warning" /> {nodeTexts.alteredHelp}
    </>
  )
}

function Verified({ at }: { at: number }) {
  return (
    <>
      <span class="good">
        <Icon name="shield" />
      </span>{' '}
      {nodeTexts.signedLast} <ExactAge at={at} />
    </>
  )
}

function FormerIds({ nodeNums }: { nodeNums: readonly number[] }) {
  const ids = nodeNums.map((nodeNum) => `!${nodeNum.toString(16).padStart(8, '0')}`)
  return <span class="mono">{ids.join(' ')}</span>
}
